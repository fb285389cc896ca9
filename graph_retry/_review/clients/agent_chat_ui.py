"""Agent Chat UI, and LangChain's own decisions: a list of them under `decisions`."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_object
from graph_retry._review.clients.client import (
    Client,
    Entry,
    Form,
    Reading,
    edited_fields,
    spelled,
)
from graph_retry._review.decisions import ROWS


def _draw(form: Form) -> dict[str, Any]:
    request = {"name": form.title, "args": form.args, "description": form.description}
    return {
        # Agent Inbox reads `arguments` of the same request.
        "action_requests": [{**request, "arguments": form.args}],
        "review_configs": [{"action_name": form.title, "allowed_decisions": form.offered}],
    }


def _translate(entry: Entry, _: Reading) -> Entry:
    """LangChain's own respond has its text as the message."""
    text = entry.get("message")
    known = {"output", *ROWS["respond"].parts}
    if spelled(entry.get("type")) != "respond" or known & entry.keys() or text is None:
        return entry
    return {**{key: part for key, part in entry.items() if key != "message"}, "output": text}


AGENT_CHAT_UI = Client(
    "agent-chat-ui",
    lambda answer: is_object(answer) and "decisions" in answer,
    _draw,
    {"edited_action": (("approve", "edit"), edited_fields)},
    _translate,
)
