"""The contents of a client's file: how its questions are drawn, and how its answers are read."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graph_retry._json import is_object
from graph_retry._review.decisions import ROWS, WORDS, form_of
from graph_retry._review.question import UnusableAnswerError


class Form(NamedTuple):
    """The parts of a form; `message` is the question in one line."""

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
"""The one object of an answer that decides. `type` is its word, and `params` are those of an edit,
whatever its client calls them."""


@dataclass
class Reading:
    """The answer that is being read: the offered decisions, and facts that no entry has a key for.

    `titles` are the titles of questions that the client repeats. `from_form` tells that the params
    went through text boxes.
    """

    offered: Collection[str]
    titles: list[Any] = field(default_factory=list[Any])
    from_form: bool = False

    def fields_of(self, form: Any) -> dict[str, Any] | None:
        """Read `{"name" or "action": title, "args" or "arguments": edited fields}`."""
        if not is_object(form):
            return None
        self.titles.append(form.get("name", form.get("action")))
        self.from_form = True
        fields = form.get("args", form.get("arguments"))
        return fields if is_object(fields) else None


@dataclass(frozen=True)
class Client:
    """A client, as the ledger names it (`channel`).

    `is_sender` recognises an answer by its shape. `draw` makes the keys of an interrupt's value
    that the client reads. `translate` rewrites its keys and words as those of the table.
    """

    channel: str
    is_sender: Callable[[Any], bool]
    draw: Callable[[Form], dict[str, Any]] = lambda _: {}
    translate: Callable[[Entry, Reading], Entry] = lambda entry, _: entry


def spelled(word: Any) -> str:
    """Return a word as the table of decisions has it, without the full stop somebody typed.

    Example:
        >>> spelled(" Reject. ")
        'reject'
    """
    return str(word).strip().rstrip(".!:").rstrip().casefold()


def word_of(entry: Entry) -> str | None:
    """Return the word under `type`, or under `action` where there is no type."""
    word = entry.get("action") if entry.get("type") is None else entry["type"]
    return None if word is None else spelled(word)


def said_in_words(text: str) -> Entry | None:
    """Return the decision that a text is: its word alone, or before a colon.

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
    """Return an entry without some of its keys."""
    return {key: part for key, part in entry.items() if key not in keys}


def with_params(entry: Entry, key: str, params: Any) -> Entry:
    """Return an approval or edit with the params that its client puts under another key.

    Raises:
        UnusableAnswerError: If the entry has params already, or an edit cannot be read.
    """
    kind = WORDS.get(word_of(entry) or "")
    if kind not in ("approve", "edit"):
        return entry
    if kind == "edit" and params is None and entry[key] is not None:
        raise UnusableAnswerError(NO_FIELDS)
    if entry[key] is not None and entry.get("params") is not None:
        problem = f"The answer gives params more than once (`{key}` and `params`): give one."
        raise UnusableAnswerError(problem)
    rest = without(entry, key)
    return rest if params is None else {**rest, "params": params}
