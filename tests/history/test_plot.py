"""Pictures of ledgers."""

from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import pytest

from graph_retry.history import import_ledgers
from graph_retry.plot import plot_summary, plot_timeline

LEDGERS = import_ledgers(Path(__file__).parent / "fixtures" / "v1.jsonl")


def test_a_timeline_shows_every_attempt_once(tmp_path):
    """A bar for each attempt, a row for each call, a legend of what happened."""
    axes = plot_timeline(LEDGERS)
    assert len(axes.patches) == sum(len(ledger.attempts) for ledger in LEDGERS)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ask"] * 3
    shown = {text.get_text() for text in axes.get_legend().get_texts()}
    kinds = {a["failure"]["kind"] for each in LEDGERS for a in each.attempts if a["failure"]}
    assert shown == kinds | {"succeeded"}
    axes.figure.savefig(tmp_path / "timeline.png")
    plt.close(axes.figure)
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")


def test_a_summary_counts_what_the_ledgers_hold():
    """Failures are counted by kind; two of the three calls succeeded in the end."""
    figure = plot_summary(LEDGERS)
    failures, success = figure.axes[:2]
    assert sum(bar.get_width() for bar in failures.patches) == sum(
        attempt["failure"] is not None for ledger in LEDGERS for attempt in ledger.attempts
    )
    assert round(success.lines[0].get_ydata()[-1]) == 67
    plt.close(figure)


def test_a_summary_counts_a_fork_with_its_call():
    """What both ledgers hold is drawn once, and no share is above 100 %."""
    figure = plot_summary([*LEDGERS, *LEDGERS])
    failures, success, latency, _ = figure.axes
    alone = plot_summary(LEDGERS)
    for drawn, once in ((failures, alone.axes[0]), (latency, alone.axes[2])):
        assert sum(bar.get_width() for bar in drawn.patches) == pytest.approx(
            sum(bar.get_width() for bar in once.patches)
        )
    assert round(success.lines[0].get_ydata()[-1]) == 67
    plt.close(figure)
    plt.close(alone)
