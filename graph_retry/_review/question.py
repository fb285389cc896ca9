"""A question: the record of a review and the functions that check its answers; their effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from graph_retry._output.validator import Checked
from graph_retry._params.codec import Encoded, ParamsCodec
from graph_retry._review.review import Review

NOT_APPLIED = "Not applied: "
"""Stands in the headline before the reason why the last answer was refused, and the title."""


async def accept_output(output: Any) -> Checked:
    """Take any output, where the caller asked for no type."""
    return Checked(value=output, jsonable=output)


@dataclass(frozen=True, kw_only=True)
class Question(Review):
    """One pending review of one attempt, before anything in it is cut or redacted.

    `params` and `suggested_params` are JSON views as `ParamsCodec.encode` makes them, each with its
    own types map. `check_output` validates what a person supplies, and `with_comment` makes params
    that tell the model what a person wrote, where they have a field for it. `takes_output` tells
    whether there is an output in JSON that may be taken: the valid one, or one that could be read
    but is not valid. `read` is what changes of the output are merged onto, under `value`: the valid
    output, or what could be read. `used_up` tells that no other attempt may be made. `allowed` is
    None for all.
    """

    codec: ParamsCodec[Any]
    types: dict[str, str] = field(default_factory=dict[str, str])
    suggested_types: dict[str, str] = field(default_factory=dict[str, str])
    types_of_alternatives: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    takes_output: bool = False
    read: dict[str, Any] | None = None
    allowed: tuple[str, ...] | None = None
    used_up: bool = False
    locked: tuple[str, ...] = ()
    schema_of_output: dict[str, Any] | None = None
    check_output: Callable[[Any], Awaitable[Checked]] = accept_output
    with_comment: Callable[[str], Encoded] | None = None
    seen_decisions: tuple[str, ...] = ()
    redact: Callable[[str], str] | None = None

    def has_title(self, title: str) -> bool:
        """Return whether a headline is this question's; people may omit its end."""
        known = (self.title, self.headline.strip(), self.function_name.strip())
        asked_again = title.startswith(NOT_APPLIED) and title.endswith(f" — {self.title}")
        return asked_again or title.strip() in known

    @property
    def shown_types(self) -> dict[str, str]:
        """The types map that belongs to `shown`."""
        return self.types if self.suggested_params is None else self.suggested_types


class Said(NamedTuple):
    """The content of an answer, before it is checked by the question.

    `binding` tells which question it is for and who gives it: `attempt`, `review_id`,
    `decision_id`, `by`, `channel`. `data` is what the decision needs in its row: params (of an
    edit, or repeated by an approval) or the output; `parts` are the keys given in its place or
    beside it. `titles` are those of questions that the client
    repeats. `from_form` tells that text boxes were in between.
    """

    type: str
    binding: dict[str, Any]
    message: str | None = None
    data: Any = None
    titles: tuple[Any, ...] = ()
    from_form: bool = False
    parts: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class CallAgain:
    """A decision's effect: another call, with these params.

    `unchanged_edit` is set if an edit changed nothing, and so counts as an approval.
    """

    params: dict[str, Any]
    types: dict[str, str]
    unchanged_edit: bool = False


@dataclass(frozen=True)
class End:
    """A decision's effect: the call ends, with the output that is shown unless there is another."""

    status: Literal["succeeded", "overruled", "cancelled"]
    output: dict[str, Any] | None = None
    without_output: bool = False


@dataclass(frozen=True)
class Wait:
    """A decision's effect: the review stays open, with these fields of its record."""

    fields: dict[str, Any]


Effect = CallAgain | End | Wait
"""The effect of a decision. Every accepted decision has one."""


@dataclass(frozen=True)
class Refused:
    """An answer that cannot be applied; `problem` explains why, and what to do.

    `kept` are the fields of a form that could be read: the next question shows them as typed.
    """

    problem: str
    kept: dict[str, Any] = field(default_factory=dict[str, Any])


class UnusableAnswerError(ValueError):
    """An answer that cannot be applied, on its way to a `Refused`; the text is the problem."""

    def __init__(self, problem: str, kept: dict[str, Any] | None = None) -> None:
        """Keep the fields that could be read."""
        super().__init__(problem)
        self.kept = kept or {}


class NoDecisionError(UnusableAnswerError):
    """An answer that is not a decision; the message lists the decisions."""
