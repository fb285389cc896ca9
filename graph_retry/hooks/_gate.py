"""Choose the valid outputs that a person reviews: uncertain ones, and a sample of the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable

from graph_retry._core.ground.functions.arguments import Share, checked
from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import digest, is_number, is_object
from graph_retry._core.state.attempts import parsed_value
from graph_retry.records import Attempt, GateVerdict

Judge = Callable[[Attempt], Any] | Runnable[Any, Any]
"""A function or runnable of an attempt's record that returns a confidence from 0 to 1."""


@checked
@dataclass(frozen=True, kw_only=True)
class Gate:
    """A value of the option `review`: a person sees only valid outputs with a low confidence.

    A person is asked if the confidence is below `confidence` or unknown. A person also sees a
    sample of the other outputs, because only this sample reveals errors in confident outputs. The
    ledger records the verdict as `gate`, and `graph_retry.data.summarize` counts the verdicts.

    confidence: The least confidence with which an output passes, from 0 to 1.
    of: The source of the confidence: a field of the output (default `confidence`), `judge`, or
        `logprob`. The last is the mean probability of the answer's tokens, if the provider gave it.
    judge: A function `attempt -> number from 0 to 1`, sync or async, or a runnable, for
        `of="judge"`.
    sample: Share of passing outputs that a person sees (default 0), chosen by the idempotency key.

    Example:
        >>> from graph_retry import InterventionRequired, retry_llm_call
        >>> def model(params):
        ...     return '{"total": 7, "confidence": %s}' % params["sure"]
        >>> options = {"output": dict[str, float], "review": Gate(confidence=0.9)}
        >>> retry_llm_call(model, {"sure": 0.95}, **options)["total"]
        7.0
        >>> try:
        ...     retry_llm_call(model, {"sure": 0.5}, **options)
        ... except InterventionRequired as error:
        ...     error.attempts[0]["gate"]["confidence"]
        0.5
    """

    confidence: Share
    of: str = "confidence"
    judge: Judge | None = None
    sample: Share = 0.0

    def __post_init__(self) -> None:
        """Refuse `judge` without `of="judge"`, and `of="judge"` without `judge`."""
        if (self.of == "judge") != (self.judge is not None):
            raise ValueError("`judge` and `of='judge'` go together: give both, or neither.")

    def __call__(self, attempt: Attempt) -> bool:
        """Return whether a person is asked, if the judge is sync."""
        return run_sync(self.verdict(attempt))["ask"]

    async def verdict(self, attempt: Attempt) -> GateVerdict:
        """Decide whether a person is asked about a valid output, with the confidence."""
        given: Any = None
        if self.judge is not None:
            given = await call(self.judge, attempt)
            if not (is_number(given) and 0 <= given <= 1):
                raise ValueError(f"`judge` returned {given!r:.80}: return a number from 0 to 1.")
        elif self.of == "logprob":
            mean = attempt.get("logprob")
            given = None if mean is None else math.exp(mean)
        else:
            value = parsed_value(attempt, as_text=attempt.get("lossless") is None)
            given = value.get(self.of) if is_object(value) else None
        known = float(given) if is_number(given) and 0 <= given <= 1 else None
        is_unsure = self.confidence > 0 and (known is None or known < self.confidence)
        drawn = int(digest(attempt["idempotency_key"], "sample"), 16) / 16**24
        is_sample = not is_unsure and drawn < self.sample
        return {
            "ask": is_unsure or is_sample,
            "sampled": is_sample,
            "confidence": known,
            "needed": float(self.confidence),
        }


async def verdict_of(rule: Any, attempt: Attempt) -> bool | GateVerdict:
    """Call the function in the option `review`; a returned number is a `Gate`'s `confidence`."""
    if isinstance(rule, Gate):
        return await rule.verdict(attempt)
    said = await call(rule, attempt)
    if is_number(said):
        return await Gate(confidence=said).verdict(attempt)
    return bool(said)
