"""The ledger: a list of slim attempts, and what can be told from it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from graph_retry._json import is_array
from graph_retry._params.codec import Encoded
from graph_retry._params.patch import apply_patch, diff_views, initial_patch, readable_diff
from graph_retry.errors import ReplayMismatch
from graph_retry.records import SCHEMA_VERSION, Attempt

_LEFT = {
    "status": "failed",
    "params_patch": None,
    "failure": {
        "kind": "permanent",
        "type": "NotKept",
        "message": "the record is in a checkpoint that was deleted or is not shown",
    },
}
"""What is said of a record whose checkpoint cannot be read: it failed, or no other came after."""

_STEP = re.compile(r"(.+):[0-9a-f-]{36}")
"""A part of a namespace that names a task of a graph: of its node, by its id."""


def merge_attempts(
    ledger: list[Attempt] | None, updates: Sequence[dict[str, Any] | Attempt] | None
) -> list[Attempt]:
    """Reduce updates into the ledger: a known `number` is completed, a new one is appended.

    Example:
        >>> merge_attempts([{"number": 1, "raw": None}], [{"number": 1, "status": "failed"}])
        [{'number': 1, 'raw': None, 'status': 'failed'}]
    """
    merged = list(ledger or [])
    places = {attempt["number"]: place for place, attempt in enumerate(merged)}
    for update in updates or []:
        number = update["number"]
        if number in places:
            # What is left of a record in place of it is all there is to be in state.
            known: Any = {} if update.get("kept_in") else merged[places[number]]
            merged[places[number]] = cast("Attempt", {**known, **update})
        else:
            places[number] = len(merged)
            merged.append(cast("Attempt", update))
    return merged


def check_version(attempts: Sequence[Attempt]) -> None:
    """Refuse a ledger that a newer version of this library wrote.

    Raises:
        ReplayMismatch: If its schema version is not known here.

    Example:
        >>> check_version([{"schema_version": 99}])
        Traceback (most recent call last):
        ...
        graph_retry.errors.ReplayMismatch: the ledger has schema version 99 and this library \
knows 1: upgrade graph-retry to continue this thread.
    """
    newest = max((each.get("schema_version", 1) for each in attempts), default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise ReplayMismatch(
            f"the ledger has schema version {newest} and this library knows {SCHEMA_VERSION}: "
            "upgrade graph-retry to continue this thread.",
            list(attempts),
        )


def ledgers_in(values: Any) -> Iterator[tuple[str, list[Attempt]]]:
    """Yield the ledgers among state values, whatever their keys are called."""
    for key, value in cast("dict[str, Any]", values if isinstance(values, dict) else {}).items():
        records = value if is_array(value) else []
        if records and isinstance(records[-1], dict) and "params_patch" in records[-1]:
            yield key, records


def records_in(values: Any) -> list[Attempt]:
    """Return the first ledger among state values, empty if there is none."""
    return next(ledgers_in(values), ("", list[Attempt]()))[1]


def readable(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return a ledger as this version knows it: what an older one did not record is blank.

    Raises:
        ReplayMismatch: If a newer version of this library wrote it, or it is no ledger.
    """
    check_version(attempts)
    for place, attempt in enumerate(attempts, start=1):
        for key in ("number", "status", "params_patch"):
            if key not in attempt and not (attempt.get("kept_in") and "number" in attempt):
                msg = f"record {place} of the ledger has no `{key}`: this library did not write it."
                raise ReplayMismatch(msg, list(attempts))
    return [filled(attempt) for attempt in attempts]


def filled(attempt: Attempt) -> Attempt:
    """Return a record with every key; one that is elsewhere counts as failed, nobody knows how."""
    left = _LEFT if attempt.get("kept_in") else {}
    return cast("Attempt", {**_blank(), **left, **attempt})


def params_at(attempts: Sequence[Attempt], number: int | None = None) -> Encoded | None:
    """Rebuild the params of one attempt (default: the last); None if the ledger lacks them."""
    first: Encoded | None = Encoded({}, {})
    known = first
    for place, attempt in enumerate(attempts):
        known = _patched(first if attempt.get("kept_in") else known, attempt)
        first = first if place else known
        if attempt["number"] == number:
            break
    return known if attempts else None


def _patched(params: Encoded | None, attempt: Attempt) -> Encoded | None:
    patch = attempt.get("params_patch")
    if patch is None or (params is None and [each["path"] for each in patch] != [""]):
        return None
    view = apply_patch({} if params is None else params.view, patch)
    return Encoded(view, attempt.get("params_types", {}))


def decision_ids(attempts: Sequence[Attempt]) -> list[str]:
    """List the ids that decisions about these attempts came with."""
    decisions = [attempt["decision"] or {} for attempt in attempts]
    return [str(each["decision_id"]) for each in decisions if "decision_id" in each]


def parsed_value(attempt: Attempt, *, as_text: bool = False) -> Any:
    """Return the value an attempt's output stands for, before validation.

    Raises:
        ValueError: If its output is not JSON, and not wanted `as_text` either.
    """
    raw = attempt["raw"] or {}
    if attempt["parsed"] is not None or "value" in raw:
        return (attempt["parsed"] or raw)["value"]
    text: str = (attempt["repaired"] or raw).get("text", "")
    return text if as_text else json.loads(text)


@dataclass(frozen=True)
class Ledger:
    """The attempts of one call, and what changed between them.

    Make one from any list of attempts: `Ledger(error.attempts)`, `Ledger(review.history)`.
    `namespace` tells which call of its thread it is, and `root` the checkpoint of the outermost
    graph it started from; both are empty where that is not known. One that a fork left behind is
    not `current`.
    """

    attempts: list[Attempt]
    namespace: str = ""
    root: str = ""
    current: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "attempts", readable(self.attempts))

    @property
    def name(self) -> str:
        """The call's own name, as its reviews have it; empty where no attempt tells it."""
        return next((each["name"] for each in reversed(self.attempts) if each["name"]), "")

    @property
    def node(self) -> str:
        """The graph node the call was made in, where that is known."""
        steps = [step[1] for step in map(_STEP.fullmatch, self.namespace.split("|")) if step]
        # Version 1 made a task of this name for each async call.
        return next((step for step in reversed(steps) if step != "retry_llm_call"), "")

    @property
    def title(self) -> str:
        """What to call it to a person: `name in node`, as far as they are known and differ."""
        return " in ".join(dict.fromkeys(filter(None, (self.name, self.node))))

    def at(self, number: int) -> Attempt:
        """Return one attempt, by its 1-based number.

        Raises:
            ValueError: If there is none of that number.
        """
        for attempt in self.attempts:
            if attempt["number"] == number:
                return attempt
        known = ", ".join(str(attempt["number"]) for attempt in self.attempts) or "none"
        raise ValueError(f"`attempt` is {number!r}, which this ledger does not have: {known}.")

    def params_at(self, number: int) -> dict[str, Any]:
        """Return the JSON view of the params one attempt was made with.

        Raises:
            ValueError: If there is no such attempt, or the ledger does not hold its params.

        Example:
            >>> patch = [{"op": "replace", "path": "", "value": {"n": 1}}]
            >>> attempt = {"number": 1, "status": "failed", "params_patch": patch}
            >>> Ledger([attempt]).params_at(1)
            {'n': 1}
        """
        self.at(number)
        found = params_at(self.attempts, number)
        if found is None:
            raise ValueError(
                f"this ledger does not hold the params of attempt {number}: the checkpoint that "
                "kept it was deleted, or the server does not show it."
            )
        return found.view

    def value_at(self, number: int) -> Any:
        """Return what an attempt's output was read as, or None where nothing could be read."""
        try:
            return parsed_value(self.at(number))
        except ValueError:
            return (self.at(number)["raw"] or {}).get("text") or None

    def params_diff(self, number: int, since: int | None = None) -> list[dict[str, Any]]:
        """List what changed in the params since an earlier attempt (default: the one before)."""
        before = number - 1 if since is None else since
        earlier = self.params_at(before) if before else {}
        return readable_diff(earlier, self.params_at(number))

    def output_diff(self, number: int, since: int | None = None) -> list[dict[str, Any]]:
        """List what changed in the output since an earlier attempt (default: the one before)."""
        before = number - 1 if since is None else since
        earlier = {"output": self.value_at(before)} if before else {}
        return readable_diff(earlier, {"output": self.value_at(number)})


def open_attempt(
    attempts: Sequence[Attempt],
    params: Encoded,
    *,
    name: str,
    author: str,
    reason: str | None,
    started_at: str,
    idempotency_key: str,
) -> Attempt:
    """Make the record of an attempt that is about to run."""
    before = params_at(attempts)
    record = {
        "number": attempts[-1]["number"] + 1 if attempts else 1,
        "name": name,
        "status": "running",
        "params_patch": (
            initial_patch(params.view) if before is None else diff_views(before.view, params.view)
        ),
        "params_types": params.types,
        "author": author,
        "reason": reason,
        "started_at": started_at,
        "idempotency_key": idempotency_key,
    }
    return cast("Attempt", {**_blank(), **record})


def _blank() -> dict[str, Any]:
    """Return what a record holds before anything is known."""
    return {
        "name": "",
        "params_types": {},
        "author": "caller",
        "reason": None,
        "raw": None,
        "repaired": None,
        "repairs": [],
        "lossless": None,
        "parsed": None,
        "issues": [],
        "failure": None,
        "decision": None,
        "kept_in": None,
        "usage": None,
        "finish_reason": None,
        "started_at": "",
        "duration_s": 0.0,
        "tries": 1,
        "idempotency_key": "",
        "schema_version": SCHEMA_VERSION,
    }


def digest(*parts: Any) -> str:
    """Return a short stable hash of JSON values, for keys and ids."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()
