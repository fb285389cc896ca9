"""One review: everything needed to show a question and to judge its answer, and the verdict."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from graph_retry._output.validator import Checked
from graph_retry._params.codec import Encoded, ParamsCodec
from graph_retry._review.decision import DECISION_TYPES, Decision, DecisionType
from graph_retry.records import Failure, Issue, Repair

NOT_APPLIED = " — not applied: "
"""Stands in the headline between the title and why the last answer was refused."""


async def accept_output(output: Any) -> Checked:
    """Take any output, where the caller asked for no type."""
    return Checked(value=output, jsonable=output)


@dataclass(frozen=True, kw_only=True)
class Question:
    """One pending review of one attempt.

    `params` and `suggested` are JSON views as `ParamsCodec.encode` makes them, each with its own
    types map. `diff` tells what `suggested` changes, or else what this attempt changed, as
    `readable_diff` writes it. `check_output` validates what a person supplies, and `with_comment`
    makes params that tell the model what a person wrote, where they have a field for it. Without a
    `failure` the question is about a valid output. `output` is what may be taken, as `{"value": …}`
    in JSON: the valid one, or one that could be read but is not valid.
    """

    name: str
    attempt: int
    review_id: str
    failure: Failure | None
    params: dict[str, Any]
    codec: ParamsCodec[Any]
    types: dict[str, str] = field(default_factory=dict[str, str])
    suggested: dict[str, Any] | None = None
    suggested_types: dict[str, str] = field(default_factory=dict[str, str])
    issues: list[Issue] = field(default_factory=list[Issue])
    raw_output: str | None = None
    output: dict[str, Any] | None = None
    repairs: list[Repair] = field(default_factory=list[Repair])
    lossless: bool | None = None
    suggested_by: str | None = None
    diff: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    note: str | None = None
    problem: str | None = None
    asked_at: str | None = None
    expires_at: str | None = None
    allowed: tuple[DecisionType, ...] = DECISION_TYPES
    locked: tuple[str, ...] = ()
    output_schema: dict[str, Any] | None = None
    check_output: Callable[[Any], Awaitable[Checked]] = accept_output
    with_comment: Callable[[str], Encoded] | None = None
    seen_decisions: tuple[str, ...] = ()
    labels: dict[str, str] = field(default_factory=dict[str, str])
    redact: Callable[[str], str] | None = None

    @property
    def title(self) -> str:
        """The headline clients show and send back: function, attempt number and error class."""
        if self.failure is None:
            return f"{self.name} awaits approval (attempt {self.attempt})"
        return f"{self.name} failed (attempt {self.attempt}): {self.failure['type']}"

    def has_title(self, title: str) -> bool:
        """Tell whether a headline is this question's, as it was first asked or asked again."""
        known = (self.title.strip(), self.name.strip())
        return title.strip() in known or title.startswith(f"{self.title}{NOT_APPLIED}")

    @property
    def shown(self) -> dict[str, Any]:
        """The params a person looks at, approves and edits: the suggested ones if there are any."""
        return self.params if self.suggested is None else self.suggested

    @property
    def shown_types(self) -> dict[str, str]:
        """The types map that belongs to `shown`."""
        return self.types if self.suggested is None else self.suggested_types

    @property
    def offered(self) -> tuple[DecisionType, ...]:
        """The decisions that make sense here: the allowed ones, where there is what they need."""
        impossible: dict[DecisionType, bool] = {
            "edit": self.codec.is_empty,
            "comment": self.with_comment is None,
            "accept": self.output is None or self.failure is None,
        }
        return tuple(kind for kind in self.allowed if not impossible.get(kind))


@dataclass(frozen=True)
class Accepted:
    """A decision that holds. `params` and `types` are the next attempt's, where one follows."""

    decision: Decision
    params: dict[str, Any] | None = None
    types: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class Refused:
    """An answer that cannot be applied; `problem` tells the person why and what to do."""

    problem: str


class UnusableAnswerError(ValueError):
    """An answer that cannot be applied, on its way to a `Refused`; the text is the problem."""
