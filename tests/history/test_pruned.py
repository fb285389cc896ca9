"""Earlier attempts whose checkpoints were deleted while their call waits."""

import matplotlib as mpl

mpl.use("agg")

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AnswerRefused, CallCancelled, Completion, edit, reject
from graph_retry.cli.screen import Screen
from graph_retry.cli.show import show_ledger
from graph_retry.history import attempts_of, export_ledgers, import_ledgers
from graph_retry.hooks import Budget
from graph_retry.metrics import summarize
from graph_retry.plot import plot_summary, plot_timeline
from graph_retry.replay import replay
from graph_retry.rewind import rewind
from graph_retry.testing import from_ledger
from tests.history.test_keeping import SYNC, failing, in_state, kept, text, texts
from tests.loops import Model, answer, one_call, refused, reviews, thread


def pruned(saver, graph):
    """Delete all but the newest checkpoints of a thread."""
    for place in saver.storage[thread()["configurable"]["thread_id"]].values():
        for each in sorted(place)[:-1]:
            del place[each]
    return graph


def test_after_pruning_a_call_goes_on_and_says_what_is_gone(form):
    """Earlier records are gone then but for their number; what the call must know stays."""
    saver = InMemorySaver()
    graph = pruned(saver, failing(form, SYNC, saver, 4, on_cancel="raise"))
    (ledger,) = attempts_of(graph, thread())
    assert texts(ledger.attempts) == [None, None, None, text(4)]
    assert kept(ledger.attempts) == [True, True, True, False]
    failures = [(each["status"], each["failure"]["type"]) for each in ledger.attempts]
    assert failures == [("failed", "NotKept")] * 3 + [("failed", "ValidationError")]
    assert [ledger.params_at(n) for n in (1, 3, 4)] == [{"n": n} for n in (1, 3, 4)]
    with pytest.raises(ValueError, match="does not hold the params of attempt 2"):
        ledger.params_at(2)
    assert [ledger.value_at(n) for n in (1, 2, 3)] == [None] * 3
    assert ledger.params_diff(4) == [{"path": "/n", "before": 3, "after": 4}]

    assert [each.differs for each in replay(ledger.attempts, output=dict[str, int])] == [[]] * 4
    with pytest.raises(ValueError, match="does not hold what attempt 1 returned"):
        from_ledger(ledger.attempts)

    with pytest.raises(CallCancelled) as caught:
        answer(SYNC, graph, thread(), reject("no"))
    assert texts(caught.value.attempts) == [None, None, None, text(4)]
    assert {*caught.value.attempts[0]} == {*caught.value.attempts[3]}


def test_readers_of_finished_ledgers_cope_with_records_that_are_gone(tmp_path, capsys):
    """Figures count such an attempt and nothing in it; files, pictures and the terminal show it."""
    saver = InMemorySaver()
    graph = pruned(saver, failing("node", SYNC, saver, 4))
    (ledger,) = attempts_of(graph, thread())
    figures = summarize([ledger.attempts, ledger.attempts])
    assert (figures["calls"], figures["attempts"]) == (1, 4)
    assert figures["failures"] == {"invalid_schema": 1}
    assert figures["attempts_without_tokens"] == 4
    export_ledgers([ledger], tmp_path / "ledgers.jsonl")
    assert import_ledgers(tmp_path / "ledgers.jsonl")[0].attempts == ledger.attempts
    assert len(plot_timeline([ledger]).patches) == 1
    plot_summary([ledger])
    show_ledger(Screen(), ledger)
    shown = capsys.readouterr().out
    assert shown.count("(not kept)") == 2
    assert shown.count("NotKept") == 3


def test_nobody_goes_back_to_an_attempt_that_is_gone(form):
    """The question is asked again, with the reason; going back to a kept attempt still works."""
    saver = InMemorySaver()
    graph = pruned(saver, failing(form, SYNC, saver, 4))
    with pytest.raises(AnswerRefused, match="attempt 2 cannot be gone back to"):
        rewind(graph, thread(), attempt=2)
    (review,) = reviews(SYNC, graph, thread())
    assert review.attempt == 4
    rewind(graph, thread(), attempt=4, params={"n": 9})
    assert graph.get_state(thread()).values["output"] == {"n": 9}


def test_a_checkpoint_that_is_gone_hides_its_own_attempt_only(form):
    """The records around it are read, with their params."""
    saver = InMemorySaver()
    graph = failing(form, SYNC, saver, 5)
    gone = in_state(SYNC, saver)[1]["kept_in"]["checkpoint_id"]
    for place in saver.storage[thread()["configurable"]["thread_id"]].values():
        place.pop(gone, None)
    (ledger,) = attempts_of(graph, thread())
    assert kept(ledger.attempts) == [False, True, False, False, False]
    assert [ledger.params_at(n) for n in (1, 3, 4, 5)] == [{"n": n} for n in (1, 3, 4, 5)]


LIMITS = {
    "tokens": ({"tokens": 40}, "the budget of 40 tokens is spent (40)"),
    "cost": ({"cost": 4.0, "price": lambda attempt: 1.0}, "the budget of 4 is spent (4)"),
}


@pytest.mark.parametrize("limit", LIMITS)
@pytest.mark.parametrize("prune", [False, True])
def test_a_budget_counts_attempts_that_are_not_in_state(form, limit, prune):
    """Whether or not their records can still be read."""
    options, note = LIMITS[limit]
    model = Model(lambda params: Completion(text(params["n"]), usage={"total_tokens": 10}))
    saver = InMemorySaver()
    graph = one_call(
        form, SYNC, model, saver, max_attempts=20, auto_retries=9, budget=Budget(**options)
    )
    graph.invoke({"params": {"n": 1}}, thread())
    notes = []
    for n in (2, 3, 4):
        answer(SYNC, pruned(saver, graph) if prune else graph, thread(), edit(n=n))
        notes.append(reviews(SYNC, graph, thread())[0].value["note"])
    assert [each == note for each in notes] == [False, False, True]


@pytest.mark.parametrize("prune", [False, True])
def test_rounds_and_repeated_decisions_are_known_when_their_records_are_not_in_state(form, prune):
    """A decision that comes twice is recognised, and reviewers decide as often as they may."""
    saver = InMemorySaver()
    graph = failing(form, SYNC, saver, 1, budget=Budget(rounds=4))
    for n in (2, 3, 4):
        answer(SYNC, graph, thread(), {**edit(n=n), "decision_id": f"click {n}"})
    if prune:
        pruned(saver, graph)
    again = {**edit(n=2), "decision_id": "click 2"}
    assert "already applied" in refused(SYNC, graph, thread(), again).message
    (review,) = reviews(SYNC, graph, thread())
    assert review.attempt == 4
    answer(SYNC, graph, thread(), {**edit(n=5), "decision_id": "click 5"})
    (review,) = reviews(SYNC, graph, thread())
    assert review.attempt == 5
    assert review.value["review_configs"][0]["allowed_decisions"] == ["reject", "respond"]
