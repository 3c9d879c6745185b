"""The list of a conversation, which is kept in the conversation itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart

from tests.rigs.workspace_bench import WorkspaceRig


async def test_the_list_is_kept_in_the_conversation_and_outlives_a_restart(tmp_path: Path) -> None:
    rig = WorkspaceRig(tmp_path)
    assert await rig.call("todo") == "The list is empty."
    items = [{"text": "read\nit", "state": "done"}, {"text": "edit", "state": "doing"}, {"text": "test"}]
    said = await rig.call("todo", items=items)
    assert said == "[x] read it\n[>] edit\n[ ] test"
    parts = [ToolReturnPart("todo", said, "call_0"), ToolReturnPart("todo", "Rejected by user Ada.", "call_1")]
    stored = ModelMessagesTypeAdapter.dump_json([ModelRequest(parts)])
    assert await rig.call("todo", ModelMessagesTypeAdapter.validate_json(stored)) == said
    with pytest.raises(ValidationError):
        await rig.call("todo", items=[{"text": "x", "state": "maybe"}])
