"""Agent Inbox: a list of one answer, with the form's fields or the response box as `args`."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from graph_retry._json import is_array
from graph_retry._review.clients.client import Client, Content, Entry, Form, edited_fields
from graph_retry._review.decisions import said_in_words, spelled
from graph_retry._review.forms.strict_json import NotJsonError, read_json
from graph_retry._review.question import UnusableAnswerError

_JSON = re.compile(r"\{|\[\s*\{")


def _draw(form: Form) -> dict[str, Any]:
    return {
        "action_request": {"action": form.title, "args": form.args},
        "config": {
            "allow_accept": "approve" in form.offered,
            "allow_edit": "edit" in form.offered,
            "allow_respond": any(kind not in ("approve", "edit") for kind in form.offered),
            "allow_ignore": "reject" in form.offered,
        },
    }


def _read(form: Any) -> Content:
    return Content(message=form) if isinstance(form, str) else edited_fields(form)


def _translate(entry: Entry, offered: Collection[str]) -> Entry:
    """Read its button *Accept*, and what was typed into the response box."""
    word, args = spelled(entry.get("type")), entry.get("args")
    if word == "accept" and "args" in entry:  # it repeats its form unedited
        return {**entry, "type": "approve", "args": {"action": edited_fields(args).title}}
    if word != "response":
        return entry
    if entry.get("output") is not None:
        return {**entry, "type": "respond"}
    beside = {key: part for key, part in entry.items() if key not in ("type", "args")}
    said = _in_box(args) if isinstance(args, str) else None
    if said is not None:
        return {**beside, **said}
    return {**entry, "type": "comment" if "comment" in offered else "reject"}


def _in_box(text: str) -> Entry | None:
    """Return the decision typed into the box, in its word or as JSON; None for other words."""
    said = said_in_words(text)
    plain = text.strip().strip("`")
    if said is not None or not _JSON.match(plain):
        return said
    try:
        pasted = read_json(plain)
    except NotJsonError as error:
        raise UnusableAnswerError(
            f"The text begins like JSON and is none ({error}). Mend it, or say it in words."
        ) from None
    return {"resume": pasted}


AGENT_INBOX = Client(
    "agent-inbox",
    is_array,
    _draw,
    {"args": (("approve", "edit", "reject", "comment"), _read)},
    _translate,
)
