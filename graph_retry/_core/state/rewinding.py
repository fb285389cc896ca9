"""Read the answer of a rewind, and continue the calls of a forked thread.

A fork of a thread makes the thread's calls again. Each call of the fork continues the call that was
made before the fork, if there was one. A rewind of a finished call is a fork in which this call
gets an answer about an earlier attempt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, cast
from uuid import uuid4

from langgraph.graph import START
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from graph_retry._core.ground.json import is_object
from graph_retry._core.params.patch import Encoded
from graph_retry._core.review.deadline import now
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.state.attempts import located, params_at, records_in
from graph_retry._core.state.equal_calls import SavedCall, chosen
from graph_retry._core.state.identity import Made, changed_fields, first_params
from graph_retry._core.state.namespaces import around, outermost, without_task_ids
from graph_retry._core.state.position import (
    ANSWER,
    LOOP,
    Loop,
    OpenReview,
    fresh_review,
    loop_of,
    no_sums,
)
from graph_retry.lossless._ground import EscapedText
from graph_retry.records import Attempt, Failure, SavedFunction

REWIND = "rewind"
_SUCCEEDED: Failure = {"kind": "rejected_input", "type": "Rewound", "message": "it succeeded"}

_NEVER_ASKED = 0
"""The round of a review that nobody was asked; it only holds the answer of a rewind."""


class RewindRefused(EscapedText, ValueError):
    """A rewind cannot be applied. `rewind` then restores the thread, and raises a `ValueError`."""

    def as_told(self) -> str:
        """Return the message, which begins with "this rewind is refused"."""
        return f"this rewind is refused: {self.args[0]}"


class Rewound(NamedTuple):
    """An answer about an earlier attempt.

    answer: The answer without its key `rewind`.
    attempts: The ledger up to and including the earlier attempt.
    params: The params of the earlier attempt.
    again: Whether to make the earlier attempt again, instead of deciding its review.
    reason: The reason for the next attempt, for the ledger.
    problem: The reason why the answer must be refused; None if the answer can be applied.
    """

    answer: dict[str, Any]
    attempts: list[Attempt]
    params: Encoded
    again: bool
    reason: str
    problem: str | None

    def kept(self, decision: dict[str, Any]) -> list[Attempt]:
        """Return the attempts up to the answered attempt. If it is made again, it is left out."""
        if self.again and any(ROWS[decision["type"]].calls):
            return self.attempts[:-1]
        last: Any = {**self.attempts[-1], "decision": decision}
        return [*self.attempts[:-1], last]


def is_rewind(answer: Any) -> bool:
    """Return whether an answer has the key `rewind`, which names an earlier attempt."""
    return is_object(answer) and REWIND in answer


def rewound_by(answer: Any, attempts: list[Attempt]) -> Rewound | None:
    """Read an answer such as `{…, "rewind": {"attempt": 2, "again": true}}`.

    An answer without a valid `rewind`, or about an unknown attempt, gives None. The answer then
    counts as an answer to the open review.
    """
    asked: Any = answer.get(REWIND) if is_object(answer) else None
    number: Any = asked.get("attempt") if is_object(asked) else None
    if type(number) is not int or not 1 <= number <= len(attempts):
        return None
    said = {key: value for key, value in answer.items() if key != REWIND}
    record = attempts[number - 1]
    before = [*attempts[: number - 1], cast("Attempt", {**record, "decision": None})]
    if record["failure"] is None:
        before[-1]["failure"] = _SUCCEEDED
    params = params_at(attempts, number)
    reason = f"rewound from attempt {attempts[-1]['number']}"
    gone = record["kept_in"] is not None or params is None
    problem = (
        f"attempt {number} cannot be rewound to, since the checkpoint that kept it was deleted: "
        "name another one, or answer without `rewind`"
    )
    return Rewound(
        said,
        before,
        params or Encoded({}, {}),
        bool(asked.get("again")),
        reason,
        problem if gone else None,
    )


def position_of(loop: Loop, params: Encoded) -> Loop:
    """Return the `Loop` from which a rewind continues, with the types of the attempt's `params`.

    The fields `seen` and `spent` are empty, because state has the whole ledger after a rewind.
    """
    review = loop["review"]
    assert review is not None  # noqa: S101
    bare: Any = {**review, "suggested": None, "suggested_types": {}, "suggested_by": None}
    bare["suggested_added"] = []
    there: Loop = {**loop, "types": params.types, **no_sums()}
    return {**there, "review": bare, "fork": review["review_id"]}


def is_reopened(loop: Loop) -> bool:
    """Return whether the call had ended, and was reopened by `reopened`."""
    return loop["review"] is not None and loop["review"]["round"] == _NEVER_ASKED


def reopened(state: Mapping[str, Any]) -> Loop:
    """Return the `Loop` of a finished call that is reopened for a rewind.

    The reopened review was never asked, so an invalid answer repeats no question.
    """
    review: OpenReview = {**fresh_review(str(uuid4())), "round": _NEVER_ASKED, "asked_at": now()}
    return {**loop_of(state), "next": "review", "review": review}


class ForkNote(TypedDict):
    """A message from a fork to the calls that run in it.

    `root` is the id of the forked checkpoint of the outermost graph. `answer` is the answer for the
    call whose namespace is `call`.
    """

    root: str
    call: str
    answer: dict[str, Any] | None


@dataclass(frozen=True)
class PastCalls:
    """The calls from before a fork, which the calls of the fork may continue.

    states: The newest state of each call before the fork, by namespace, oldest call first.
    taken: The calls that are continued already, as `{namespace before the fork: namespace now}`.
    """

    fork: ForkNote
    states: dict[str, dict[str, Any]]
    taken: dict[str | None, str]

    def continued_by(self, made: Made, task: str, namespace: str) -> dict[str, Any] | None:
        """Return the state that a call had before the fork; None if it had none.

        The call before the fork has the same name, task path and identity. Equal calls differ only
        in their numbers, and are matched in order, each only once.

        Raises:
            ValueError: If a call should be rewound, but the node now calls with different params.
        """
        name, rewound, here = made.name, self.fork["call"], without_task_ids(namespace)
        if made.task_path is None:
            raise RewindRefused(f"LangGraph does not tell in which branch `{name}` is called.")
        there = {
            place: values
            for place, values in self.states.items()
            if task not in (place, around(place))  # Calls of the same task find their state.
            and loop_of(values)["task_path"] == made.task_path
            and [each.get("name", name) for each in records_in(values)[-1:]] == [name]
        }
        same = [place for place in there if loop_of(there[place])["identity"] == made.identity]
        # A lone retry node is known by its task, even if its params have changed. In the outermost
        # task of the rewound call, however, the params may come from the output of that call.
        if namespace == task and [*map(without_task_ids, there)] == [here]:
            independent = outermost(rewound) != outermost(*there)
            same = [*there] if independent or rewound in there else same
        free = [place for place in same if self.taken.get(place, namespace) == namespace]
        if made.function is not None:
            free = _of_function(made, {place: loop_of(there[place])["function"] for place in free})
        exact = (place for place in free if without_task_ids(place) == here)
        place = next(exact, next(iter(free), None))
        if place is None:
            if self.fork["answer"] is not None and rewound in there.keys() - self.taken:
                fields = changed_fields(
                    first_params(there[rewound]) or Encoded({}, {}), made.params
                )
                raise RewindRefused(
                    f"the node calls `{name}` with other params now (they differ in {fields}), so "
                    "it may be another call. Give the call a `key=` that stays the same, or give "
                    "the node its earlier params."
                )
            return None
        self.taken[place] = namespace
        values = located(there[place], place)
        loop = cast("Loop", {**loop_of(values), "continues": place})
        if place != rewound or self.fork["answer"] is None:
            return {**values, LOOP: loop}
        answer, count = self.fork["answer"], len(records_in(values))
        # A client may send a number without having read the ledger.
        if not 1 <= (number := answer[REWIND]["attempt"]) <= count:
            raise RewindRefused(f"`attempt` is {number}, and the call has {count}.")
        again: Loop = {**reopened(values), "continues": place}
        return {**values, LOOP: again, ANSWER: {"value": answer}}


def _of_function(made: Made, functions: Mapping[str, SavedFunction | None]) -> list[str]:
    """Return the namespaces of the equal calls that a call with this function may continue."""
    assert made.function is not None  # noqa: S101
    places, saved = [*functions], [*functions.values()]
    calls = {number: SavedCall(each, is_made=True) for number, each in enumerate(saved)}
    likeness = [made.function.like_saved(each).likeness for each in saved]
    if "same" in likeness:
        return [place for place, each in zip(places, likeness, strict=True) if each == "same"]
    number = chosen(made.name, calls, (), made.function)
    return [] if number is None else [places[number]]


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the state update that restores a call's earlier state."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
