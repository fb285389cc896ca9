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
"""The state key of the output that a review is about, as `{"value": …}`: a valid one that waits for
approval, or one that `accept` may take. No output of the graph, so that nobody takes it for one."""


class OpenReview(TypedDict):
    """The open question: which one it is, and what is suggested.

    `agents` are the automatic reviewers whose proposal was not applied: `by`, `decision`, and the
    `problem` with it; None before they were asked.
    `round` counts the questions asked about one attempt; `problem` says why the last answer to it
    was not taken; `note` why automation stopped. `noted` are fields of its record as decisions
    set them that left it open, and `before` are those decisions. `asked_at` and `expires_at` are
    ISO 8601 in UTC.
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
    """The loop's position, beside the ledger. Plain JSON.

    `next` is the step to run; `types` belongs to the params in state, which `author` made for
    `reason`; `automatic` counts revisions since a reviewer last decided. `fork` is the review at
    which somebody last went back to an earlier attempt. `identity` is what the call is known by,
    and `given` the params it was made with, where `lessons` changed them before the first attempt.
    `origin` tells calls apart in idempotency keys where no namespace does. `task_path` is where
    LangGraph placed the task that made the call. `note` tells people that it may be a call
    which asked before, with other params. `seen` are the ids of decisions about attempts whose
    records are not in state, and `spent` is what those attempts have spent. `continues` is the
    namespace of the call before a fork that this one goes on with.
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
    """Return the id of a question about an attempt, known by its idempotency key.

    Each time that it is asked again the round is one higher, and the id another.
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
    """Read the loop's position from state; what an older version did not keep is as at first."""
    loop = cast("Loop", {**fresh_loop(), **(state.get(LOOP) or {})})
    if loop["review"]:
        loop["review"] = cast("OpenReview", {**fresh_review(""), **loop["review"]})
    return loop


def is_open(values: Mapping[str, Any], review_id: str | None) -> bool:
    """Tell by a call's own state whether it still waits for this review's answer."""
    asked: OpenReview | None = loop_of(values)["review"]
    return values.get(ANSWER) is None and asked is not None and asked["review_id"] == review_id


def schemas(
    keys: Mapping[str, str], params_type: Any, *, lessons: int | None
) -> tuple[type[Any], type[Any], type[Any], type[Any]]:
    """Return state, input and output schema for these state keys, and the input as users see it.

    They are TypedDicts made at run time because users may name the keys. Without a `params_type`
    (the function form) input and output are the whole state. `lessons` is how many are kept.
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
