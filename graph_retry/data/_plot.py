"""Plots of ledgers and evaluations, with matplotlib (the extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from graph_retry.data._evaluation import Evaluation
from graph_retry.data._metrics import Attempts, Summary, distinct, ledgers_of, summarize
from graph_retry.ledger import Ledger, tokens_of
from graph_retry.plugins import checked, counted
from graph_retry.records import Attempt

_COLOURS = {
    "succeeded": "#2a9d60",
    "transient": "#e9a23b",
    "invalid_syntax": "#c44e8c",
    "invalid_schema": "#8a5fbf",
    "truncated": "#4f7cc4",
    "context_overflow": "#7a5230",
    "refusal": "#444444",
    "rejected_input": "#d1603d",
    "permanent": "#8b1e1e",
}
"""The colours of attempts: for success, and for each failure kind."""

_OTHER = "#999999"

_ENDS = {
    "succeeded": ("*", "call succeeded: the model's output"),
    "responded": ("P", "call succeeded: a person's output"),
    "cancelled": ("X", "call cancelled by a reviewer"),
    "exhausted": ("s", "call exhausted: nobody to ask"),
    "waiting": ("o", "call waits for a person"),
}
"""The marker at the end of a call's row and its legend, by `Ledger.outcome`."""

_ENDED = {
    "valid at once": "#2a9d60",
    "after automation": "#9fd4b5",
    "would have asked": "#d1603d",
}
"""The colours of the outcomes of evaluated calls."""

_LEGEND: dict[str, Any] = {"fontsize": 8, "loc": "upper left"}
_OUTSIDE = {**_LEGEND, "bbox_to_anchor": (1.01, 1), "borderaxespad": 0}
"""The places of legends: inside a plot, and beside it."""


@checked
def plot_timeline(ledgers: Sequence[Ledger], axes: Any = None) -> Any:
    """Draw each call as a row of bars over time, one bar per attempt. Return the axes.

    Each row starts with the call's first attempt. A bar's length is the attempt's duration, and its
    colour is the attempt's outcome. Between the bars, hooks ran or a person was asked. A marker at
    the end shows the outcome of the call, if known. Attempts with deleted records are left out.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> axes = plot_timeline([Ledger([])])
        >>> axes.get_xlabel()
        'seconds since the first attempt of the call'
    """
    axes = axes or _new_axes(height=1.6 + 0.32 * len(ledgers))
    outcomes: dict[str, Any] = {}
    ends: dict[str, Any] = {}
    rows = [
        [attempt for attempt in ledger.attempts if attempt["kept_in"] is None] for ledger in ledgers
    ]
    longest = max((_seconds(row) for row in rows), default=0.0)
    for y, (ledger, attempts) in enumerate(zip(ledgers, rows, strict=True)):
        for attempt in attempts:
            start = _started(attempt) - _started(attempts[0])
            width = max(attempt["duration_s"], longest / 60)  # Keep a short attempt visible.
            outcome = _outcome(attempt)
            colour = _COLOURS.get(outcome, _OTHER)
            bar = axes.barh(y, width, left=start, height=0.6, color=colour, edgecolor="white")
            outcomes.setdefault(f"attempt: {_words(outcome)}", bar)
            number = {"ha": "center", "va": "center", "color": "white", "fontsize": 8}
            axes.text(start + width / 2, y, str(attempt["number"]), clip_on=True, **number)
        if attempts and ledger.outcome in _ENDS:
            marker, words = _ENDS[ledger.outcome]
            after = _seconds(attempts) + longest / 25
            style = {"color": "#222222", "linestyle": "none", "markersize": 7}
            (drawn,) = axes.plot(after, y, marker=marker, **style)
            ends.setdefault(words, drawn)
    names = [ledger.title or f"call {number}" for number, ledger in enumerate(ledgers, start=1)]
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel="seconds since the first attempt of the call", title="attempts of each call")
    if legend := outcomes | ends:
        axes.legend(legend.values(), legend.keys(), **_OUTSIDE)
    return axes


@checked
def plot_summary(attempts: Attempts) -> Any:
    """Draw the figures of `summarize`. Return the matplotlib figure.

    The figure has four plots: failure kinds, success by attempt, latency and tokens.

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> [axes.get_title() for axes in plot_summary([]).axes]
        ['failed attempts by kind', 'success by attempt', 'latency', 'tokens']
    """
    import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    ledgers = ledgers_of(attempts)
    known, figures = distinct(ledgers), summarize(ledgers)
    figure, grid = plt.subplots(2, 2, figsize=(10, 6.5), layout="constrained")
    figure.suptitle(
        f"{counted(figures['calls'], 'call')}, {figures['succeeded']} succeeded; "
        f"{counted(figures['attempts'], 'attempt')}"
    )
    failures, success, latency, tokens = grid.flat
    _draw_failures(failures, figures["failures"])
    _draw_success(success, figures, max((attempt["number"] for attempt in known), default=1))
    _draw_latency(latency, [attempt for attempt in known if not attempt["kept_in"]], figures)
    _draw_tokens(tokens, known, figures)
    return figure


@checked
def plot_evaluations(evaluations: Sequence[Evaluation], axes: Any = None) -> Any:
    """Draw one bar per evaluation, with the shares of the outcomes. Return the axes.

    In the chart, the label of a bar has three counts of `Evaluation.figures`: `reviews avoided`,
    `new failures`, and `differ` (new outputs that differ from the output of a person).

    Example:
        >>> import matplotlib; matplotlib.use("agg")
        >>> from graph_retry.data import Evaluation
        >>> plot_evaluations([Evaluation("small")]).get_xlabel()
        '% of calls'
    """
    axes = axes or _new_axes(height=1.8 + 0.6 * len(evaluations))
    rows = [evaluation.figures() for evaluation in evaluations]
    for y, figures in enumerate(rows):
        left, calls = 0.0, figures["calls"] or 1
        for ended, colour in _ENDED.items():
            share = 100 * (figures[ended] or 0) / calls
            label = ended if y == 0 else None
            axes.barh(y, share, left=left, height=0.55, color=colour, label=label)
            left += share
        told = ", ".join(
            f"{figures[name]} {name}" for name in ("reviews avoided", "new failures", "differ")
        )
        axes.text(1, y, told, va="center", fontsize=8, color="white")
    axes.set_yticks(range(len(rows)), [evaluation.name for evaluation in evaluations])
    axes.invert_yaxis()
    axes.set(xlabel="% of calls", xlim=(0, 100), title="would a person have been asked?")
    if rows:
        axes.legend(**_OUTSIDE)
    return axes


def _draw_failures(axes: Any, failures: Mapping[str, int]) -> None:
    ordered = sorted(failures.items(), key=lambda item: item[1])
    bars = axes.barh(
        [_words(kind) for kind, _ in ordered],
        [count for _, count in ordered],
        color=[_COLOURS.get(kind, _OTHER) for kind, _ in ordered],
    )
    axes.bar_label(bars, padding=3)
    axes.margins(x=0.12)
    axes.set(title="failed attempts by kind", xlabel="attempts")
    axes.xaxis.get_major_locator().set_params(integer=True)
    if not ordered:
        axes.set(xticks=[], yticks=[])
        axes.text(0.5, 0.5, "none", ha="center", va="center", transform=axes.transAxes)


def _draw_success(axes: Any, figures: Summary, most: int) -> None:
    numbers, by_attempt = range(1, most + 1), figures["success_by_attempt"]
    reached = [sum(by_attempt[n] for n in range(1, last + 1)) for last in numbers]
    share = [100 * count / max(figures["calls"], 1) for count in reached]
    label = f"succeeded by then, in the end {share[-1]:.0f} %"
    axes.step(numbers, share, where="post", marker="o", color=_COLOURS["succeeded"], label=label)
    axes.set(title="success by attempt", xlabel="attempts made", ylabel="% of calls")
    # The legend is inside the plot, above the data, so the scale leaves room for it.
    axes.set(ylim=(0, 125), yticks=range(0, 101, 20), xlim=(0.5, most + 0.5))
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.legend(**_LEGEND)


def _draw_latency(axes: Any, attempts: Sequence[Attempt], figures: Summary) -> None:
    succeeded = [attempt["duration_s"] for attempt in attempts if attempt["failure"] is None]
    failed = [attempt["duration_s"] for attempt in attempts if attempt["failure"] is not None]
    colours = [_COLOURS["succeeded"], _COLOURS["rejected_input"]]
    labels = ["attempt succeeded", "attempt failed"]
    axes.hist([succeeded, failed], bins=20, stacked=True, color=colours, label=labels)
    for name, style in (("p50", "-"), ("p90", "--")):
        seconds = figures["latency_s"][name]
        if seconds is not None:
            label = f"{name}: {seconds:.3g} s"
            axes.axvline(seconds, color="#222222", linestyle=style, linewidth=1, label=label)
    _name_histogram(axes, "latency", "seconds an attempt took", columns=2)


def _draw_tokens(axes: Any, attempts: Sequence[Attempt], figures: Summary) -> None:
    reported = [tokens_of(attempt)["total_tokens"] for attempt in attempts]
    known, total = [count for count in reported if count is not None], figures["tokens"]
    missing = figures["attempts_without_tokens"]
    label = "none reported" if not known else f"together {total['total_tokens']:,} tokens"
    label += f", unknown for {counted(missing, 'attempt')}" if known and missing else ""
    axes.hist(known, bins=20, color=_COLOURS["truncated"], label=label)
    _name_histogram(axes, "tokens", "total tokens of an attempt")


def _name_histogram(axes: Any, title: str, xlabel: str, columns: int = 1) -> None:
    """Name a histogram of attempts, and leave room for its legend above the bars."""
    axes.set(title=title, xlabel=xlabel, ylabel="attempts")
    axes.margins(y=0.4)
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.legend(**_LEGEND, ncols=columns)


def _new_axes(height: float) -> Any:
    import matplotlib.pyplot as plt  # noqa: PLC0415 - an extra, and slow to import

    return plt.subplots(figsize=(10, height), layout="constrained")[1]


def _started(attempt: Attempt) -> float:
    return datetime.fromisoformat(attempt["started_at"]).timestamp()


def _seconds(attempts: Sequence[Attempt]) -> float:
    """Return the seconds from the first attempt's start to the last attempt's end."""
    ends = [_started(attempt) + attempt["duration_s"] for attempt in attempts]
    return max(ends) - _started(attempts[0]) if attempts else 0.0


def _outcome(attempt: Attempt) -> str:
    return attempt["failure"]["kind"] if attempt["failure"] else attempt["status"]


def _words(name: str) -> str:
    return name.replace("_", " ")
