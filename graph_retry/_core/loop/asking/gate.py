"""Read the verdict of the function in the option `review`: does a person see this valid output?"""

from __future__ import annotations

from typing import Any, cast

from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import digest, is_number, is_object
from graph_retry._core.state.attempts import parsed_value
from graph_retry.records import Attempt, GateVerdict


async def verdict_of(rule: Any, attempt: Attempt) -> bool | GateVerdict:
    """Call the function; a number that it returns is the confidence that the output must state."""
    said = await call(rule, attempt)
    if is_number(said):
        return verdict(attempt, said, stated_confidence(attempt, "confidence"))
    return cast("GateVerdict", said) if is_object(said) and "ask" in said else bool(said)


def stated_confidence(attempt: Attempt, field: str) -> Any:
    """Return the value of a field of the output, None if it has no such field."""
    value = parsed_value(attempt, as_text=attempt.get("lossless") is None)
    return value.get(field) if is_object(value) else None


def verdict(attempt: Attempt, needed: float, given: Any, sample: float = 0.0) -> GateVerdict:
    """Compare a confidence with the one that is needed, and draw the sample of those that pass."""
    known = float(given) if is_number(given) and 0 <= given <= 1 else None
    is_unsure = needed > 0 and (known is None or known < needed)
    drawn = int(digest(attempt["idempotency_key"], "sample"), 16) / 16**24
    is_sample = not is_unsure and drawn < sample
    return {
        "ask": is_unsure or is_sample,
        "sampled": is_sample,
        "confidence": known,
        "needed": float(needed),
    }
