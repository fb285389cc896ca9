"""The contents of a client's file: how its questions are drawn and its answers read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from graph_retry._json import is_object


class Form(NamedTuple):
    """The parts of a form; `message` is the question in one line."""

    title: str
    message: str
    args: dict[str, Any]
    description: str
    offered: list[str]
    schema: dict[str, Any]


class Content(NamedTuple):
    """The content of an answer under its client's own key."""

    data: Any = None
    title: Any = None
    message: str | None = None
    from_form: bool = False


class Reading(NamedTuple):
    """The context of reading answers: the offered decisions, and the reader of typed words."""

    offered: Collection[str]
    in_words: Callable[[str], dict[str, Any] | None]


Entry = dict[str, Any]
"""The one object of an answer that decides."""


def spelled(word: Any) -> str:
    """Return a word as the table of decisions has it, without the full stop somebody typed.

    Example:
        >>> spelled(" Reject. ")
        'reject'
    """
    return str(word).strip().rstrip(".!:").rstrip().casefold()


def _as_it_is(entry: Entry, _: Reading) -> Entry:
    return entry


@dataclass(frozen=True)
class Client:
    """A client, as the ledger names it (`channel`).

    `is_sender` tells an answer by its shape. `draw` makes the keys of an interrupt's value that the
    client reads. `keys` are those it puts its content under, each with the decisions that have it
    and what reads it. `translate` puts what it says in its own way into the words of the table.
    """

    channel: str
    is_sender: Callable[[Any], bool]
    draw: Callable[[Form], dict[str, Any]] = lambda _: {}
    keys: Mapping[str, tuple[tuple[str, ...], Callable[[Any], Content]]] = field(
        default_factory=dict[str, tuple[tuple[str, ...], Callable[[Any], Content]]]
    )
    translate: Callable[[Entry, Reading], Entry] = _as_it_is


def edited_fields(form: Any) -> Content:
    """Read `{"name" or "action": title, "args" or "arguments": edited fields}`."""
    fields = form.get("args", form.get("arguments")) if is_object(form) else None
    title = form.get("name", form.get("action")) if is_object(form) else None
    return Content(fields if is_object(fields) else None, title, from_form=True)
