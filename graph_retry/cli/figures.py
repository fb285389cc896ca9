"""Figures over all calls, as text with bars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph_retry.cli.screen import Rows, Screen
from graph_retry.metrics import Summary

_BAR = 30


def show_figures(screen: Screen, figures: Summary) -> None:
    """Show what `summarize` found."""
    latency = ", ".join(
        f"{name} {'unknown' if each is None else format(each, '.3f')}"
        for name, each in figures["latency_s"].items()
    )
    tokens = ", ".join(
        f"{name.removesuffix('_tokens')} {_number(each)}"
        for name, each in figures["tokens"].items()
    )
    untold = figures["attempts_without_tokens"]
    rate = figures["success_rate"]
    rows = [
        ("calls", f"{figures['calls']}"),
        ("succeeded", f"{figures['succeeded']}" + ("" if rate is None else f" ({rate:.0%})")),
        ("attempts", f"{figures['attempts']} ({_number(figures['mean_attempts'])} a call)"),
        ("requests", f"{figures['requests']}"),
        ("seconds", latency),
        ("tokens", tokens + (f" ({untold} attempts did not tell)" if untold else "")),
    ]
    screen.table(("figure", "value"), rows)
    by_attempt = {f"attempt {n}": each for n, each in sorted(figures["success_by_attempt"].items())}
    for title, counts in (
        ("success by attempt", by_attempt),
        ("failures", _by_size(figures["failures"])),
        ("decisions", _by_size(figures["decisions"])),
        ("repairs", _by_size(figures["repairs"])),
    ):
        if counts:
            screen.table((title, "count"), _bars(counts, drawn=screen.is_terminal))


def _by_size(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: -each[1]))


def _bars(counts: Mapping[str, int], *, drawn: bool) -> Rows:
    most = max(counts.values())
    return [
        (name, f"{'█' * max(1, _BAR * count // most)} {count}" if drawn else str(count))
        for name, count in counts.items()
    ]


def _number(value: Any) -> str:
    return (
        "unknown"
        if value is None
        else f"{value:,.4g}"
        if isinstance(value, float)
        else f"{value:,}"
    )
