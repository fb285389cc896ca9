"""The data of a review: a call that is paused until a person decides how it continues.

`Review` is the public record, which clients show. `Question` is the same record before anything is
shortened or redacted, with the functions that check an answer.
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
"""The fields of `Review` whose key in the interrupt's value has a different name."""

NOT_APPLIED = "Not applied: "
"""The start of a title that tells why the last answer was refused."""

_ELSEWHERE = ("thread_id", "value", "history")
"""The fields of `Review` that are not copied into the interrupt's value."""


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
"""How each long or private field of a review is shown.

Any other field is short: it is never shortened or redacted, and it stays in lists of reviews
(`LISTED`).
"""


@dataclass(frozen=True, kw_only=True)
class Review:
    """One open question: a failed attempt or a valid output, about which a person must decide.

    failure: Why the attempt failed, as a record; None for a valid output.
    error: Why the attempt failed, as a text; "" for a valid output.
    output: The output that a person may take: by `approve` if valid, by `accept` if invalid.
    doubts: The fields of a valid output that a gate doubts, one line for each.
    params: The params of the attempt.
    suggested_params: The params that are suggested for the next attempt, or None.
    alternatives: Params to choose from, the suggested ones first; usually empty.
    reasoning: The model's reasoning before its answer (the ledger has up to 20,000 characters).
    sent: Values that an agent's middleware sent instead of those in the params.
    repairs: The repairs of the model's text.
    lossless: Whether the text was read without a guess and without rounding a number.
    redacted: Whether the option `redact` is set: texts and params then differ from the originals.
    note: Why automatic retries stopped.
    problem: Why the last answer was not applied, as a text; None if there was no such answer.
    answer_issues: Why the last answer was not applied, by field.
    diff: The changes from the attempt's params to the suggestion. Without a suggestion, the changes
        that were made for this attempt.
    asked_at: The time of the question, in ISO 8601 and UTC.
    expires_at: The time at which the review expires, or None.
    deferred_until: The time until which the review is deferred, or None.
    subject: The value of the call's option `subject`.
    value: The whole value of the LangGraph interrupt.
    history: The records of all attempts so far (the ledger). Empty if the call's own state cannot
        be read, as in the inbox of a server.
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
        """One line about the review, such as `extract failed (attempt 2): TimeoutError`."""
        if self.failure is None or self.is_before_call:
            return f"{self.function_name} awaits approval (attempt {self.attempt})"
        return f"{self.function_name} failed (attempt {self.attempt}): {self.failure['type']}"

    @property
    def is_before_call(self) -> bool:
        """Whether this review asks a person to approve a call before the model is called."""
        return self.failure is not None and self.failure["type"] == APPROVAL

    @property
    def summary(self) -> str:
        """The kind of the failure in a few words. For a valid output, `valid, to approve`."""
        return self._told[0]

    @property
    def sentence(self) -> str:
        """The kind of the failure as a sentence; for a valid output, a question about its use."""
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
        """A hash that identifies the review in URLs without revealing the review id."""
        return address_key(self.thread_id, self.review_id)

    @property
    def title(self) -> str:
        """The name of the review in forms: its headline and six characters of the review id."""
        return f"{self.headline} [{self.review_id[:6]}]"

    @property
    def shown(self) -> dict[str, Any]:
        """The params to approve or edit: the suggested params, or those of the attempt."""
        return self.params if self.suggested_params is None else self.suggested_params

    @property
    def quoted(self) -> list[tuple[str, str]]:
        """The fields that clients show under a heading, as pairs (heading, text)."""
        facts = ((shown.heading, getattr(self, name)) for name, shown in SHOWN.items())
        return [(heading, as_text(fact)) for heading, fact in facts if heading and fact]

    @property
    def allowed_decisions(self) -> list[str]:
        """The decisions that a person may take in this review, such as `approve`."""
        return list(self.value["review_configs"][0]["allowed_decisions"])

    @property
    def params_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of an edit's params, all optional; None if `edit` is not allowed."""
        return self._part("params")

    @property
    def output_schema(self) -> dict[str, Any] | None:
        """The JSON Schema of a response's output; None if `respond` is not allowed."""
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
"""The names of the fields that a review has when it is written as JSON."""

LISTED = tuple(name for name in IN_JSON if name not in SHOWN)
"""The names of the short fields, which a list of reviews shows."""


def in_value(review: Review) -> dict[str, Any]:
    """Return the fields of a review under the keys of the interrupt's value."""
    return {key: getattr(review, name) for name, key in _IN_VALUE.items()}


def parts_of(
    value: dict[str, Any], history: list[Attempt], thread_id: str | None
) -> dict[str, Any]:
    """Return the arguments that rebuild a `Review` from an interrupt's value."""
    return {
        **{name: value[key] for name, key in _IN_VALUE.items() if key in value},
        "thread_id": thread_id,
        "value": value,
        "history": list(map(shown_record, history)),
    }


async def accept_output(output: Any) -> Checked:
    """Accept any output. This is the check of a call without an output type."""
    return Checked(value=output, jsonable=output)


class Told(NamedTuple):
    """Params to which a person's comment was added.

    view: The params as JSON.
    types: The Python types of values in `view`, by path.
    added: The parts of the params that this library added, such as the comment.
    """

    view: dict[str, Any]
    types: dict[str, str]
    added: Sequence[Addition] = ()


@dataclass(frozen=True, kw_only=True)
class Question(Review):
    """A review before anything is shortened or redacted, with everything that checks an answer.

    codec: Converts params to JSON and back.
    types, suggested_types: The Python types of values in `params` and `suggested_params`, by path.
    added, suggested_added: The parts of these params that this library added.
    takes_output: Whether a person may take an output: a valid one, or an invalid one in JSON.
    read: The value that was read from the model's output, under the key `value`. A person may
        change parts of it. None if this is not possible.
    part_to_change: Returns the part of this value onto which changes are merged. The merged part
        is then the person's output.
    allowed: The decisions that the option `allowed_decisions` allows; None allows all.
    used_up: Why no further attempt may be made; None if one may.
    locked: The names of params that a person must not change.
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
        """Return whether a title belongs to this question. The id in the title is optional."""
        known = (self.title, self.headline.strip(), self.function_name.strip())
        # If the question is asked again, its title begins with the reason of the refusal.
        return title.strip() in known or title.endswith(f" — {self.title}")

    @property
    def shown_types(self) -> dict[str, str]:
        """The Python types of the values in `shown`, by path."""
        return self.types if self.suggested_params is None else self.suggested_types

    def with_choice(self, place: int) -> Question:
        """Return a copy of the question that suggests the alternative at index `place`."""
        chosen: dict[str, Any] = {"suggested_params": self.alternatives[place]}
        chosen["suggested_types"] = self.types_of_alternatives[place]
        # A question of an older version has no added parts.
        added = self.added_of_alternatives
        return replace(self, **chosen, suggested_added=added[place] if added else ())

    def told(self, message: str) -> Told:
        """Return the shown params with a person's comment. `with_comment` must not be None."""
        assert self.with_comment is not None  # noqa: S101
        made: Any = self.with_comment(message)
        return Told(*made)

    def added_in(self, view: dict[str, Any]) -> list[Addition]:
        """Return those parts of the shown params that this library added and an edit kept."""
        parts = self.added if self.suggested_params is None else self.suggested_added
        return Added(self.shown, parts).still_in(view)


MAX_PROBLEM = 2_000
"""Maximum number of characters in the text of a refusal."""

AnyReview = Annotated[Review, "a review, such as one of `pending_reviews`"]
NotifyFunction = Annotated[
    Callable[[Review], Any], "a function `(review)`, such as `Slack(links, webhook)`"
]
"""A function, sync or async, that gets each new review, for example to send a message."""


class ReviewFunction(Protocol):
    """The signature of a reviewer function, sync or async."""

    def __call__(self, review: Review, /) -> Decision | Awaitable[Decision | None] | None:
        """Decide about a review. Each reviewer is asked once per question.

        Args:
            review: The open question, which offers only decisions that can be applied. Changes to
                this object have no effect.

        Returns:
            A decision (`approve()`, `edit(…)`, `comment(…)`, …, or its JSON). It is checked like a
            person's answer. If it cannot be applied, a person is asked. None leaves the decision to
            the next reviewer, and finally to a person. If the function raises, or returns something
            else, the next reviewer is asked. The person then sees the reason, and it is logged.
        """


Reviewer = ReviewFunction | Runnable[Review, Decision | None]
"""An automatic reviewer, asked before a person: a function or a LangChain runnable."""


@dataclass
class Reading:
    """The state of reading one answer: the decision, and facts about how the answer was sent.

    offered: The decisions that the question allows.
    titles: The titles that the client sent back. They tell which question the answer is for.
    from_form: Whether the values come from the text boxes of a form.
    decision: The decision that was read.
    """

    offered: Sequence[str]
    titles: list[Any] = field(default_factory=list[Any])
    from_form: bool = False
    decision: Decision = field(default_factory=lambda: Decision(type="reject"))


class Refused(EscapedText, ValueError):
    """An answer that cannot be applied. The question is then asked again.

    problem: The reason, and what to send instead.
    kept: The valid fields of a form. The next question shows them, so that nobody types them again.
    issues: The reasons by field. A path is a JSON Pointer into the params or the output of the
        answer.
    """

    def __init__(
        self, problem: str, kept: dict[str, Any] | None = None, issues: Sequence[Issue] = ()
    ) -> None:
        """Shorten the text and the list of issues to their maximum lengths."""
        self.problem = cut(problem, MAX_PROBLEM)
        super().__init__(self.problem)
        self.kept = kept or {}
        self.issues = list(issues[:SHOWN_ISSUES])
