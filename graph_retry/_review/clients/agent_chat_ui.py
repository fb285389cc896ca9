"""Agent Chat UI and LangChain's middleware for people: both send a list under `decisions`."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_object
from graph_retry._review.answers import Reading
from graph_retry._review.clients.client import (
    Client,
    Entry,
    Form,
    fields_of,
    with_params,
    without,
    word_of,
)
from graph_retry._review.decisions import ROWS


def _draw(form: Form) -> dict[str, Any]:
    request = {"name": form.title, "args": form.args, "description": form.description}
    return {
        # Agent Inbox reads the same request, but under `arguments`.
        "action_requests": [{**request, "arguments": form.args}],
        "review_configs": [{"action_name": form.title, "allowed_decisions": form.offered}],
    }


def _translate(entry: Entry, reading: Reading) -> Entry:
    """Read the edited fields, and the output of LangChain's `respond`, which is in `message`."""
    if "edited_action" in entry:
        return with_params(entry, "edited_action", fields_of(entry["edited_action"], reading))
    text = entry.get("message")
    known = {"output", *ROWS["respond"].parts}
    if word_of(entry) != "respond" or known & entry.keys() or text is None:
        return entry
    return {**without(entry, "message"), "output": text}


AGENT_CHAT_UI = Client(
    "agent-chat-ui",
    lambda answer: is_object(answer) and "decisions" in answer,
    _draw,
    _translate,
)
