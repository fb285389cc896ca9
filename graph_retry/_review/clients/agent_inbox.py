"""Agent Inbox: it sends a list of one answer, with the form or the response box as `args`."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_array
from graph_retry._patterns import lazy
from graph_retry._review.answers import Reading, Refused
from graph_retry._review.clients.client import (
    Client,
    Entry,
    Form,
    fields_of,
    said_in_words,
    spelled,
    with_params,
    without,
    word_of,
)
from graph_retry._review.decisions import WORDS

_HAVE_ARGS = ("approve", "edit", "reject", "comment")
_JSON = lazy(r"\{|\[\s*\{")


def _draw(form: Form) -> dict[str, Any]:
    return {
        "action_request": {"action": form.title, "args": form.args},
        "config": {
            "allow_accept": "approve" in form.offered,
            "allow_edit": "edit" in form.offered,
            # The response box can send each of the other decisions, as a word or as JSON.
            "allow_respond": any(kind not in ("approve", "edit") for kind in form.offered),
            "allow_ignore": "reject" in form.offered,
        },
    }


def _translate(entry: Entry, reading: Reading) -> Entry:
    """Read the form's fields, or the response box, which may hold a decision in words or JSON."""
    word, args, beside = word_of(entry), entry.get("args"), without(entry, "args")
    if word == "response" and entry.get("output") is not None:
        return {**entry, "type": "respond"}
    fields, text = fields_of(args, reading), args if isinstance(args, str) else ""
    if word == "response":
        return _typed(beside, text, reading)
    kind = WORDS.get(word or "")
    if word == "accept" and "args" in entry:  # Agent Inbox sends the unedited form back as `args`.
        return {**beside, "type": "approve"}
    if "args" not in entry or kind not in _HAVE_ARGS:
        return entry
    if text and kind != "edit":
        return {**beside, "reason": beside.get("reason") or text}
    return with_params(entry, "args", fields) if kind in ("approve", "edit") else beside


def _typed(beside: Entry, text: str, reading: Reading) -> Entry:
    typed, others = text.strip().strip("`"), without(beside, "type")
    if said := said_in_words(typed):
        if spelled(said["type"]) == "accept" and {"accept", "approve"} <= {*reading.offered}:
            raise Refused(
                "Accept can mean two things here, so nothing was done. Write `overrule` to take "
                "the output although it is not valid, or `approve` to call again."
            )
        return {**others, **said}
    if _JSON.match(typed):
        return {**others, "resume": typed}
    kind = "comment" if "comment" in reading.offered else "reject"
    return {**others, "type": kind, "reason": others.get("reason") or text}


AGENT_INBOX = Client("agent-inbox", is_array, _draw, _translate)
