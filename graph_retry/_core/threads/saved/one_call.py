"""The `Ledger`: all attempts of one call, its outcome, and the changes between attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from graph_retry._core.params.patch import readable_diff
from graph_retry._core.review.decisions import ROWS
from graph_retry._core.state.attempts import params_at, parsed_value, readable
from graph_retry._core.state.namespaces import parts_of
from graph_retry.lossless._ground import as_repr
from graph_retry.records import Attempt, shown_record

Outcome = Literal[
    "succeeded", "responded", "overruled", "cancelled", "exhausted", "waiting", "open"
]

_ENDINGS: dict[str | None, Outcome] = {
    kind: row.outcome for kind, row in ROWS.items() if row.outcome is not None
}
"""The outcome of each decision that ends a call, even after a failed attempt."""


@dataclass(frozen=True)
class Ledger:
    """All attempts of one call, its outcome, and the changes between attempts.

    Functions such as `attempts_of` return ledgers. You can also make a ledger from any list of
    attempts, as `Ledger(error.attempts)` or `Ledger(review.history)`.
    """

    attempts: list[Attempt]
    """The records of the attempts, in order."""

    namespace: str = ""
    """The checkpoint namespace that identifies the call in its thread; empty if unknown."""

    root: str = ""
    """The id of the outermost graph's checkpoint from which the call was made; empty if unknown."""

    current: bool = True
    """Whether the call belongs to the present course of the thread.

    False if a fork of the thread has replaced the call. True also if the checkpoints that would
    show the fork were deleted.
    """

    waits: bool | None = None
    """Whether the thread waits for a person to answer this call.

    False if the call has ended. None if unknown, or if the thread continued without the call.
    """

    ended_by: Literal["", "fork", "input", "update"] = ""
    """The event that ended the call's review before anybody answered; empty if there was none.

    `input` is a new input of the thread, and `fork` is a run from an earlier checkpoint. `update`
    is an update of the thread's state, such as *Mark as Resolved* in Agent Inbox.
    """

    thread: str = ""
    """The thread's id; empty if unknown."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "attempts", list(map(shown_record, readable(self.attempts))))

    @property
    def name(self) -> str:
        """The name of the call, as reviews show it; empty if no attempt has a name."""
        names = [attempt["name"] for attempt in self.attempts if attempt["name"]]
        return names[-1] if names else ""

    @property
    def node(self) -> str:
        """The name of the graph's node that made the call; empty if unknown."""
        steps = [part.name for part in parts_of(self.namespace) if part.is_task]
        return steps[-1] if steps else ""

    @property
    def title(self) -> str:
        """A title for people: `name in node`, or only one of these if they are equal or unknown."""
        return " in ".join(dict.fromkeys(filter(None, (self.name, self.node))))

    @property
    def outcome(self) -> Outcome:
        """How the call ended. `open`: it has not ended, or this is unknown."""
        if not self.attempts:
            return "open"
        last = self.attempts[-1]
        decision = last["decision"] and last["decision"]["type"]
        is_valid = last["status"] == "succeeded"
        if decision in _ENDINGS:
            return _ENDINGS[decision]
        if is_valid and decision == "approve":
            return "succeeded"
        if decision is not None or last["status"] == "running" or self.ended_by:
            return "open"
        if self.waits:
            return "waiting"
        if is_valid:
            return "succeeded"
        return "open" if self.waits is None else "exhausted"

    @property
    def has_output(self) -> bool:
        """Whether the call ended with an output, by the model or by a person."""
        return self.outcome in ("succeeded", "responded", "overruled")

    def at(self, number: int) -> Attempt:
        """Return the record of the attempt with this number. The first attempt has the number 1.

        Raises:
            ValueError: If no attempt has that number.
        """
        for attempt in self.attempts:
            if attempt["number"] == number:
                return attempt
        known = ", ".join(str(attempt["number"]) for attempt in self.attempts)
        has = f"Its attempts are {known}" if known else "It has no attempts"
        raise ValueError(f"this ledger has no attempt {as_repr(number)}. {has}.")

    def params_at(self, number: int) -> dict[str, Any]:
        """Return the params of one attempt, as JSON.

        Raises:
            ValueError: If there is no such attempt, or if the ledger lacks its params.

        Example:
            >>> patch = [{"op": "replace", "path": "", "value": {"n": 1}}]
            >>> attempt = {"number": 1, "status": "failed", "params_patch": patch}
            >>> Ledger([attempt]).params_at(1)
            {'n': 1}
        """
        self.at(number)
        params = params_at(self.attempts, number)
        if params is None:
            raise ValueError(
                f"this ledger lacks the params of attempt {number}: its checkpoint was deleted, "
                "or the server hides it."
            )
        return params.view

    def value_at(self, number: int) -> Any:
        """Return the JSON value of an attempt's output, or its text if it is not JSON, or None."""
        return output_of(self.at(number))

    def params_diff(self, number: int, since: int | None = None) -> list[dict[str, Any]]:
        """List how the params changed since an earlier attempt (default: the previous one)."""
        before = number - 1 if since is None else since
        earlier = self.params_at(before) if before else {}
        return readable_diff(earlier, self.params_at(number))

    def output_diff(self, number: int, since: int | None = None) -> list[dict[str, Any]]:
        """List how the output changed since an earlier attempt (default: the previous one)."""
        before = number - 1 if since is None else since
        earlier = {"output": self.value_at(before)} if before else {}
        return readable_diff(earlier, {"output": self.value_at(number)})


OneCall = Annotated[
    Ledger | Sequence[Attempt],
    "the ledger of one call, such as `attempts_of(graph, config)[0]`, or its attempts",
]


def attempts_in(call: OneCall) -> Sequence[Attempt]:
    """Return the attempts of one call, given as a ledger or as a list of attempts.

    Example:
        >>> attempts_in(Ledger([]))
        []
    """
    return call.attempts if isinstance(call, Ledger) else call


def params_in(call: OneCall, number: int | None = None) -> dict[str, Any] | None:
    """Return the params of an attempt (default: the last one) as JSON; None if unknown.

    Example:
        >>> params_in(Ledger([])) is None
        True
    """
    found = params_at(attempts_in(call), number)
    return None if found is None else found.view


def output_of(attempt: Attempt) -> Any:
    """Return the value that was read from an attempt's output, or the text if it is not JSON.

    Example:
        >>> output_of({"raw": {"value": [1]}, "parsed": None})
        [1]
    """
    raw = attempt["raw"] or {}
    if attempt["parsed"] is None and "text" in raw:
        if attempt["lossless"] is None:  # The model's text itself is the output.
            return raw["text"]
        try:
            return parsed_value(attempt)
        except ValueError:
            return raw["text"]
    return (attempt["parsed"] or raw).get("value")
