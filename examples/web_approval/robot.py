"""An agent that asks before it restarts a service and whom to tell, and waits in a file. Run it to start a run."""

import os
import sys
from pathlib import Path
from typing import Literal

from pydantic_ai import Agent, CallDeferred, DeferredToolRequests

from signoff import ApprovalStore, Pending, Signoff

FOLDER = Path(os.environ.get("WEB_APPROVAL_FOLDER", "."))
store = ApprovalStore(FOLDER / "approvals.db")

agent = Agent(
    os.environ.get("MODEL", "test"),  # "test" is offline and calls every tool once; use "openai:..." for a real one
    instructions="You look after our services.",
    output_type=[str, DeferredToolRequests],
    capabilities=[Signoff(store=store, timeout=24 * 3600)],
)


@agent.tool_plain(requires_approval=True)
def restart(service: str) -> str:
    """Restart a service."""
    with (FOLDER / "restarts.txt").open("a", encoding="utf-8") as file:
        file.write(f"{service}\n")
    return f"{service} was restarted"


@agent.tool_plain
def ask_whom_to_tell(service: str) -> Literal["nobody", "the team", "everybody"]:
    """Ask a person who should hear about a restart."""
    raise CallDeferred(metadata={"question": f"Who should hear that {service} was restarted?"})


if __name__ == "__main__":
    output = agent.run_sync(" ".join(sys.argv[1:]) or "Please restart what hangs.").output
    if isinstance(output, Pending):
        print("Waiting for a decision:", *output.ids)
    else:
        print(output)
