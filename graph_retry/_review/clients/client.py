"""The type `Client`, which each client's file fills: how it draws questions and sends answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from graph_retry._issues import literal
from graph_retry._json import is_object
from graph_retry._review.answers import Reading, Refused
from graph_retry._review.decisions import ROWS, WORDS, form_of


class Form(NamedTuple):
    """The parts from which each client's form is drawn.

    `args` are the editable params. `message` is the question in one line, and `description` in
    Markdown. `offered` lists the decisions. `schema` is the JSON Schema of a valid answer.
    """

    title: str
    message: str
    args: dict[str, Any]
    description: str
    offered: list[str]
    schema: dict[str, Any]


NO_FIELDS = (
    f"An edit needs the changed fields, which must be an object: {form_of('edit')}, or in a form's "
    "answer the edited fields as `args`."
)

Entry = dict[str, Any]
"""The object in an answer that holds the decision: its word under `type`, and the decision's keys.

A client may use other keys. Its `translate` replaces them by these."""


@dataclass(frozen=True)
class Client:
    """A client of reviews.

    `channel` is its name in the ledger. `is_sender` recognizes its answers by their shape. `draw`
    makes the keys of an interrupt's value that the client reads. `translate` rewrites the client's
    keys and words to those in the table of decisions.
    """

    channel: str
    is_sender: Callable[[Any], bool]
    draw: Callable[[Form], dict[str, Any]] = lambda _: {}
    translate: Callable[[Entry, Reading], Entry] = lambda entry, _: entry


def fields_of(form: Any, reading: Reading) -> dict[str, Any] | None:
    """Read `{"name" or "action": title, "args" or "arguments": edited fields}`."""
    if not is_object(form):
        return None
    reading.titles.append(form.get("name", form.get("action")))
    reading.from_form = True
    fields = form.get("args", form.get("arguments"))
    return fields if is_object(fields) else None


def spelled(word: Any) -> str:
    """Return a word as the table of decisions spells it, without a typed full stop or colon.

    Example:
        >>> spelled(" Reject. ")
        'reject'
    """
    return str(word).strip().rstrip(".!:").rstrip().casefold()


def word_of(entry: Entry) -> str | None:
    """Return the word under `type`, or under `action` if there is no `type`."""
    word = entry.get("action") if entry.get("type") is None else entry["type"]
    return None if word is None else spelled(word)


def said_in_words(text: str) -> Entry | None:
    """Return the decision that a text gives, or None if it gives no decision.

    A text gives a decision by its word alone, or by its word before a colon and a message.

    Example:
        >>> said_in_words("Reject: not an invoice")
        {'type': 'reject', 'message': 'not an invoice'}
        >>> said_in_words("not an invoice")
    """
    head, _, rest = text.strip().partition(":")
    kind, rest = WORDS.get(spelled(head)), rest.strip()
    if kind is None:
        return None
    said: Entry = {ROWS[kind].data or "message": rest} if rest else {}
    if "choice" in ROWS[kind].parts and rest.isdecimal():
        said = {"choice": int(rest)}
    return {"type": spelled(head), **said}


def without(entry: Entry, *keys: str) -> Entry:
    """Return an entry without the given keys."""
    return {key: part for key, part in entry.items() if key not in keys}


def _is_form_without_fields(form: Any) -> bool:
    """Return whether a form sends an approval without fields; it may still name its question."""
    named = form if is_object(form) else {}
    return not form or {key for key in named if named[key] is not None} in ({"name"}, {"action"})


def with_params(entry: Entry, key: str, params: Any) -> Entry:
    """Move the params of an approval or edit from a client's own `key` to the key `params`.

    Raises:
        Refused: If the entry also has `params`, or its params cannot be read.
    """
    kind = WORDS.get(word_of(entry) or "")
    if kind not in ("approve", "edit"):
        return entry
    if kind == "edit" and params is None and entry[key] is not None:
        raise Refused(NO_FIELDS)
    if kind == "approve" and params is None and not _is_form_without_fields(entry[key]):
        raise Refused(
            f"`{key}` of the approval is {literal(entry[key], 80)}, and no params can be read in "
            f"it. To approve, send {form_of('approve')}; to change params, send {form_of('edit')}."
        )
    if entry[key] is not None and entry.get("params") is not None:
        problem = f"The answer gives params more than once (`{key}` and `params`): give one."
        raise Refused(problem)
    rest = without(entry, key)
    return rest if params is None else {**rest, "params": params}
