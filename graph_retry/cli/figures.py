"""Figures over all calls, as text with bars."""

from __future__ import annotations

from collections.abc import Mapping

from graph_retry.cli.screen import Rows, Screen
from graph_retry.metrics import Summary

_BAR = 30


def show_figures(screen: Screen, figures: Summary) -> None:
    """Show what `summarize` found in at least one call."""
    latency = ", ".join(f"{name} {each or 0:.3f}" for name, each in figures["latency_s"].items())
    tokens = ", ".join(
        f"{name.removesuffix('_tokens')} {'unknown' if each is None else f'{each:,}'}"
        for name, each in figures["tokens"].items()
    )
    untold = figures["attempts_without_tokens"]
    rows = [
        ("calls", f"{figures['calls']}"),
        ("succeeded", f"{figures['succeeded']} ({figures['success_rate'] or 0:.0%})"),
        ("attempts", f"{figures['attempts']} ({figures['mean_attempts'] or 0:.1f} a call)"),
        ("requests", f"{figures['requests']}"),
        ("seconds", latency),
        ("tokens", tokens + (f" ({untold} attempts did not tell)" if untold else "")),
    ]
    screen.table(("figure", "value"), rows)
    by_attempt = {f"attempt {n}": each for n, each in sorted(figures["success_by_attempt"].items())}
    for title, counts in (
        ("success by attempt", by_attempt),
        ("failures", dict(figures["failures"].most_common())),
        ("decisions", dict(figures["decisions"].most_common())),
        ("repairs", dict(figures["repairs"].most_common())),
    ):
        if counts:
            screen.table((title, "count"), _bars(counts, drawn=screen.is_terminal))


def _bars(counts: Mapping[str, int], *, drawn: bool) -> Rows:
    most = max(counts.values())
    return [
        (name, f"{'█' * max(1, _BAR * count // most)} {count}" if drawn else str(count))
        for name, count in counts.items()
    ]
