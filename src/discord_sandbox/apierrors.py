"""Discord's refusals: HTTP status, code, message and, for a bad form, the tree of field errors.

All wording of refusals is in this module. `rest.api` sends them.
"""

from typing import Any

from discord_sandbox.model import Json


class ApiError(Exception):
    """One refusal, as a client of Discord gets it."""

    def __init__(self, status: int, code: int, message: str, errors: Json | None = None) -> None:
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code
        self.message = message
        self.errors = errors

    def in_words(self) -> str:
        """Return the message and, for a bad form, each field with what is wrong, as Discord's libraries print it."""
        return "\n".join([self.message, *_lines(self.errors or {}, ())])

    def body(self) -> Json:
        body: Json = {"message": self.message, "code": self.code}
        if self.errors is not None:
            body["errors"] = self.errors
        return body


def _lines(tree: Json, path: tuple[str, ...]) -> list[str]:
    own = [f"In {'.'.join(path)}: {problem['message']}" for problem in tree.get("_errors", ())]
    return own + [line for key, inner in tree.items() if key != "_errors" for line in _lines(inner, (*path, key))]


class FormErrors:
    """Collects field errors by path and raises them together as 50035, the way Discord does."""

    def __init__(self) -> None:
        self._tree: Json = {}

    def add(self, path: tuple[str | int, ...], code: str, message: str) -> None:
        node = self._tree
        for part in path:
            node = node.setdefault(str(part), {})
        node.setdefault("_errors", []).append({"code": code, "message": message})

    def length(self, path: tuple[str | int, ...], value: Any, least: int, most: int) -> None:
        """Check that a field is a string of `least` to `most` characters."""
        if not isinstance(value, str):
            self.add(path, "STRING_TYPE_CONVERT", "Could not interpret value as string.")
        elif len(value) > most:
            self.add(path, "BASE_TYPE_MAX_LENGTH", f"Must be {most} or fewer in length.")
        elif len(value) < least:
            if least == 1:
                self.add(path, "BASE_TYPE_REQUIRED", "This field is required")
            else:
                self.add(path, "BASE_TYPE_MIN_LENGTH", f"Must be {least} or more in length.")

    def required(self, path: tuple[str | int, ...]) -> None:
        self.add(path, "BASE_TYPE_REQUIRED", "This field is required")

    def __bool__(self) -> bool:
        return bool(self._tree)

    def check(self) -> None:
        if self._tree:
            raise ApiError(400, 50035, "Invalid Form Body", self._tree)


def bad_field(path: tuple[str | int, ...], code: str, message: str) -> ApiError:
    errors = FormErrors()
    errors.add(path, code, message)
    try:
        errors.check()
    except ApiError as error:
        return error
    raise AssertionError("unreachable")


def unauthorized() -> ApiError:
    return ApiError(401, 0, "401: Unauthorized")


def not_found() -> ApiError:
    return ApiError(404, 0, "404: Not Found")


def bad_json() -> ApiError:
    return ApiError(400, 50109, "The request body contains invalid JSON.")


def unknown_channel() -> ApiError:
    return ApiError(404, 10003, "Unknown Channel")


def unknown_guild() -> ApiError:
    return ApiError(404, 10004, "Unknown Guild")


def unknown_member() -> ApiError:
    return ApiError(404, 10007, "Unknown Member")


def unknown_message() -> ApiError:
    return ApiError(404, 10008, "Unknown Message")


def unknown_role() -> ApiError:
    return ApiError(404, 10011, "Unknown Role")


def unknown_user() -> ApiError:
    return ApiError(404, 10013, "Unknown User")


def unknown_emoji() -> ApiError:
    return ApiError(400, 10014, "Unknown Emoji")


def unknown_webhook() -> ApiError:
    return ApiError(404, 10015, "Unknown Webhook")


def unknown_ban() -> ApiError:
    return ApiError(404, 10026, "Unknown Ban")


def too_many_pins(most: int) -> ApiError:
    return ApiError(400, 30003, f"Maximum number of pins reached ({most})")


def too_old_for_bulk() -> ApiError:
    return ApiError(400, 50034, "You can only bulk delete messages that are under 14 days old.")


def unknown_interaction() -> ApiError:
    return ApiError(404, 10062, "Unknown interaction")


def unknown_command() -> ApiError:
    return ApiError(404, 10063, "Unknown application command")


def too_many_commands(most: int) -> ApiError:
    return ApiError(400, 30032, f"Maximum number of application commands reached ({most}).")


def too_large() -> ApiError:
    return ApiError(413, 40005, "Request entity too large")


def already_acknowledged() -> ApiError:
    return ApiError(400, 40060, "Interaction has already been acknowledged.")


def missing_access() -> ApiError:
    return ApiError(403, 50001, "Missing Access")


def not_your_message() -> ApiError:
    return ApiError(403, 50005, "Cannot edit a message authored by another user")


def empty_message() -> ApiError:
    return ApiError(400, 50006, "Cannot send an empty message")


def cannot_dm() -> ApiError:
    return ApiError(403, 50007, "Cannot send messages to this user")


def missing_permissions() -> ApiError:
    return ApiError(403, 50013, "Missing Permissions")


def invalid_webhook_token() -> ApiError:
    return ApiError(401, 50027, "Invalid Webhook Token")


def archived_thread() -> ApiError:
    return ApiError(400, 50083, "Thread is archived")


def thread_exists() -> ApiError:
    return ApiError(400, 160004, "A thread has already been created for this message")


def locked_thread() -> ApiError:
    return ApiError(403, 160005, "Thread is locked")
