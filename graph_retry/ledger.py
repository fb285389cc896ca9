"""The ledger: a list of slim attempts, and what can be told from it."""

import hashlib
import json
from collections.abc import Sequence
from typing import Any, cast

from graph_retry.errors import ReplayMismatch
from graph_retry.params.codec import Encoded
from graph_retry.params.patch import apply_patch, diff_views, initial_patch
from graph_retry.records import SCHEMA_VERSION, Attempt


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
            whole = {**merged[places[number]], **update}
            merged[places[number]] = cast("Attempt", whole)
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
    newest = max((attempt["schema_version"] for attempt in attempts), default=SCHEMA_VERSION)
    if newest > SCHEMA_VERSION:
        raise ReplayMismatch(
            f"the ledger has schema version {newest} and this library knows {SCHEMA_VERSION}: "
            "upgrade graph-retry to continue this thread.",
            list(attempts),
        )


def params_at(attempts: Sequence[Attempt], number: int | None = None) -> Encoded | None:
    """Rebuild the params of one attempt (default: the last) from the patches up to it."""
    if not attempts:
        return None
    view: dict[str, Any] = {}
    types: dict[str, str] = {}
    for attempt in attempts:
        view = apply_patch(view, attempt["params_patch"])
        types = attempt["params_types"]
        if attempt["number"] == number:
            break
    return Encoded(view, types)


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


def open_attempt(
    attempts: Sequence[Attempt],
    params: Encoded,
    *,
    author: str,
    reason: str | None,
    started_at: str,
    idempotency_key: str,
) -> Attempt:
    """Make the record of an attempt that is about to run."""
    before = params_at(attempts)
    return {
        "number": attempts[-1]["number"] + 1 if attempts else 1,
        "status": "running",
        "params_patch": (
            initial_patch(params.view) if before is None else diff_views(before.view, params.view)
        ),
        "params_types": params.types,
        "author": author,
        "reason": reason,
        "raw": None,
        "repaired": None,
        "repairs": [],
        "lossless": None,
        "parsed": None,
        "issues": [],
        "failure": None,
        "degraded": False,
        "decision": None,
        "usage": None,
        "finish_reason": None,
        "started_at": started_at,
        "duration_s": 0.0,
        "tries": 1,
        "idempotency_key": idempotency_key,
        "schema_version": SCHEMA_VERSION,
    }


def digest(*parts: Any) -> str:
    """Return a short stable hash of JSON values, for keys and ids."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, default=str)
    return hashlib.blake2s(text.encode(), digest_size=12).hexdigest()
