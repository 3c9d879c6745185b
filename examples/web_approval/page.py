"""A web page that lists what waits and lets you decide or answer it. Only this computer can reach it."""

import hmac
import json
import secrets
import sys
from html import escape

from aiohttp import web
from robot import agent, store

from signoff import AnswerField, ApprovalDecision, ApprovalRequest, BadAnswer, FieldKind, Pending, resume
from signoff.errors import SignoffError

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8080
TOKEN = secrets.token_urlsafe()  # other sites can make your browser send a form, but they cannot know this
HEADERS = {"Content-Security-Policy": "default-src 'none'; form-action 'self'; frame-ancestors 'none'"}
FORM = """<form method="post"><p>{why}</p><pre>{call}</pre>{fields}<input type="hidden" name="token" value="{token}">
<input type="hidden" name="id" value="{id}"><button name="say" value="accept">{yes}</button>
<button name="say" value="reject">{no}</button></form>"""


def shown(field: AnswerField, number: int) -> str:
    """Return the HTML of one field. It is named by its number: its own name comes from a tool or the model."""
    name = f'name="field{number}"'
    match field.kind:
        case FieldKind.CHOICE | FieldKind.CHOICES:
            labels = {f"#{n}": option.label for n, option in enumerate(field.options)}
        case FieldKind.YES_NO:
            labels = {"yes": "Yes", "no": "No"}
        case FieldKind.NUMBER | FieldKind.INTEGER:
            labels, box = {}, f'<input type="number" step="any" {name}>'
        case _:
            labels, box = {}, f"<textarea {name}></textarea>"
    if labels:
        several = " multiple" if field.kind is FieldKind.CHOICES else ""
        options = "".join(f'<option value="{value}">{escape(label)}</option>' for value, label in labels.items())
        box = f"<select {name}{several}>{'' if several else '<option></option>'}{options}</select>"
    return f"<p><label>{escape(' '.join((field.shown, field.hint)))}<br>{box}</label></p>"


def fields_of(request: ApprovalRequest) -> str:
    if request.inquiry is None:
        return ""
    fields = "".join(shown(field, number) for number, field in enumerate(request.inquiry.fields))
    return f"<p>{escape(request.inquiry.words)}</p>{fields}"


def page(news: str = "", status: int = 200) -> web.Response:
    forms = [
        FORM.format(
            why=escape(f"{one.request.tool_name}: {one.request.why}"),
            call=escape(json.dumps(dict(one.request.args), indent=1)),
            fields=fields_of(one.request),
            token=TOKEN,
            id=escape(one.id),
            yes="Answer" if one.request.inquiry else "Accept",
            no="Decline" if one.request.inquiry else "Reject",
        )
        for one in store.waiting()
    ]
    body = f"<!doctype html><title>Approvals</title><h1>Approvals</h1><p>{escape(news)}</p>{''.join(forms)}"
    return web.Response(text=body, content_type="text/html", headers=HEADERS, status=status)


async def show(request: web.Request) -> web.Response:
    return page()


async def decide(request: web.Request) -> web.Response:
    form = await request.post()
    if not hmac.compare_digest(str(form.get("token", "")).encode(), TOKEN.encode()):
        return page("Nothing was decided: this form is out of date. Please decide again.", status=403)
    if form.get("say") not in ("accept", "reject"):
        return page("Nothing was decided: press one of the buttons.", status=400)
    request_id, answer = str(form.get("id", "")), {}
    try:
        inquiry = store.get(request_id).request.inquiry
        if inquiry and form["say"] == "accept":
            typed = {field: map(str, form.getall(f"field{n}", [])) for n, field in enumerate(inquiry.fields)}
            answer = {field.name: field.read(list(texts)) for field, texts in typed.items()}
    except (BadAnswer, SignoffError, LookupError) as error:
        return page(str(error))
    return page(await go_on(request_id, ApprovalDecision(form["say"] == "accept", answer=answer)))


async def go_on(request_id: str, decision: ApprovalDecision | None = None) -> str:
    try:
        output = (await resume(agent, request_id, decision, by="somebody on the web page")).output
    except (SignoffError, LookupError) as error:
        return str(error)
    return "More has to be decided." if isinstance(output, Pending) else f"The run ended: {output}"


async def start(app: web.Application) -> None:
    for request_id in store.ready():  # runs that were interrupted, for example because this process was killed
        print("Going on with an interrupted run:", await go_on(request_id), flush=True)


@web.middleware
async def only_here(request: web.Request, handler: web.RequestHandler) -> web.StreamResponse:
    if request.host not in (f"127.0.0.1:{PORT}", f"localhost:{PORT}"):
        raise web.HTTPForbidden(text="This page is only for this computer.")
    return await handler(request)


if __name__ == "__main__":
    app = web.Application(middlewares=[only_here])
    app.add_routes([web.get("/", show), web.post("/", decide)])
    app.on_startup.append(start)
    web.run_app(app, host="127.0.0.1", port=PORT)
