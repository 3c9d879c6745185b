"""The moderation helper of examples/ in the running bot: quorum, kill -9 between card and run, the bot's own posts."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from signoff.commands.sandbox_own import add_named
from signoff.config.schema import load_config
from tests.rigs.live_bot import ROOT, CrashingRig, patient, rig

pytestmark = pytest.mark.asyncio(loop_scope="module")

DESK = "signoff.approvals.desk:Desk"
JOURNAL = "signoff.gate.journal:Journal"
EXAMPLE = ROOT / "examples" / "moderation_helper" / "signoff.toml"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[CrashingRig]:
    async with rig(tmp_path_factory.mktemp("tools"), start=False, kind=CrashingRig) as running:
        shutil.copy(EXAMPLE, running.folder / "signoff.toml")
        await add_named(running.sandbox, load_config(EXAMPLE, required=True))
        running.people["Nina"] = patient(await running.sandbox.person("Nina"))
        await running.start()
        yield running


async def newcomer(live: CrashingRig, name: str) -> str:
    """Let somebody join, to be banned."""
    person = await live.sandbox.add_person(name)
    await live.sandbox.join(person)
    return str(person.id)


async def bans(live: CrashingRig, user: str) -> int:
    return len([call for call in await live.sandbox.rest_calls("PUT", f"/bans/{user}") if call["status"] == 204])


async def test_killed_after_the_click_the_ban_runs_once_when_the_servers_data_have_arrived(live: CrashingRig) -> None:
    """The next start resumes the call before Discord has sent the server's roles and channels."""
    user = await newcomer(live, "Spammer")
    asked = await live.ask(f'call ban_member {{"member": "{user}"}}', who="Ada")
    card = await live.card(asked.id)
    assert "Tool Approval Required" in card.text
    assert f"Bans Spammer ({user}) from this server." in card.text
    assert "a ban takes two moderators" in card.text
    await live.people["Olga"].click(card, "Accept")
    live.arm(f"{DESK}.decide:after")
    await live.people["Nina"].click(card, "Accept", wait=0)
    await live.dies()
    assert await bans(live, user) == 0
    await live.start()
    await live.sees(asked.id, f"Banned Spammer ({user})")
    await live.ended(asked)
    await live.closed(card, "APPROVED by", live.people["Nina"].mention)
    [call] = await live.sandbox.rest_calls("PUT", f"/bans/{user}")
    assert call["reason"].startswith("asked by Ada (")
    assert "approved by Olga (" in call["reason"]
    assert "Nina (" in call["reason"]
    assert await bans(live, user) == 1


async def test_killed_inside_the_call_people_say_whether_to_kick_again(live: CrashingRig) -> None:
    user = await newcomer(live, "Troll")
    asked = await live.ask(f'call kick_member {{"member": "{user}"}}', who="Ada")
    card = await live.card(asked.id)
    live.arm(f"{JOURNAL}.enter:after")
    await live.people["Olga"].click(card, "Accept", wait=0)
    await live.dies()
    await live.start()
    again = await live.with_button(asked.id, "Run it again")
    assert "may have run" in again.text
    await live.people["Nina"].click(again, "Run it again")
    await live.sees(asked.id, f"Kicked Troll ({user})")
    await live.ended(asked)
    assert len(await live.sandbox.rest_calls("DELETE", f"/members/{user}")) == 1


async def test_somebody_without_the_right_gets_no_card(live: CrashingRig) -> None:
    user = await newcomer(live, "Victim")
    asked = await live.ask(f'call ban_member {{"member": "{user}"}}', who="Max")
    reply = await live.sees(asked.id, "they lack Ban Members in this server")
    assert not reply.buttons
    await live.ended(asked)
    assert await bans(live, user) == 0


async def test_the_bot_does_not_answer_its_own_post(live: CrashingRig) -> None:
    where = (await live.sandbox.channel("ops")).id
    text = f"{live.sandbox.mention} please run the test approval tool"
    asked = await live.ask(f'call post_message {{"channel": "{where}", "text": "{text}", "ping": "people"}}', who="Ada")
    await live.people["Olga"].click(await live.card(asked.id), "Accept")
    await live.ended(asked)
    await live.sees(where, "please run the test approval tool")
    turns = len(live.rows("SELECT 1 FROM turns"))
    # A mention by a person in the same channel is the next turn, so nothing else was between.
    after = await live.ask("call list_roles", who="Max", where="ops")
    await live.ended(after)
    assert len(live.rows("SELECT 1 FROM turns")) == turns + 1


async def test_what_the_newcomer_types_and_what_a_rule_forbids(live: CrashingRig) -> None:
    """The requests of the example's README, in the words that the sandbox's page sends."""
    max_ = live.people["Max"]
    asked = await live.ask(f"time out {max_.mention} for 10 minutes", who="Ada")
    card = await live.card(asked.id)
    assert f"Times out Max ({max_.id}) for 10 minutes. They have no role." in card.text
    await live.people["Olga"].click(card, "Accept")
    await live.ended(asked)
    where = (await live.sandbox.channel("ops")).id
    said = f'call post_message {{"channel": "{where}", "text": "@everyone", "ping": "everyone"}}'
    await live.sees((await live.ask(said, who="Ada")).id, "the bot does not ping everyone")
