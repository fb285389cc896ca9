"""Pictures of ledgers."""

from contextlib import suppress
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")

import matplotlib.pyplot as plt
import pytest
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.threads
from graph_retry import AttemptsExhausted
from graph_retry.data import plot_summary, plot_timeline
from graph_retry.ledger import Ledger
from graph_retry.threads import export_ledgers, import_ledgers
from tests.loops import Model, one_call, thread

LEDGERS = import_ledgers(Path(__file__).parent / "fixtures" / "v1.jsonl")


KINDS = {a["failure"]["kind"] for each in LEDGERS for a in each.attempts if a["failure"]}


def legend_of(axes):
    """Return the words of a legend."""
    return {text.get_text() for text in axes.get_legend().get_texts()}


def test_a_timeline_shows_every_attempt_once_and_what_ended_the_call(tmp_path):
    """A bar for each attempt, a marker for each end, a row for each call, a legend for all."""
    axes = plot_timeline(LEDGERS)
    assert len(axes.patches) == sum(len(ledger.attempts) for ledger in LEDGERS)
    assert len(axes.lines) == len(LEDGERS)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["ask"] * 3
    ends = {"call succeeded: the model's output", "call cancelled by a reviewer"}
    kinds = {f"attempt: {kind}".replace("_", " ") for kind in KINDS}
    assert legend_of(axes) == kinds | ends | {"attempt: succeeded"}
    axes.figure.savefig(tmp_path / "timeline.png")
    plt.close(axes.figure)
    assert (tmp_path / "timeline.png").read_bytes().startswith(b"\x89PNG")


FAILED = {**LEDGERS[0].attempts[0], "decision": None}
ENDS = {
    "call succeeded: a person's output": [{**FAILED, "decision": {"type": "respond"}}],
    "call cancelled by a reviewer": [{**FAILED, "decision": {"type": "reject"}}],
    "call succeeded: the model's output": [{**FAILED, "status": "succeeded", "failure": None}],
}


@pytest.mark.parametrize(
    ("words", "ledger"),
    [
        *((words, Ledger(attempts)) for words, attempts in ENDS.items()),
        ("call waits for a person", Ledger([FAILED], waits=True)),
        ("call exhausted: nobody to ask", Ledger([FAILED], waits=False)),
        (None, Ledger([FAILED])),
        (None, Ledger([{**FAILED, "decision": {"type": "edit"}}], waits=True)),
        (None, Ledger([])),
    ],
)
def test_an_end_has_a_marker_where_the_ledger_tells_it(words, ledger):
    """A ledger that does not say how its call ended has none."""
    axes = plot_timeline([ledger])
    shown = legend_of(axes) if axes.get_legend() else set()
    assert {each for each in shown if each.startswith("call")} == ({words} if words else set())
    plt.close(axes.figure)


def test_a_thread_tells_which_calls_wait_and_which_are_exhausted(form, mode):
    """What a checkpointer keeps of a call says so, in a file of ledgers, too."""
    outcomes = []
    for review in (True, False):
        saver = InMemorySaver()
        graph = one_call(form, mode, Model(lambda params: "no"), saver, review=review)
        with suppress(AttemptsExhausted):
            mode.invoke(graph, {"params": {}}, thread())
        (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
        outcomes.append(ledger.outcome)
    assert outcomes == ["waiting", "exhausted"]


def test_an_exported_ledger_still_tells_whether_it_waits(tmp_path):
    """Files of earlier versions do not say, and files of this one do."""
    path = tmp_path / "ledgers.jsonl"
    export_ledgers([Ledger([FAILED], waits=True), *LEDGERS], path)
    assert [each.waits for each in import_ledgers(path)] == [True, None, None, None]


def test_a_summary_counts_what_the_ledgers_hold():
    """Failures are counted by kind; two of the three calls succeeded in the end."""
    figure = plot_summary(LEDGERS)
    failures, success, latency, tokens = figure.axes
    assert sum(bar.get_width() for bar in failures.patches) == sum(
        attempt["failure"] is not None for ledger in LEDGERS for attempt in ledger.attempts
    )
    assert {label.get_text().replace(" ", "_") for label in failures.get_yticklabels()} == KINDS
    assert round(success.lines[0].get_ydata()[-1]) == 67
    assert legend_of(success) == {"succeeded by then, in the end 67 %"}
    assert any(text.startswith("p90: ") and text.endswith(" s") for text in legend_of(latency))
    assert legend_of(tokens) == {"together 12 tokens, unknown for 7 attempts"}
    plt.close(figure)


RECORDS = [attempt for ledger in LEDGERS for attempt in ledger.attempts]
SAME = [LEDGERS, [*LEDGERS, *LEDGERS], [each.attempts for each in LEDGERS], iter(LEDGERS), RECORDS]


@pytest.mark.parametrize("attempts", SAME)
def test_a_summary_takes_what_summarize_takes(attempts):
    """Ledgers, lists or loose records, a fork counted with its call: the picture is the same."""
    figure, expected = plot_summary(attempts), plot_summary(LEDGERS)
    for drawn, once in ((0, 0), (2, 2)):
        assert sum(bar.get_width() for bar in figure.axes[drawn].patches) == pytest.approx(
            sum(bar.get_width() for bar in expected.axes[once].patches)
        )
    assert round(figure.axes[1].lines[0].get_ydata()[-1]) == 67
    plt.close(figure)
    plt.close(expected)
