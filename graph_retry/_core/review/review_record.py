"""The record of a review. Clients, reviewers and programs show it in their own forms.

A `Question` is the record with the functions that check its answers.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, Literal, NamedTuple, Protocol

from langchain_core.runnables import Runnable

from graph_retry._core.ground.issues import SHOWN_ISSUES, cut
from graph_retry._core.ground.json import address_key, as_text
from graph_retry._core.output.validator import Checked
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.patch import Encoded
from graph_retry._core.params.prompt import Added
from graph_retry._core.review.answers import Decision
from graph_retry.lossless._ground import EscapedText
from graph_retry.records import (
    APPROVAL,
    FAILURE_KINDS,
    Addition,
    Attempt,
    Failure,
    Issue,
    Repair,
    shown_record,
)

_KEYS = {"attempt": "attempt_count"}
"""The keys in an interrupt's value that differ from their fields' names."""

NOT_APPLIED = "Not applied: "
"""The beginning of a headline with the reason why the last answer was refused."""

_ELSEWHERE = ("thread_id", "value", "history")
"""Fields that are not part of an interrupt's value."""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The rules for showing one field of a review to people and programs.

    most: Maximum characters, or list items, in an interrupt's value.
    heading: The heading under which descriptions, the console and the page show the field.
    private: How the option `redact` redacts the field: as params, as an output or as plain text.
    """

    most: int | None = None
    heading: str | None = None
    private: Literal["params", "output", "text"] | None = None


SHOWN = {
    "error": Shown(),
    "failure": Shown(),
    "issues": Shown(most=SHOWN_ISSUES),
    "raw_output": Shown(most=2_000),
    "reasoning": Shown(most=2_000, heading="The model's reasoning"),
    "sent": Shown(heading="Sent by middleware instead of the params", private="params"),
    "output": Shown(private="output"),
    "doubts": Shown(most=1_000, heading="Look here first"),
    "params": Shown(private="params"),
    "suggested_params": Shown(private="params"),
    "alternatives": Shown(private="params"),
    "diff": Shown(),
    "problem": Shown(most=2_000, private="text"),
    "answer_issues": Shown(most=SHOWN_ISSUES),
    "note": Shown(most=1_000, private="text"),
    "repairs": Shown(most=20),
}
"""How fields are shown. A field without an entry is short: not cut, not redacted, `LISTED`."""


@dataclass(frozen=True, kw_only=True)
class Review:
    """One open question: a failure or a valid output, its params, and the suggested change.

    failure, error: Why the attempt failed. In the review of a valid output, None and "".
    output: The output that a person may take: by `approve` if valid, by `accept` if invalid.
    doubts: The fields of a valid output that a gate doubts, one line for each.
    alternatives: Params to choose from, the suggested ones first; usually empty.
    reasoning: The model's reasoning before its answer (the ledger has up to 20,000 characters).
    sent: Values that an agent's middleware sent instead of those in the params.
    repairs, lossless: The repairs of the model's text, and whether they lost nothing.
    redacted: Whether the option `redact` is set: texts and params then differ from the originals.
    note: Why automation stopped.
    problem, answer_issues: Why the last answer was not applied, as a text and by field.
    diff: The changes of the suggestion. Without a suggestion, the changes of this attempt.
    asked_at, expires_at, deferred_until: Times in ISO 8601 and UTC. The last two are None if the
        review never expires, or is not deferred.
    subject: The value of the call's option `subject`.
    value: The whole value of the LangGraph interrupt.
    history: The ledger so far; empty if the call's own state cannot be read, as in the inbox of a
        server.
    """

    thread_id: str | None = None
    review_id: str
    function_name: str
    attempt: int
    error: str = ""
    failure: Failure | None
    issues: list[Issue] = field(default_factory=list[Issue])
    raw_output: str | None = None
    reasoning: str | None = None
    sent: dict[str, Any] | None = None
    output: Any = None
    doubts: str | None = None
    params: dict[str, Any]
    suggested_params: dict[str, Any] | None = None
    suggested_by: str | None = None
    alternatives: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    diff: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    problem: str | None = None
    answer_issues: list[Issue] = field(default_factory=list[Issue])
    asked_at: str | None = None
    expires_at: str | None = None
    deferred_until: str | None = None
    labels: dict[str, str] = field(default_factory=dict[str, str])
    subject: str | None = None
    note: str | None = None
    repairs: list[Repair] = field(default_factory=list[Repair])
    lossless: bool | None = None
    redacted: bool = False
    value: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    history: list[Attempt] = field(default_factory=list[Attempt], repr=False)

    @property
    def headline(self) -> str:
        """The headline of the review: function, attempt and error class."""
        if self.failure is None or self.is_before_call:
            return f"{self.function_name} awaits approval (attempt {self.attempt})"
        return f"{self.function_name} failed (attempt {self.attempt}): {self.failure['type']}"

    @property
    def is_before_call(self) -> bool:
        """Whether a person must approve the call before it is made."""
        return self.failure is not None and self.failure["type"] == APPROVAL

    @property
    def summary(self) -> str:
        """The failure kind in two words, or the word for a valid output."""
        return self._told[0]

    @property
    def sentence(self) -> str:
        """The failure kind in a sentence, or a sentence about the valid output."""
        return self._told[1]

    @property
    def _told(self) -> tuple[str, str]:
        if self.failure is None:
            return "valid, to approve", "The model's output is valid. Should it be used?"
        if self.is_before_call:
            return "to approve", "Nothing has been called yet. Should this call be made?"
        # A newer server may know further kinds of failures.
        return FAILURE_KINDS.get(self.failure["kind"], FAILURE_KINDS["permanent"])[:2]

    @property
    def key(self) -> str:
        """The review's name in URLs. It reveals nothing about the review."""
        return address_key(self.thread_id, self.review_id)

    @property
    def title(self) -> str:
        """The headline and a short id of the question. Forms show the title and send it back."""
        return f"{self.headline} [{self.review_id[:6]}]"

    @property
    def shown(self) -> dict[str, Any]:
        """The params that a person approves or edits: the suggested params, if there are any."""
        return self.params if self.suggested_params is None else self.suggested_params

    @property
    def quoted(self) -> list[tuple[str, str]]:
        """The heading and the text of each field that has a heading and is not empty."""
        facts = ((shown.heading, getattr(self, name)) for name, shown in SHOWN.items())
        return [(heading, as_text(fact)) for heading, fact in facts if heading and fact]

    @property
    def allowed_decisions(self) -> list[str]:
        """The decisions that this question offers, such as `approve`."""
        return list(self.value["review_configs"][0]["allowed_decisions"])

    @property
    def params_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of an edit's params (all optional); None if edits are not allowed."""
        return self._part("params")

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of an output; None if `respond` is not allowed."""
        return self._part("output")

    def _part(self, name: str) -> dict[str, Any] | None:
        parts: dict[str, Any] = self.value["response_schema"].get("$defs", {})
        return parts.get(name)


_IN_VALUE = {
    known.name: _KEYS.get(known.name, known.name)
    for known in fields(Review)
    if known.name not in _ELSEWHERE
}

IN_JSON = ("thread_id", *_IN_VALUE)
"""The fields of a review as JSON."""

LISTED = tuple(name for name in IN_JSON if name not in SHOWN)
"""The short fields of a review, which a list of reviews keeps and shows."""


def in_value(review: Review) -> dict[str, Any]:
    """Return the record as a part of an interrupt's value."""
    return {key: getattr(review, name) for name, key in _IN_VALUE.items()}


def parts_of(
    value: dict[str, Any], history: list[Attempt], thread_id: str | None
) -> dict[str, Any]:
    """Return the arguments for `Review` from an interrupt's value, or their defaults."""
    return {
        **{name: value[key] for name, key in _IN_VALUE.items() if key in value},
        "thread_id": thread_id,
        "value": value,
        "history": list(map(shown_record, history)),
    }


async def accept_output(output: Any) -> Checked:
    """Accept any output, because no output type was given."""
    return Checked(value=output, jsonable=output)


class Told(NamedTuple):
    """Encoded params with a comment, and their added parts."""

    view: dict[str, Any]
    types: dict[str, str]
    added: Sequence[Addition] = ()


@dataclass(frozen=True, kw_only=True)
class Question(Review):
    """One open review of one attempt, before anything in it is cut or redacted.

    types, suggested_types: The Python types in the encoded params and suggested params, by path.
    added, suggested_added: The parts of these params that the library added.
    takes_output: Whether a person may take an output: a valid one, or an invalid one in JSON.
    read: This output, under the key `value`.
    part_to_change: Returns the part of this output onto which changes are merged. The merged part
        is then the answer.
    allowed: The allowed decisions; None allows all.
    used_up: Why no attempt is left; None if one is left.
    locked: Names of params that a person must not change.
    check_output: Validates an output that a person supplies.
    with_comment: Adds a comment to the params; None if the params have no field for a comment.
    seen_decisions: The ids of decisions that were already applied.
    """

    codec: ParamsCodec[Any]
    types: dict[str, str] = field(default_factory=dict[str, str])
    suggested_types: dict[str, str] = field(default_factory=dict[str, str])
    added: Sequence[Addition] = ()
    suggested_added: Sequence[Addition] = ()
    added_of_alternatives: list[list[Addition]] = field(default_factory=list[list[Addition]])
    types_of_alternatives: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    takes_output: bool = False
    read: dict[str, Any] | None = None
    part_to_change: Callable[[Any], Any] = field(default=lambda output: output)
    allowed: tuple[str, ...] | None = None
    used_up: str | None = None
    locked: tuple[str, ...] = ()
    schema_of_output: dict[str, Any] | None = None
    check_output: Callable[[Any], Awaitable[Checked]] = accept_output
    with_comment: Callable[[str], Encoded | Told] | None = None
    seen_decisions: tuple[str, ...] = ()
    redact: Callable[[str], str] | None = None

    def has_title(self, title: str) -> bool:
        """Say whether a title belongs to this question. The id in the title is optional."""
        known = (self.title, self.headline.strip(), self.function_name.strip())
        # Each round of an attempt has this title, perhaps after the reason of a refusal.
        return title.strip() in known or title.endswith(f" — {self.title}")

    @property
    def shown_types(self) -> dict[str, str]:
        """The Python types of `shown` (the suggested params, if there are any), by path."""
        return self.types if self.suggested_params is None else self.suggested_types

    def with_choice(self, place: int) -> Question:
        """Return a copy of the question with one of its alternatives as its suggestion."""
        chosen: dict[str, Any] = {"suggested_params": self.alternatives[place]}
        chosen["suggested_types"] = self.types_of_alternatives[place]
        # A question of an older version has no added parts.
        added = self.added_of_alternatives
        return replace(self, **chosen, suggested_added=added[place] if added else ())

    def told(self, message: str) -> Told:
        """Return the shown params with a comment. The params must have a field for comments."""
        assert self.with_comment is not None  # noqa: S101
        made: Any = self.with_comment(message)
        return Told(*made)

    def added_in(self, view: dict[str, Any]) -> list[Addition]:
        """Return the added parts of `shown` that are still in an edit of these params."""
        parts = self.added if self.suggested_params is None else self.suggested_added
        return Added(self.shown, parts).still_in(view)


MAX_PROBLEM = 2_000
"""Maximum characters of a refusal's text."""

AnyReview = Annotated[Review, "a review, such as one of `pending_reviews`"]
NotifyFunction = Annotated[
    Callable[[Review], Any], "a function `(review)`, such as `Slack(links, webhook)`"
]
"""A sync or async function that gets each question."""


class ReviewFunction(Protocol):
    """The signature of a reviewer function, sync or async."""

    def __call__(self, review: Review, /) -> Decision | Awaitable[Decision | None] | None:
        """Decide about a review.

        Args:
            review: The open question. Changes to this object have no effect.

        Returns:
            A decision (`approve()`, `edit(…)`, `comment(…)`, …, or its JSON). It is checked like a
            person's answer. None leaves the decision to the next reviewer, and finally to a person.
            If the decision cannot be applied, or if the function raises, a person is asked and sees
            the reason.
        """


Reviewer = ReviewFunction | Runnable[Review, Decision | None]
"""A reviewer that decides before a person is asked: a function, or a LangChain runnable."""


@dataclass
class Reading:
    """An answer during reading, and the decision that was found in it.

    `offered` lists the decisions that the question offers. `titles` are titles of questions that a
    client sent back. `from_form` means that the values came through text boxes.
    """

    offered: Sequence[str]
    titles: list[Any] = field(default_factory=list[Any])
    from_form: bool = False
    decision: Decision = field(default_factory=lambda: Decision(type="reject"))


class Refused(EscapedText, ValueError):
    """An answer that cannot be applied. `problem` gives the reason and the remedy.

    `kept` has the fields of a form that could be read. The next question shows them as the person
    typed them. `issues` has the reasons by field, as JSON Pointers into the answer's params or
    output.
    """

    def __init__(
        self, problem: str, kept: dict[str, Any] | None = None, issues: Sequence[Issue] = ()
    ) -> None:
        """Cut the text and the issues to their limits."""
        self.problem = cut(problem, MAX_PROBLEM)
        super().__init__(self.problem)
        self.kept = kept or {}
        self.issues = list(issues[:SHOWN_ISSUES])
