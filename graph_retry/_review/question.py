"""A question (a review with the functions that check its answers), and the effects of answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from graph_retry._output.validator import Checked
from graph_retry._params.codec import ParamsCodec
from graph_retry._params.patch import Encoded
from graph_retry._review.review import Review
from graph_retry.records import Issue

NOT_APPLIED = "Not applied: "
"""The beginning of a headline that tells why the last answer was refused."""


async def accept_output(output: Any) -> Checked:
    """Accept any output, because the caller of the node asked for no type."""
    return Checked(value=output, jsonable=output)


@dataclass(frozen=True, kw_only=True)
class Question(Review):
    """One open review of one attempt, before anything in it is cut or redacted.

    `types` and `suggested_types` are the types maps of the encoded params. `takes_output` tells
    that a person may take an output: a valid one, or an invalid one in JSON. `read` holds it under
    `value`, to merge changes onto it. `allowed` lists the allowed decisions; None allows all.
    `used_up` means that no attempt is left. `locked` names params that a person must not change.
    `check_output` validates an output that a person supplies. `with_comment` adds a comment to the
    params, and is None if they have no field for it. `seen_decisions` are ids already applied.
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
        """Return whether a title is this question's, perhaps without its id."""
        known = (self.title, self.headline.strip(), self.function_name.strip())
        asked_again = title.startswith(NOT_APPLIED) and title.endswith(f" — {self.title}")
        return asked_again or title.strip() in known

    @property
    def shown_types(self) -> dict[str, str]:
        """The types map of `shown`: of the suggested params, or without them of the params."""
        return self.types if self.suggested_params is None else self.suggested_types


class Said(NamedTuple):
    """The content of an answer, before it is checked against the question.

    `binding` has `attempt`, `review_id`, `decision_id`, `by` and `channel`. `data` is the value of
    the key that the decision needs, such as params. `parts` has the optional keys. `titles` are the
    titles that a client sends back. `from_form` tells that the values come from text boxes.
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

    `unchanged_edit` marks an edit that changed nothing, which counts as an approval.
    """

    params: dict[str, Any]
    types: dict[str, str]
    unchanged_edit: bool = False


@dataclass(frozen=True)
class End:
    """A decision's effect: the call ends, with the shown output if `output` holds no other."""

    status: Literal["succeeded", "overruled", "cancelled"]
    output: dict[str, Any] | None = None
    without_output: bool = False


@dataclass(frozen=True)
class Wait:
    """A decision's effect: the review stays open, with these fields of its record changed."""

    fields: dict[str, Any]


Effect = CallAgain | End | Wait
"""The effect of a decision. Every accepted decision has one."""


@dataclass(frozen=True)
class Refused:
    """An answer that cannot be applied; `problem` tells why, and what to do.

    `kept` are the readable fields of a form. The next question shows them as they were typed.
    `issues` tell why by field, with JSON Pointers into the params or the output of the answer.
    """

    problem: str
    kept: dict[str, Any] = field(default_factory=dict[str, Any])
    issues: list[Issue] = field(default_factory=list[Issue])


class UnusableAnswerError(ValueError):
    """An answer cannot be applied, for the reason in the text; `judge` returns it as `Refused`."""

    def __init__(
        self, problem: str, kept: dict[str, Any] | None = None, issues: Sequence[Issue] = ()
    ) -> None:
        """Store the form fields that could be read, and the issues of the others."""
        super().__init__(problem)
        self.kept = kept or {}
        self.issues = list(issues)


class NoDecisionError(UnusableAnswerError):
    """An answer that is not a decision; the message lists the decisions."""
