"""Create the records of the ledger, merge updates into the ledger, and read records back.

A record in state has only the changes of the params since the attempt before it. A record of an
older version may lack keys. This module returns records with all keys and all params.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, cast

from graph_retry._core.ground.json import drawn, is_array, is_number, is_object, read_digits
from graph_retry._core.params.patch import Encoded, apply_patch, diff_views, initial_patch
from graph_retry._core.params.prompt import Added
from graph_retry.errors import ReplayMismatch
from graph_retry.records import (
    SAVED_NAMESPACE,
    SCHEMA_VERSION,
    Addition,
    Attempt,
    GateVerdict,
    Repair,
)

_NOT_KEPT = {
    "status": "failed",
    "params_patch": None,
    "failure": {
        "kind": "permanent",
        "type": "NotKept",
        "message": "the record is in a checkpoint that was deleted or is not shown",
    },
}
"""The fields of a record whose checkpoint cannot be read.

The attempt counts as failed, because another attempt followed it.
"""

ROUNDED = "rounded"
"""The kind of repair for a number or a time that lost digits."""

_KEPT = {"number", "kept_in", "redacted"}
"""The keys of a stub, which replaces a record that an earlier checkpoint holds."""

_PLACES = 8
"""The number of stubs at the ledger's end that stay in state.

Each stub names a checkpoint with earlier records. The records are lost only if the checkpoints of
all these stubs are deleted.
"""

_MOST_LISTED = 100_000
"""The largest valid number of an attempt. This library never writes a larger number."""


def merge_attempts(
    ledger: list[Attempt] | None, updates: Sequence[dict[str, Any] | Attempt] | None
) -> list[Attempt]:
    """Merge updates into the ledger, as LangGraph's reducer of the key `attempts`.

    An update completes the record with the same `number`. If the ledger has no such record, the
    update becomes a new record. The ledger keeps only its first stub and its last eight stubs.
    `listed` restores the other stubs.

    Example:
        >>> merge_attempts([{"number": 1, "raw": None}], [{"number": 1, "status": "failed"}])
        [{'number': 1, 'raw': None, 'status': 'failed'}]
    """
    merged: dict[int, Any] = {attempt["number"]: attempt for attempt in ledger or []}
    for update in updates or []:
        number = update["number"]
        # A stub replaces the whole record, whose old fields must not be merged into the stub.
        known: Any = {} if update.get("kept_in") else merged.get(number, {})
        merged[number] = {**known, **update}
    return without_implied(list(merged.values()))


def without_implied(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Keep only the first stub and the last eight stubs; `listed` restores the other stubs."""
    kept = sum(bool(record.get("kept_in")) for record in attempts)
    return [
        record
        for position, record in enumerate(attempts)
        if not (0 < position < kept - _PLACES and record.keys() <= _KEPT)
    ]


def listed(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Add the stubs that `without_implied` removed. An added stub has the next stub's checkpoint.

    Example:
        >>> in_state = [{"number": 1}, {"number": 4, "kept_in": {"checkpoint_id": "1f0"}}]
        >>> [record["number"] for record in listed(in_state)]
        [1, 2, 3, 4]
    """
    for record in attempts:
        number = record.get("number") if is_object(record) else None
        if type(number) is not int or number > _MOST_LISTED:
            return list(attempts)  # Callers may change the result, which is therefore a copy.
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
        ReplayMismatch: If this version does not know the ledger's schema version.

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
    """Yield each ledger in state values, with its state key, which users may rename."""
    return ((key, listed(records)) for key, records in _stored_in(values))


def records_in(values: Any) -> list[Attempt]:
    """Return the first ledger in state values; empty if there is none."""
    return next(ledgers_in(values), ("", list[Attempt]()))[1]


def stored_records(values: Any) -> list[Attempt]:
    """Return the first ledger in state values as it is stored, without implied stubs."""
    records = next(_stored_in(values), ("", list[Attempt]()))[1]
    _check_readable(records)
    return list(map(filled, records))


def _stored_in(values: Any) -> Iterator[tuple[str, list[Attempt]]]:
    for key, value in cast("dict[str, Any]", values if isinstance(values, dict) else {}).items():
        records = value if is_array(value) else []
        if records and isinstance(records[-1], dict) and "params_patch" in records[-1]:
            yield key, records


def readable(attempts: Sequence[Attempt]) -> list[Attempt]:
    """Return the records of a ledger with all keys; missing keys get their defaults.

    Raises:
        ReplayMismatch: If a newer version of this library wrote the list, or it is not a ledger.
    """
    _check_readable(attempts)
    return list(map(filled, listed(attempts)))


def _check_readable(attempts: Sequence[Attempt]) -> None:
    check_version(attempts)
    for position, attempt in enumerate(attempts, start=1):
        kept_elsewhere = attempt.get("kept_in") and "number" in attempt
        for key in () if kept_elsewhere else ("number", "status", "params_patch"):
            if key not in attempt:
                msg = (
                    f"record {position} of the ledger has no `{key}`: graph-retry did not write it."
                )
                raise ReplayMismatch(msg, list(attempts))


def filled(attempt: Attempt) -> Attempt:
    """Return a record with all keys; a stub becomes a failed attempt."""
    not_kept = _NOT_KEPT if attempt.get("kept_in") else {}
    return cast("Attempt", {**_blank(), **not_kept, **attempt})


def params_at(attempts: Sequence[Attempt], number: int | None = None) -> Encoded | None:
    """Rebuild an attempt's params (default: the last attempt); None if a patch is missing."""
    wanted = attempts[-1]["number"] if attempts and number is None else number
    made = zip(attempts, _params_of(attempts), strict=True)
    return next((params for attempt, params in made if attempt["number"] == wanted), None)


def added_in(attempts: Sequence[Attempt], view: Mapping[str, Any]) -> list[Addition]:
    """Return the additions to the last attempt's params that are still in `view`."""
    parts = attempts[-1].get("added") if attempts else None
    made = params_at(attempts) if parts else None
    return [] if made is None else Added(made.view, parts or ()).still_in(view)


def times_sent(attempts: Sequence[Attempt], params: Encoded) -> int:
    """Count the attempts with these params; attempts with unknown params do not count."""
    return sum(params == made for made in _params_of(attempts))


def _params_of(attempts: Sequence[Attempt]) -> Iterator[Encoded | None]:
    """Yield the params of each attempt; None if a patch is missing."""
    first: Encoded | None = Encoded({}, {})
    params = first
    for position, attempt in enumerate(attempts):
        # A stub's patch changes the first attempt's params, and not those of the previous attempt.
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


def is_returned(attempt: Attempt) -> bool:
    """Return whether the user's function returned."""
    return attempt["raw"] is not None and "received" not in attempt["raw"]


def parsed_value(attempt: Attempt, *, as_text: bool = False) -> Any:
    """Return the value that was read from an attempt's output, before validation.

    Raises:
        ValueError: If the output is not JSON and `as_text` is not set.
    """
    raw = attempt["raw"] or {}
    if attempt["parsed"] is not None or "value" in raw:
        return (attempt["parsed"] or raw)["value"]
    text: str = (attempt["repaired"] or raw).get("text", "")
    return text if as_text else json.loads(text)


def exact_value(attempt: Attempt, *, as_text: bool = False) -> Any:
    """Return the `parsed_value`, with `Digits` for numbers that a float would round."""
    text: str | None = (attempt["repaired"] or attempt["raw"] or {}).get("text")
    if text is not None and is_rounded(attempt["repairs"]):
        with suppress(ValueError):  # A text without quotes, such as a time, is not JSON.
            return read_digits(text)
    return parsed_value(attempt, as_text=as_text)


def is_rounded(repairs: Iterable[Repair]) -> bool:
    """Return whether a number or a time lost digits."""
    return any(one["kind"] == ROUNDED for one in repairs)


def open_attempt(
    attempts: Sequence[Attempt],
    params: Encoded,
    added: Sequence[Addition] = (),
    *,
    name: str,
    author: str,
    reason: str | None,
    idempotency_key: str,
    labels: dict[str, str],
) -> Attempt:
    """Create the record of an attempt that is about to run."""
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
        "idempotency_key": idempotency_key,
        **({"added": list(added)} if added else {}),
        **({"labels": labels} if labels else {}),
    }
    return cast("Attempt", {**_blank(), **record})


def tokens_of(attempt: Attempt) -> dict[str, int | None]:
    """Return an attempt's tokens by kind; the total is at least the sum of the other kinds.

    Example:
        >>> tokens_of({"usage": {"input_tokens": 6, "output_tokens": 4}})["total_tokens"]
        10
    """
    usage = attempt["usage"] or {}
    parts = {name: _count(usage.get(name)) for name in ("input_tokens", "output_tokens")}
    known = [count for count in parts.values() if count is not None]
    total = _count(usage.get("total_tokens"))
    if known:  # Some servers report the parts and a total of 0.
        total = max(total or 0, sum(known))
    return {**parts, "total_tokens": total}


def _count(given: Any) -> int | None:
    return int(given) if is_number(given) else None


def _blank() -> dict[str, Any]:
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
    """Return a call's state for use in a different namespace.

    A stub in the call's own namespace names only the id of its checkpoint. The returned stubs also
    name the call's namespace, so that they are found from the other namespace.
    """
    moved = {
        key: without_implied(
            [
                cast("Attempt", {**attempt, "kept_in": {SAVED_NAMESPACE: namespace, **place}})
                if (place := attempt.get("kept_in"))
                else attempt
                for attempt in records
            ]
        )
        for key, records in ledgers_in(values)
    }
    return {**values, **moved}


def stated_confidence(attempt: Attempt) -> Any:
    """Return the `confidence` in an output; None if the output has no such field."""
    value = parsed_value(attempt, as_text=attempt.get("lossless") is None)
    return value.get("confidence") if is_object(value) else None


def verdict(attempt: Attempt, needed: float, given: Any, sample: float = 0.0) -> GateVerdict:
    """Return a gate's verdict: ask a person if the confidence is missing or below `needed`.

    The gate also asks about a random share of the outputs that pass (`sample`, 0 to 1). The
    attempt's idempotency key alone decides which outputs these are.

    Example:
        >>> verdict({"idempotency_key": "k"}, 0.9, 0.5)["ask"]
        True
    """
    known = float(given) if is_number(given) and 0 <= given <= 1 else None
    is_unsure = needed > 0 and (known is None or known < needed)
    place = drawn(attempt["idempotency_key"], "sample")
    is_sample = not is_unsure and place < sample
    return {
        "ask": is_unsure or is_sample,
        "sampled": is_sample,
        "confidence": known,
        "needed": float(needed),
    }
