"""Agent Inbox: a list of one answer, with the form's fields or the response box as `args`."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_array
from graph_retry._patterns import lazy
from graph_retry._review.clients.client import (
    Client,
    Content,
    Entry,
    Form,
    Reading,
    edited_fields,
    spelled,
)
from graph_retry._review.question import UnusableAnswerError

_JSON = lazy(r"\{|\[\s*\{")


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


def _translate(entry: Entry, reading: Reading) -> Entry:
    """Read its button *Accept*, and what was typed into its box: a word or JSON decides."""
    word, args = spelled(entry.get("type")), entry.get("args")
    if word == "accept" and "args" in entry:  # the form comes back unedited
        return {**entry, "type": "approve", "args": {"action": edited_fields(args).title}}
    if word != "response":
        return entry
    if entry.get("output") is not None:
        return {**entry, "type": "respond"}
    beside = {key: part for key, part in entry.items() if key not in ("type", "args")}
    typed = args.strip().strip("`") if isinstance(args, str) else ""
    if said := reading.in_words(typed):
        if spelled(said["type"]) == "accept" and {"accept", "approve"} <= {*reading.offered}:
            raise UnusableAnswerError(
                "Accept can mean two things here, so nothing was done. Write `overrule` to take "
                "the output although it is not valid, or `approve` to call again."
            )
        return {**beside, **said}
    if _JSON.match(typed):
        return {**beside, "resume": typed}
    return {**entry, "type": "comment" if "comment" in reading.offered else "reject"}


AGENT_INBOX = Client(
    "agent-inbox",
    is_array,
    _draw,
    {"args": (("approve", "edit", "reject", "comment"), _read)},
    _translate,
)
