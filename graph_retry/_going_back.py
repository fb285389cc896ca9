"""An answer for an earlier attempt than the one under review, and the position it leads to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from uuid import uuid4

from graph_retry._attempts import params_at
from graph_retry._json import is_object
from graph_retry._params.codec import Encoded
from graph_retry._review.deadline import now
from graph_retry._review.decisions import ROWS
from graph_retry._state import Loop, OpenReview, fresh_review, loop_of
from graph_retry.records import Attempt, Failure

REWIND = "rewind"
REFUSED = "this rewind is refused: "
_SUCCEEDED: Failure = {"kind": "rejected_input", "type": "Rewound", "message": "it succeeded"}


class Fork(NamedTuple):
    """An answer to an earlier attempt: its decision, the attempts before it, and the params.

    With `again` the last of `attempts` is made once more instead of being answered. `problem` tells
    why that cannot be.
    """

    answer: dict[str, Any]
    attempts: list[Attempt]
    params: Encoded
    again: bool
    reason: str
    problem: str | None

    def kept(self, decision: dict[str, Any]) -> list[Attempt]:
        """Return the attempts that stay, the decision noted on the one it answers."""
        if self.again and any(ROWS[decision["type"]].calls):
            return self.attempts[:-1]
        last: Any = {**self.attempts[-1], "decision": decision}
        return [*self.attempts[:-1], last]


def goes_back(answer: Any) -> bool:
    """Return whether an answer may be about an earlier attempt than the one under review."""
    return is_object(answer) and REWIND in answer


def fork_of(answer: Any, attempts: list[Attempt]) -> Fork | None:
    """Read `{…, "rewind": {"attempt": 2, "again": true}}`; None for any other answer.

    A number that is not in the ledger counts as no rewind: the answer is then held against the
    open review, where the unknown `rewind` does nothing.
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
    reason = f"went back from attempt {attempts[-1]['number']}"
    gone = record["kept_in"] is not None or params is None
    problem = (
        f"attempt {number} cannot be gone back to, since the checkpoint that kept it was deleted: "
        "name another one, or answer without `rewind`"
    )
    return Fork(
        said,
        before,
        params or Encoded({}, {}),
        bool(asked.get("again")),
        reason,
        problem if gone else None,
    )


def forked(loop: Loop) -> Loop:
    """Return the position an answer that goes back starts from, with the whole ledger in state.

    Nothing is suggested there.
    """
    review = loop["review"]
    assert review is not None  # noqa: S101
    bare: Any = {**review, "suggested": None, "suggested_types": {}, "suggested_by": None}
    return {**loop, "review": bare, "fork": review["review_id"], "seen": [], "spent": None}


def reopened(state: Mapping[str, Any]) -> Loop:
    """Return the position of a call that waits for an answer which goes back."""
    review: OpenReview = {**fresh_review(str(uuid4())), "asked_at": now()}
    return {**loop_of(state), "next": "review", "review": review}
