"""The state keys of the loop: its position, a written answer, and the output under review."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from typing_extensions import TypedDict

from graph_retry._core.ground.json import digest
from graph_retry._core.ground.wording import passed_as
from graph_retry.records import Addition, Attempt, Issue, SavedFunction, Sealed

LOOP = "retry_loop"
"""The state key of a `Loop`, which holds the next step and the data that it needs."""

ANSWER = "retry_answer"
"""The state key of an answer that `resume` wrote and that no step has read yet."""

REVIEWED = "retry_output"
"""The state key of a result that is not yet the call's output, as `{"value": …}`.

The result is not validated yet, or waits for an approval, or is an invalid output that a person may
accept. The key is not an output key of the graph, so that nobody mistakes the result for the call's
output.
"""

WRITES = "retry_writes"
"""The state key of what the user's function wrote, as pairs `[channel, value]`.

When the call has succeeded, these values are written into the state of the caller's graph.
"""


class OpenReview(TypedDict):
    """The open question about an attempt. Times are ISO 8601 in UTC.

    round: The number of this question about the attempt. The first question is 1. The number grows
        by 1 whenever the question is asked again.
    suggested: The suggested params, as a JSON view.
    suggested_types: The Python types of the suggested params.
    suggested_by: The author of the suggested params, such as `hook:NAME`.
    suggested_added: The parts that were added to the suggested params; see `Attempt.added`.
    agents: The automatic reviewers that did not decide, each as `by`, `decision` and `problem`.
        None means that no reviewer was asked yet.
    note: The reason why automation stopped.
    problem: The reason why the last answer was refused.
    answer_issues: The problems of the last answer, by field of its params or output.
    noted: Fields of the question that earlier decisions set, such as the time of a `defer`.
    before: The earlier decisions, which left the review open.
    asked_at: The time at which the question was first asked.
    expires_at: The time at which the review expires; None if it never expires.
    """

    review_id: str
    round: int
    suggested: dict[str, Any] | None
    suggested_types: dict[str, str]
    suggested_by: str | None
    suggested_added: list[Addition]
    agents: list[dict[str, Any]] | None
    note: str | None
    problem: str | None
    answer_issues: list[Issue]
    noted: dict[str, Any]
    before: list[dict[str, Any]]
    asked_at: str | None
    expires_at: str | None


class Sums(TypedDict):
    """Sums over the earlier attempts whose whole records are not in state.

    seen: The ids of decisions about these attempts.
    spent: The budget that these attempts have used.
    """

    seen: list[str]
    spent: Any


def no_sums() -> Sums:
    """Return the sums while state has all whole records."""
    return {"seen": [], "spent": None}


def decision_ids(attempts: Sequence[Attempt]) -> list[str]:
    """List the `decision_id`s that clients sent with decisions about these attempts."""
    decisions = [attempt["decision"] or {} for attempt in attempts]
    return [str(decision["decision_id"]) for decision in decisions if "decision_id" in decision]


class Loop(Sums):
    """The loop's position: everything that a step needs beside the params and the ledger.

    next: The step to run next.
    types: The Python types of the params in state.
    author: The author of these params, as the ledger names authors.
    reason: The reason why the params were made.
    added: The parts that were added to the params, as sealed by the step that wrote the params.
    automatic: The number of automatic revisions since a reviewer last decided.
    output_types: The Python types of an output that was not validated.
    review: The open question; None if nobody is asked.
    fork: The id of the review at which somebody last rewound the call.
    identity: The identity of the call; see `identity.py`.
    function: The values that the call's function held when the call began; None if the call's task
        or key identifies the call, or if an earlier version saved the call.
    given: The call's original params, if lessons changed them before attempt 1.
    origin: A part of idempotency keys, for calls that share a namespace.
    task_path: The path of nodes that leads to the task of the call, without task ids.
    note: A warning for reviewers that this call may be meant to continue a waiting call.
    continues: The namespace of the call before a fork, if this call continues it.
    has_context: Whether the run of an attempt had a `context`.
    stopped: The reason why the call ended as `exhausted`, and the remedy.
    """

    next: str
    types: dict[str, str]
    author: str
    reason: str | None
    added: Sealed | None
    automatic: int
    output_types: dict[str, str]
    review: OpenReview | None
    fork: str | None
    identity: str | None
    function: SavedFunction | None
    given: dict[str, Any] | None
    origin: str | None
    task_path: str | None
    note: str | None
    continues: str | None
    has_context: bool
    stopped: str | None


def summed(loop: Loop, records: list[Attempt], spent_on: Callable[..., Any] | None) -> Loop:
    """Add records that become stubs to the sums. `spent_on` is a method of the budget."""
    with passed_as("budget"):
        spent = spent_on(records, loop["spent"]) if spent_on else loop["spent"]
    return {**loop, "seen": [*loop["seen"], *decision_ids(records)], "spent": spent}


def fresh_loop() -> Loop:
    known: Any = {
        "next": "call",
        "types": {},
        "author": "caller",
        "automatic": 0,
        "output_types": {},
    }
    none = dict.fromkeys(Loop.__annotations__)
    return cast("Loop", {**none, **known, **no_sums(), "has_context": False})


def review_id_of(attempt_key: str, round_: int) -> str:
    """Return the id of a question, which changes when the question is asked again."""
    return digest(attempt_key, round_)


def fresh_review(review_id: str) -> OpenReview:
    """Return a new question without suggestions or times."""
    empty: Any = {"suggested_types": {}, "suggested_added": [], "answer_issues": [], "noted": {}}
    known: Any = {"review_id": review_id, "round": 1, "before": [], **empty}
    return cast("OpenReview", {**dict.fromkeys(OpenReview.__annotations__), **known})


def loop_of(state: Mapping[str, Any]) -> Loop:
    """Read the `Loop` from state. Keys that an older version did not save get initial values."""
    loop = cast("Loop", {**fresh_loop(), **(state.get(LOOP) or {})})
    if loop["review"]:
        loop["review"] = cast("OpenReview", {**fresh_review(""), **loop["review"]})
    return loop


def is_open(values: Mapping[str, Any], review_id: str | None) -> bool:
    """Return whether a call with this state waits for an answer to this review."""
    loop: Any = values.get(LOOP) or {}
    asked: OpenReview | None = loop.get("review")
    return values.get(ANSWER) is None and asked is not None and asked["review_id"] == review_id
