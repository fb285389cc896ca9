"""The values that the loop keeps in graph state."""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, NotRequired, cast

from typing_extensions import TypedDict

from graph_retry._attempts import merge_attempts
from graph_retry._json import digest
from graph_retry.hooks._budget import Spent
from graph_retry.hooks._lessons import Lesson, merging_lessons
from graph_retry.records import Attempt

LOOP = "retry_loop"
ANSWER = "retry_answer"
REVIEWED = "retry_output"
"""The state key of the output under review, as `{"value": …}`: a valid output that waits for an
approval, or an invalid one that `accept` may take. It is not an output key of the graph, so that
nobody takes it for the call's output."""


class OpenReview(TypedDict):
    """The open question about an attempt. Times are ISO 8601 in UTC.

    round: Counts the questions that were asked about the attempt.
    suggested, suggested_types, suggested_by: Suggested params, their types, and their author.
    agents: The automatic reviewers that did not decide: `by`, their `decision`, and the `problem`
        with it; None before they were asked.
    note: Why automation stopped.
    problem: Why the last answer was refused.
    noted: Fields of the review that earlier decisions set, such as `defer`.
    before: Those decisions, which left the review open.
    """

    review_id: str
    round: int
    suggested: dict[str, Any] | None
    suggested_types: dict[str, str]
    suggested_by: str | None
    agents: list[dict[str, Any]] | None
    note: str | None
    problem: str | None
    noted: dict[str, Any]
    before: list[dict[str, Any]]
    asked_at: str | None
    expires_at: str | None


class Loop(TypedDict):
    """The loop's position: plain JSON beside the ledger.

    next: The step to run.
    types: The Python types of the params in state.
    author, reason: Who made these params, and why.
    automatic: Revisions since a reviewer last decided.
    output_types: The Python types of an output that was not validated.
    review: The open question.
    fork: The id of the review at which somebody last went back to an earlier attempt.
    identity: The identity of the call.
    given: The params that the call was made with, if lessons changed them before attempt 1.
    origin: Tells calls apart in idempotency keys if no namespace does.
    task_path: The place in its graphs of the task that made the call.
    note: A note to people that the call may be meant to be a waiting one with other params.
    seen: The ids of decisions about attempts whose records are not in state.
    spent: The budget that those attempts have used.
    continues: The namespace of the call before a fork that this call goes on with.
    """

    next: str
    types: dict[str, str]
    author: str
    reason: str | None
    automatic: int
    output_types: dict[str, str]
    review: OpenReview | None
    fork: str | None
    identity: str | None
    given: dict[str, Any] | None
    origin: str | None
    task_path: str | None
    note: str | None
    seen: list[str]
    spent: Spent | None
    continues: str | None


def fresh_loop() -> Loop:
    """Return the position before the first attempt."""
    return {
        "next": "call",
        "types": {},
        "author": "caller",
        "reason": None,
        "automatic": 0,
        "output_types": {},
        "review": None,
        "fork": None,
        "identity": None,
        "given": None,
        "origin": None,
        "task_path": None,
        "note": None,
        "seen": [],
        "spent": None,
        "continues": None,
    }


def review_id_of(attempt_key: str, round_: int) -> str:
    """Return the id of a question about the attempt with an idempotency key.

    A question that is asked again has the next round, and so another id.
    """
    return digest(attempt_key, round_)


def fresh_review(review_id: str) -> OpenReview:
    """Return a question with nothing suggested."""
    return {
        "review_id": review_id,
        "round": 1,
        "suggested": None,
        "suggested_types": {},
        "suggested_by": None,
        "agents": None,
        "note": None,
        "problem": None,
        "noted": {},
        "before": [],
        "asked_at": None,
        "expires_at": None,
    }


def loop_of(state: Mapping[str, Any]) -> Loop:
    """Read the loop's position from state. Keys that an older version lacked have first values."""
    loop = cast("Loop", {**fresh_loop(), **(state.get(LOOP) or {})})
    if loop["review"]:
        loop["review"] = cast("OpenReview", {**fresh_review(""), **loop["review"]})
    return loop


def is_open(values: Mapping[str, Any], review_id: str | None) -> bool:
    """Return whether a call with this state still waits for an answer to this review."""
    asked: OpenReview | None = loop_of(values)["review"]
    return values.get(ANSWER) is None and asked is not None and asked["review_id"] == review_id


def schemas(
    keys: Mapping[str, str], params_type: Any, *, lessons: int | None
) -> tuple[type[Any], type[Any], type[Any], type[Any]]:
    """Return the schemas of state, input and output, and the input as users see it.

    They are TypedDicts that are made at run time, because users may name the keys.

    Args:
        keys: The names of the state keys.
        params_type: None in the function form, where input and output are the whole state.
        lessons: The number of lessons that are kept; None if the call does not learn.
    """
    ledger = Annotated[list[Attempt], merge_attempts]
    inputs: dict[str, Any] = {
        keys["params"]: Any if params_type is None else params_type,
        keys["attempts"]: NotRequired[ledger],
    }
    outputs: dict[str, Any] = {
        keys["output"]: Any,
        keys["status"]: str,
        keys["attempts"]: ledger,
    }
    if lessons is not None:
        window = Annotated[list[Lesson], merging_lessons(lessons)]
        inputs[keys["lessons"]] = NotRequired[window]
        outputs[keys["lessons"]] = window
    private: dict[str, Any] = {LOOP: Any, ANSWER: Any, REVIEWED: Any}
    make = cast("Callable[..., type[Any]]", TypedDict)
    state = make("RetryState", {**inputs, **outputs, **private}, total=False)
    if params_type is None:
        return state, state, state, state
    shown = make("RetryInput", inputs)
    encoded = make("RetryInput", {**inputs, LOOP: NotRequired[Any]})  # see `Made.first_state`
    return state, encoded, make("RetryOutput", outputs), shown
