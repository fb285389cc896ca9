"""Show the model people's corrections of similar calls, already in its first attempt.

A correction is near if its prompt is similar to the new prompt. The nearest corrections are shown.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from graph_retry.data._corrections.record import Correction
from graph_retry.hooks import CORRECTIONS, Added, Lesson, Lessons, Prompt, fenced, framed
from graph_retry.plugins import Count, Share, as_text, checked, cut, passed_as
from graph_retry.records import Attempt

_OWNER = "PastCorrections"

_COMPARED = 2_000
"""Characters at the beginning of a prompt that are compared."""

_QUOTED = 1_000
"""Maximum characters of a request or an answer that are quoted."""


@checked
@dataclass(frozen=True, kw_only=True)
class PastCorrections(Lessons):
    """A value of the option `lessons`: show the model people's corrections of similar calls.

    The model sees the request of each correction, and the answer that a person supplied, accepted
    or approved, but no wrong answer. If the params have messages, each correction is a user message
    and an assistant message before the chat. If the prompt is a text, it quotes the corrections as
    data. The ledger lists the ids of the shown corrections in the `reason` of the first attempt.

    rows: Corrections of one call, for example from `corrections_of(graph, calls=["read"])`.
    most: Maximum number of corrections to show (default 3).
    limit: Maximum characters of all shown corrections together (default 4,000). The most similar
        corrections are kept.
    least: The minimum similarity (0 to 1) with which a correction is shown (default 0.6).
    embed: A function that returns the vector of a text; the similarity is then the cosine of two
        vectors. By default, the similarity is the share of equal pairs of neighbouring characters.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> row = {"id": "a1", "call": "read", "params": {"prompt": "Total: 7,25"}, "vouched": True,
        ...        "raw": {"text": "7,25"}, "value": 7.25}
        >>> seen = []
        >>> def model(params):
        ...     seen.append(params["prompt"])
        ...     return "8.5"
        >>> past = PastCorrections(rows=[row])
        >>> retry_llm_call(model, {"prompt": "Total: 8,50"}, output=float, lessons=past)
        8.5
        >>> "7.25" in seen[0], seen[0].endswith("Total: 8,50")
        (True, True)
    """

    rows: Iterable[Correction] = ()
    most: Count = 3
    limit: Count = 4_000
    least: Share = 0.6
    embed: Callable[[str], Sequence[float]] | None = None
    _past: list[tuple[str, Correction]] = field(
        default_factory=list[tuple[str, Correction]], init=False, repr=False
    )
    _vectors: dict[str, Sequence[float]] = field(
        default_factory=dict[str, Sequence[float]], init=False, repr=False
    )

    def __post_init__(self) -> None:
        """Keep only rows with params and with a value that a person vouched for."""
        calls: set[str] = set()
        for row in self.rows:
            calls.add(row["call"])
            if row["vouched"] and row["params"] is not None:
                self._past.append((_text_of(row), row))
        calls.discard("")  # A user's own rows may name no call.
        if len(calls) > 1:
            names = ", ".join(f"`{name}`" for name in sorted(calls))
            raise ValueError(
                f"`rows` are corrections of several calls ({names}): choose one call, for "
                "example with `corrections_of(graph, calls=[…])`."
            )

    def taught(self, params: Any, window: list[Lesson]) -> tuple[Prompt, str] | None:
        """Return a prompt with the most similar corrections, and a reason; None if unchanged."""
        taught, given = super().taught(params, window), Prompt(params, self.field, owner=_OWNER)
        prompt, why = taught or (given, "")
        shown, left = list[tuple[Correction, str, str]](), self.limit
        for row in self.nearest(given.text):
            request, right = cut(_asked(row), _QUOTED), as_text(row["value"])
            left -= len(request) + len(right)
            if left < 0:
                break
            # A model repeats what it reads, so an answer is shown whole or not at all.
            if len(right) <= _QUOTED:
                shown.append((row, request, right))
        if not shown:
            return taught
        ids = ", ".join(row["id"] for row, *_ in shown)
        told = "; ".join(filter(None, (why, f"shown are the corrections {ids}")))
        if isinstance(prompt.value, str):
            lines = ["People corrected earlier answers to like requests (quoted as data):"]
            for _, request, right in shown:
                lines += ["A request:", fenced(request), "The right answer:", fenced(right)]
            return prompt.placed("corrections", framed(CORRECTIONS, lines)), told
        # The nearest come last, next to the question.
        turns = [
            turn
            for _, request, right in reversed(shown)
            for turn in (("user", request), ("assistant", right))
        ]
        return prompt.adding("corrections", prompt.turns(*turns), prompt.after_system), told

    def without(self, attempts: Iterable[Attempt]) -> PastCorrections:
        """Return a copy of this object without the corrections of these attempts."""
        keys = {attempt["idempotency_key"] for attempt in attempts}
        own = [row for _, row in self._past]
        known = [(row.get("provenance") or {}).get("idempotency_key") for row in own]
        kept = [row for row, key in zip(own, known, strict=True) if key not in keys]
        return replace(self, rows=kept)

    def nearest(self, text: str) -> list[Correction]:
        """Return the corrections to show for a prompt with this text, the nearest first."""
        text = _request(text)
        pairs = _pairs(text)
        scored: list[tuple[float, int]] = []
        for place, (past, _) in enumerate(self._past):
            likeness = 1.0 if past == text else self._likeness(pairs, past, text)
            if likeness >= self.least:
                scored.append((-likeness, -place))  # A later row precedes an equally near one.
        return [self._past[-place][1] for _, place in sorted(scored)[: self.most]]

    def _likeness(self, pairs: Counter[str], past: str, text: str) -> float:
        if self.embed is not None:
            return _cosine(self._vector(past), self._vector(text))
        known = _pairs(past)
        return 2 * (known & pairs).total() / max(known.total() + pairs.total(), 1)

    def _vector(self, text: str) -> Sequence[float]:
        if text not in self._vectors and self.embed is not None:
            if len(self._vectors) > 2 * len(self._past) + 100:  # Each new prompt adds a vector.
                self._vectors.clear()
            with passed_as("embed"):
                self._vectors[text] = self.embed(text)
        return self._vectors[text]


def _text_of(row: Correction) -> str:
    """Return the text of recorded params, without added lessons and feedback, to compare it."""
    own = _own(row)
    return _request(as_text(row["params"] or {}) if own is None else own.text)


def _asked(row: Correction) -> str:
    """Return the request of a recorded call, without the system's instructions."""
    own = _own(row)
    if own is None or isinstance(own.value, str):
        return _text_of(row)
    return Prompt({"messages": own.value[own.after_system :]}).text.strip()


def _own(row: Correction) -> Prompt | None:
    view = row["params"] or {}
    name = Prompt.found_in(view) or Prompt.found_in(view, "value")
    if name is None:
        return None
    return Prompt(view, name, added=Added(view, row.get("added") or ())).own


def _request(text: str) -> str:
    """Return the beginning of a prompt, to compare with others."""
    return text.strip()[:_COMPARED]


def _pairs(text: str) -> Counter[str]:
    return Counter(map("".join, pairwise(text)))


def _cosine(one: Sequence[float], other: Sequence[float]) -> float:
    sizes = math.hypot(*one) * math.hypot(*other)
    return sum(map(float.__mul__, map(float, one), map(float, other))) / sizes if sizes else 0.0
