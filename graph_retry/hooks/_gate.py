"""Choose the valid outputs that a person reviews: uncertain ones, and a sample of the others."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from langchain_core.runnables import Runnable

from graph_retry._core.ground.functions.arguments import Share, checked
from graph_retry._core.ground.functions.awaiting import is_sync, run_sync
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.json import is_number
from graph_retry._core.loop.asking.gate import stated_confidence, verdict
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

    def __call__(self, attempt: Attempt) -> GateVerdict | Awaitable[GateVerdict]:
        """Decide whether a person is asked about a valid output, with the confidence.

        With a `judge`, which may be async, the verdict of an async run must be awaited.
        """
        steps = self._verdict(attempt)
        return run_sync(steps) if self.judge is None or is_sync() else steps

    async def _verdict(self, attempt: Attempt) -> GateVerdict:
        given: Any = None
        if self.judge is not None:
            given = await call(self.judge, attempt)
            if not (is_number(given) and 0 <= given <= 1):
                raise ValueError(f"`judge` returned {given!r:.80}: return a number from 0 to 1.")
        elif self.of == "logprob":
            mean = attempt.get("logprob")
            given = None if mean is None else math.exp(mean)
        else:
            given = stated_confidence(attempt, self.of)
        return verdict(attempt, self.confidence, given, self.sample)
