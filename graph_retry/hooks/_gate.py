"""Choose which valid outputs a person reviews: the uncertain ones, and a sample of the others."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.runnables import Runnable

from graph_retry._core.state.attempts import verdict
from graph_retry.hooks._doubts import SIGNALS, Seen, as_value, input_of, names, output_of
from graph_retry.ledger import output_of as output_in
from graph_retry.plugins import (
    Share,
    as_repr,
    call,
    checked,
    did_you_mean,
    drawn,
    is_number,
    is_object,
    is_sync,
    run_sync,
)
from graph_retry.records import Attempt, Doubt, GateVerdict
from graph_retry.reviews import alternatives

Judge = Callable[[Attempt], Any] | Runnable[Any, Any]
"""A function or runnable that gets an attempt's record and returns a confidence from 0 to 1."""

_REMEMBERED = 1_000
"""Number of the latest outputs with which a gate with `share` compares an output."""

_MOST_DOUBTS = 20


def _may_have(branch: dict[str, Any], name: str) -> bool:
    """Return whether an object that fits one branch of a schema may have the field `name`."""
    named: dict[str, Any] = branch.get("properties") or {}
    is_open = not named or branch.get("additionalProperties") or branch.get("patternProperties")
    return branch.get("type", "object") == "object" and bool(name in named or is_open)


@checked
@dataclass(frozen=True, kw_only=True)
class Gate:
    """A gate for the option `review`: a person reviews only valid outputs with a low confidence.

    Give either `confidence`, a fixed limit, or `share`, the fraction of all outputs that people can
    review. With `sample`, a person also reviews some outputs with a high confidence. The review
    names the doubtful fields. The attempt's record has the verdict as `gate`, and
    `graph_retry.data.summarize` counts the verdicts.

    confidence: The minimum confidence (0 to 1) with which an output passes. If the confidence is
        unknown, a person is asked.
    share: The fraction of outputs (0 to 1) that a person reviews. These outputs have the lowest
        confidence among the last 1,000 outputs of this object. If outputs have equal confidence,
        the idempotency key decides.
    of: The source of the confidence: a field of the output (default `confidence`), `judge`, or a
        signal. The values of several sources are multiplied. The signal `input` doubts values that
        do not occur in the input. `edge` doubts values exactly at a limit of the schema. `second`
        doubts fields that differ in a second answer. `logprob` is the geometric mean of the
        probabilities of the answer's tokens, if the provider gave them.
    judge: For `of="judge"`: a function `attempt -> confidence` (0 to 1), sync or async, or a
        runnable.
    second: For `of="second"`: a function, sync or async, that gets the attempt's record with its
        `params`, and returns another answer to the same request.
    input: The params field with the input text, or a function of the params that returns this text
        (default: the prompt without its schema and examples).
    computed: Names of output fields whose values need not occur in the input, such as a sum.
    known: For `share`: confidences of earlier outputs to start with, for example from the ledger
        (default: a new process starts without earlier outputs).
    sample: The fraction of passing outputs (0 to 1, default 0) that a person sees as well. The
        idempotency key chooses them.

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

    confidence: Share | None = None
    share: Share | None = None
    of: str | Sequence[str] = "confidence"
    judge: Judge | None = None
    second: Judge | None = None
    input: str | Callable[[Any], str] | None = None
    computed: Sequence[str] = ()
    known: Sequence[float] = ()
    sample: Share = 0.0
    _seen: list[float] = field(default_factory=list[float], init=False, repr=False, compare=False)
    _lock: Any = field(default_factory=threading.Lock, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check that `confidence` or `share` is given, and that `judge` and `second` fit `of`."""
        if (self.confidence is None) == (self.share is None):
            raise ValueError(
                "give either `confidence` (a limit) or `share` (a fraction of the outputs), "
                "not both."
            )
        for name in ("judge", "second"):
            if (name in names(self.of)) != (getattr(self, name) is not None):
                raise ValueError(f"`{name}` and `of='{name}'` go together: give both, or neither.")
        self._seen.extend(self.known)

    def check_schema(self, schema: Any) -> None:
        """Raise `ValueError` if `of` names something other than a signal, `judge` or a field."""
        branches = alternatives(schema, schema)
        for name in names(self.of):
            if name in SIGNALS or name == "judge" or any(_may_have(one, name) for one in branches):
                continue
            known = [*dict.fromkeys(key for one in branches for key in one.get("properties") or ())]
            meant = did_you_mean(name, (*SIGNALS, *known))
            raise ValueError(
                f"`of` has the unknown name `{name:.80}`: allowed are a signal "
                f"({', '.join(SIGNALS)}), `judge`, and a field of the output "
                f"({', '.join(known) or 'the output has no fields'}).{meant}"
            )

    def __call__(self, attempt: Attempt) -> GateVerdict | Awaitable[GateVerdict]:
        """Return the verdict on a valid output: its confidence, and whether a person is asked.

        In an async run, the verdict is an awaitable if there is a `judge` or `second`, which may be
        async.
        """
        steps = self._verdict(attempt)
        is_plain = self.judge is None and self.second is None
        return run_sync(steps) if is_plain or is_sync() else steps

    async def _verdict(self, attempt: Attempt) -> GateVerdict:
        given, doubts = await self._confidence(attempt)
        if self.share is None:
            made = verdict(attempt, self.confidence or 0.0, given, self.sample)
        else:
            needed, rank = self._rank(attempt, 0.0 if given is None else given)
            made = verdict(attempt, 0.0, given, self.sample)
            is_unsure = rank < self.share
            made["ask"], made["needed"] = is_unsure or made["sampled"], needed
            made["sampled"] = made["sampled"] and not is_unsure
        if doubts:
            made["doubts"] = doubts[:_MOST_DOUBTS]
        return made

    async def _confidence(self, attempt: Attempt) -> tuple[float | None, list[Doubt]]:
        """Return the product of the sources' known confidences (or None), and the doubts."""
        told, doubts = list[Any](), list[Doubt]()
        second = None if self.second is None else await call(self.second, attempt)
        seen = self._seen_of(attempt, second) if SIGNALS.keys() & names(self.of) else None
        for name in names(self.of):
            if name == "judge" and self.judge is not None:
                said = await call(self.judge, attempt)
                if not (is_number(said) and 0 <= said <= 1):
                    raise ValueError(
                        f"`judge` returned {as_repr(said, 80)}: return a number from 0 to 1."
                    )
                told.append(said)
            elif seen is not None and name in SIGNALS:
                confidence, found = SIGNALS[name](seen)
                told.append(confidence)
                doubts += found
            else:
                value = output_in(attempt)
                told.append(value.get(name) if is_object(value) else None)
        known = [each for each in told if is_number(each) and 0 <= each <= 1]
        if not known:
            return None, doubts
        product = 1.0
        for each in known:
            product *= each
        return product, doubts

    def _seen_of(self, attempt: Attempt, second: Any) -> Seen:
        value = output_of(attempt)
        return Seen(
            value=value,
            input=input_of(attempt.get("params"), self.input, value),
            schema=attempt.get("output_schema"),
            attempt=attempt,
            computed=frozenset(self.computed),
            second=as_value(second, value),
        )

    def _rank(self, attempt: Attempt, sure: float) -> tuple[float, float]:
        """Return the needed confidence, and the rank of an output among the earlier outputs.

        The rank is the fraction of outputs with lower confidence. The idempotency key breaks ties.
        """
        place = drawn(attempt["idempotency_key"], "rank")
        with self._lock:
            others = sorted(self._seen)
            self._seen.append(sure)
            del self._seen[:-_REMEMBERED]
        less, equal = sum(each < sure for each in others), others.count(sure)
        at = others[min(int(len(others) * (self.share or 0)), len(others) - 1)] if others else sure
        return at, (less + place * (equal + 1)) / (len(others) + 1)
