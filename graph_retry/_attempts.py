"""Attempt records: open one, merge updates into a ledger, and read one back.

A record holds only changes. The functions here return it with every key and all its params.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from graph_retry._json import is_array, is_number, is_object
from graph_retry._params.codec import Encoded
from graph_retry._params.patch import apply_patch, diff_views, initial_patch
from graph_retry.errors import ReplayMismatch
from graph_retry.records import SCHEMA_VERSION, Attempt

_NOT_KEPT = {
    "status": "failed",
    "params_patch": None,
    "failure": {
        "kind": "permanent",
        "type": "NotKept",
        "message": "the record is in a checkpoint that was deleted or is not shown",
    },
}
"""The default of a record whose checkpoint cannot be read. It failed, or it was the last one."""

_KEPT = {"number", "kept_in", "redacted"}
"""The keys in state of a record that another checkpoint keeps."""

_PLACES = 8
"""Places that state names: more than one record is lost only if all of these are deleted."""

_MOST_LISTED = 100_000
"""Records that are listed at most. A larger number in state was not written by this library."""


def merge_attempts(
    ledger: list[Attempt] | None, updates: Sequence[dict[str, Any] | Attempt] | None
) -> list[Attempt]:
    """Reduce updates into the ledger: a known `number` is completed, a new one is appended.

    Of many records that checkpoints keep, only the first and the last ones stay. The checkpoint of
    a later record names the places of the earlier ones, and `listed` lists them again.

    Example:
        >>> merge_attempts([{"number": 1, "raw": None}], [{"number": 1, "status": "failed"}])
        [{'number': 1, 'raw': None, 'status': 'failed'}]
    """
    merged: dict[int, Any] = {attempt["number"]: attempt for attempt in ledger or []}
    for update in updates or []:
        number = update["number"]
        # If a record is kept in another checkpoint, state holds only this update.
        known: Any = {} if update.get("kept_in") else merged.get(number, {})
        merged[number] = {**known, **update}
    return without_implied(list(merged.values()))


def without_implied(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Leave out the records that `listed` lists again."""
    kept = sum(bool(record.get("kept_in")) for record in attempts)
    return [
        record
        for position, record in enumerate(attempts)
        if not (0 < position < kept - _PLACES and record.keys() <= _KEPT)
    ]


def listed(attempts: Sequence[Attempt]) -> list[Attempt]:
    """List all records, with the left-out ones. Each is in the checkpoint of the next record.

    Example:
        >>> in_state = [{"number": 1}, {"number": 4, "kept_in": {"checkpoint_id": "1f0"}}]
        >>> [record["number"] for record in listed(in_state)]
        [1, 2, 3, 4]
    """
    for record in attempts:
        number = record.get("number") if is_object(record) else None
        if type(number) is not int or number > _MOST_LISTED:
            return list(attempts)  # a copy: the caller owns the list
    made: list[Attempt] = []
    for record in attempts:
        if made and record.get("kept_in"):
            fields = {key: value for key, value in record.items() if key in _KEPT}
            missing = range(made[-1]["number"] + 1, record["number"])
            made += [cast("Attempt", {**fields, "number": number}) for number in missing]
        made.append(record)
    return made


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
    versions = (attempt.get("schema_version", 1) for attempt in attempts)
    newest = max(versions, default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise ReplayMismatch(
            f"the ledger has schema version {newest} and this library knows {SCHEMA_VERSION}: "
            "upgrade graph-retry to continue this thread.",
            list(attempts),
        )


def ledgers_in(values: Any) -> Iterator[tuple[str, list[Attempt]]]:
    """Yield the ledgers among state values, under whatever key."""
    for key, value in cast("dict[str, Any]", values if isinstance(values, dict) else {}).items():
        records = value if is_array(value) else []
        if records and isinstance(records[-1], dict) and "params_patch" in records[-1]:
            yield key, listed(records)


def records_in(values: Any) -> list[Attempt]:
    """Return the first ledger among state values, empty if there is none."""
    return next(ledgers_in(values), ("", list[Attempt]()))[1]


def readable(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return a ledger with every key of this version. Keys that an older version lacked are blank.

    Raises:
        ReplayMismatch: If a newer version of this library wrote it, or it is not a ledger.
    """
    check_version(attempts)
    for position, attempt in enumerate(attempts, start=1):
        kept_elsewhere = attempt.get("kept_in") and "number" in attempt
        for key in () if kept_elsewhere else ("number", "status", "params_patch"):
            if key not in attempt:
                msg = (
                    f"record {position} of the ledger has no `{key}`: graph-retry did not write it."
                )
                raise ReplayMismatch(msg, list(attempts))
    return [filled(attempt) for attempt in listed(attempts)]


def filled(attempt: Attempt) -> Attempt:
    """Return a record with every key. A record that is kept elsewhere counts as failed."""
    not_kept = _NOT_KEPT if attempt.get("kept_in") else {}
    return cast("Attempt", {**_blank(), **not_kept, **attempt})


def params_at(attempts: Sequence[Attempt], number: int | None = None) -> Encoded | None:
    """Rebuild the params of an attempt (default: the last); None if the ledger lacks them."""
    found: Encoded | None = None
    for attempt, params in zip(attempts, _params_of(attempts), strict=True):
        found = params
        if attempt["number"] == number:
            break
    return found


def times_sent(attempts: Sequence[Attempt], params: Encoded) -> int:
    """Count the attempts that are known to have been made with these params."""
    return sum(params == made for made in _params_of(attempts))


def _params_of(attempts: Sequence[Attempt]) -> Iterator[Encoded | None]:
    """Rebuild the params of each attempt; None if the ledger lacks them."""
    first: Encoded | None = Encoded({}, {})
    params = first
    for position, attempt in enumerate(attempts):
        # If a record is kept elsewhere, its patch starts from the first attempt's params.
        params = _patched(first if attempt.get("kept_in") else params, attempt)
        first = params if position == 0 else first
        yield params


def _patched(params: Encoded | None, attempt: Attempt) -> Encoded | None:
    patch = attempt.get("params_patch")
    replaces_all = patch is not None and [step["path"] for step in patch] == [""]
    if patch is None or (params is None and not replaces_all):
        return None
    view = apply_patch({} if params is None else params.view, patch)
    return Encoded(view, attempt.get("params_types", {}))


def decision_ids(attempts: Sequence[Attempt]) -> list[str]:
    """List the ids that decisions about these attempts came with."""
    decisions = [attempt["decision"] or {} for attempt in attempts]
    return [str(decision["decision_id"]) for decision in decisions if "decision_id" in decision]


def parsed_value(attempt: Attempt, *, as_text: bool = False) -> Any:
    """Return the value that was read from an attempt's output, before validation.

    Raises:
        ValueError: If its output is not JSON, and not wanted `as_text` either.
    """
    raw = attempt["raw"] or {}
    if attempt["parsed"] is not None or "value" in raw:
        return (attempt["parsed"] or raw)["value"]
    text: str = (attempt["repaired"] or raw).get("text", "")
    return text if as_text else json.loads(text)


def open_attempt(
    attempts: Sequence[Attempt],
    params: Encoded,
    *,
    name: str,
    author: str,
    reason: str | None,
    started_at: str,
    idempotency_key: str,
    labels: dict[str, str],
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
        **({"labels": labels} if labels else {}),
    }
    return cast("Attempt", {**_blank(), **record})


def tokens_of(attempt: Attempt) -> dict[str, int | None]:
    """Return an attempt's tokens by kind; the total is the sum where only its parts are reported.

    Example:
        >>> tokens_of({"usage": {"input_tokens": 6, "output_tokens": 4}})["total_tokens"]
        10
    """
    usage = attempt["usage"] or {}
    parts = {name: _count(usage.get(name)) for name in ("input_tokens", "output_tokens")}
    known = [count for count in parts.values() if count is not None]
    total = _count(usage.get("total_tokens"))
    return {**parts, "total_tokens": sum(known) if total is None and known else total}


def _count(given: Any) -> int | None:
    return int(given) if is_number(given) else None


def _blank() -> dict[str, Any]:
    """Return an empty record."""
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


def located(values: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a call's state for another namespace: the places in its ledger name this one."""
    moved = {
        key: [
            cast("Attempt", {**attempt, "kept_in": {"checkpoint_ns": namespace, **place}})
            if (place := attempt.get("kept_in"))
            else attempt
            for attempt in records
        ]
        for key, records in ledgers_in(values)
    }
    return {**values, **moved}
