"""Pictures of ledgers, with matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from graph_retry.ledger import Ledger
from graph_retry.metrics import distinct, summarize
from graph_retry.records import Attempt

_COLOURS = {
    "succeeded": "#2a9d60",
    "transient": "#e9a23b",
    "invalid_syntax": "#c44e8c",
    "invalid_schema": "#8a5fbf",
    "truncated": "#4f7cc4",
    "context_overflow": "#2a9d8f",
    "refusal": "#444444",
    "rejected_input": "#d1603d",
    "permanent": "#8b1e1e",
}


def plot_timeline(ledgers: Sequence[Ledger], axes: Any = None) -> Any:
    """Draw each call's attempts as bars in time, coloured by how they ended; returns the axes.

    Seconds are counted from the first attempt of its call. A bar is as long as the attempt took;
    what lies between is what happened between: hooks, or a person. Attempts whose records are not
    kept any more are left out.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> axes = plot_timeline([Ledger([])])
        >>> axes.get_xlabel()
        'seconds'
    """
    axes = _axes(axes)
    shown: dict[str, Any] = {}
    for row, ledger in enumerate(ledgers):
        known = [each for each in ledger.attempts if each["kept_in"] is None]
        first = _time(known[0]) if known else 0.0
        end = max((_time(each) - first + each["duration_s"] for each in known), default=0)
        for attempt in known:
            start, width = _time(attempt) - first, max(attempt["duration_s"], end / 150)
            kind = _outcome(attempt)
            bar = axes.barh(row, width, left=start, height=0.6, color=_COLOURS.get(kind, "#999999"))
            shown.setdefault(kind, bar)
            axes.text(start, row, f" {attempt['number']}", fontsize=7, va="center", color="white")
    names = [ledger.title or f"call {row + 1}" for row, ledger in enumerate(ledgers)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="seconds", title="attempts")
    if shown:
        axes.legend(shown.values(), shown.keys(), fontsize=7, loc="best")
    return axes


def plot_summary(ledgers: Sequence[Ledger]) -> Any:
    """Draw failure kinds, success by attempt, latency and tokens; returns the figure.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> [axes.get_title() for axes in plot_summary([]).axes]
        ['failures', 'success by attempt', 'latency', 'tokens']
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    attempts = distinct(ledger.attempts for ledger in ledgers)
    figures = summarize(ledger.attempts for ledger in ledgers)
    figure, grid = plt.subplots(2, 2, figsize=(9, 6), layout="constrained")
    failures, success, latency, tokens = grid.flat
    kinds, wins = figures["failures"], figures["success_by_attempt"]
    failures.barh(list(kinds), list(kinds.values()), color=[_COLOURS[kind] for kind in kinds])
    failures.set(title="failures", xlabel="attempts")
    numbers = range(1, max((each["number"] for each in attempts), default=1) + 1)
    reached = [sum(wins[n] for n in range(1, last + 1)) for last in numbers]
    share = [100 * count / max(figures["calls"], 1) for count in reached]
    success.step(list(numbers), share, where="mid", marker="o", color=_COLOURS["succeeded"])
    success.set(title="success by attempt", xlabel="attempts made", ylabel="% of calls")
    success.set(ylim=(0, 105), xticks=list(numbers))
    known = [each["duration_s"] for each in attempts if not each["kept_in"]]
    latency.hist(known, bins=20, color=_COLOURS["truncated"])
    latency.set(title="latency", xlabel="seconds", ylabel="attempts")
    used = [(each["usage"] or {}).get("total_tokens") for each in attempts]
    tokens.hist([count for count in used if count is not None], bins=20, color="#5b8a72")
    tokens.set(title="tokens", xlabel="total tokens", ylabel="attempts")
    return figure


def _axes(axes: Any) -> Any:
    if axes is not None:
        return axes
    import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    return plt.subplots(figsize=(9, 3), layout="constrained")[1]


def _time(attempt: Attempt) -> float:
    return datetime.fromisoformat(attempt["started_at"]).timestamp()


def _outcome(attempt: Attempt) -> str:
    return attempt["failure"]["kind"] if attempt["failure"] else attempt["status"]
