"""Earlier attempts whose checkpoints were deleted while their call waits."""

import asyncio

import matplotlib as mpl

mpl.use("agg")

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from graph_retry import AnswerRefused, CallCancelled, Completion, edit, reject
from graph_retry.data import plot_summary, plot_timeline, replay, summarize
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.show import show_ledger
from graph_retry.hooks import Budget
from graph_retry.testing import from_ledger
from graph_retry.threads import attempts_of, export_ledgers, import_ledgers, rewind
from tests.history.test_keeping import SYNC, failing, in_state, kept, text, texts
from tests.loops import Model, State, answer, gathered, one_call, refused, reviews, thread


def pruned(saver, graph, keep=1):
    """Delete all but the newest checkpoints of each namespace of a thread."""
    for place in saver.storage[thread()["configurable"]["thread_id"]].values():
        for each in sorted(place)[:-keep]:
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
    with pytest.raises(ValueError, match="lacks the params of attempt 2"):
        ledger.params_at(2)
    assert [ledger.value_at(n) for n in (1, 2, 3)] == [None] * 3
    assert ledger.params_diff(4) == [{"path": "/n", "before": 3, "after": 4}]

    assert [each.differs for each in replay(ledger.attempts, output=dict[str, int])] == [[]] * 4
    with pytest.raises(ValueError, match="lacks the result of attempt 1"):
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
    with pytest.raises(AnswerRefused, match="attempt 2 cannot be rewound to"):
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


def told(graph):
    """Return the outcome of each call of the thread, and whether it is in the thread's line."""
    return [(each.outcome, each.current) for each in attempts_of(graph, thread())]


def two_calls(form, saver):
    """Compile a graph with a call, a node without one, and a call that takes the first's output."""
    first = one_call(form, SYNC, Model(), None)
    second = one_call(form, SYNC, Model(goal=9), None)
    builder = StateGraph(State).add_node("first", first).add_node("second", second)
    builder.add_node("between", lambda state: {"params": {"n": state["output"]["n"]}})
    builder.add_edge(START, "first").add_edge("first", "between").add_edge("between", "second")
    return builder.compile(checkpointer=saver)


@pytest.mark.parametrize("keep", [3, 2, 1])
def test_a_rewound_call_is_replaced_whatever_checkpoints_are_left(form, keep):
    """A call that a fork continues is known by the call that continues it."""
    saver = InMemorySaver()
    graph = two_calls(form, saver)
    graph.invoke({"params": {"n": 0}}, thread())
    answer(SYNC, graph, thread(), edit(n=1))
    for n in (2, 3):
        (*_, call, _) = attempts_of(graph, thread())
        rewind(graph, thread(), call, attempt=2, params={"n": n})
    first, abandoned = ("succeeded", False), ("open", False)
    now = [("succeeded", True), ("waiting", True)]
    assert told(graph) == [first, abandoned, first, abandoned, *now]

    pruned(saver, graph, keep)

    found = told(graph)
    assert (found[0], found[2], found[4:]) == (first, first, now)
    # Whether the thread's line has the others is not known, but it does not wait for them.
    assert {outcome for outcome, _ in found[1:4:2]} == {"open"}


@pytest.mark.parametrize("keep", [3, 2, 1])
def test_a_thread_does_not_wait_for_a_call_that_an_input_ended(form, keep):
    """It waits for the calls that were made from its newest checkpoint."""
    saver = InMemorySaver()
    graph = one_call(form, SYNC, Model(), saver)
    for _ in range(2):
        graph.invoke({"params": {"n": 0}}, thread())
    assert told(graph) == [("open", False), ("waiting", True)]

    pruned(saver, graph, keep)

    # Without the checkpoint of the input, nothing shows that the first call was replaced.
    assert told(graph) == [("open", keep == 1), ("waiting", True)]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_calls_whose_questions_are_not_shown_yet_wait(durability):
    """Under a plain `asyncio.gather` a thread shows one question at a time."""
    saver = InMemorySaver()

    async def run():
        graph = gathered(Model(), saver, 2, asyncio.gather)
        await graph.ainvoke({}, thread(), durability=durability)
        return graph

    graph = asyncio.run(run())
    assert len(graph.get_state(thread()).interrupts) == 1
    assert told(graph) == [("waiting", True)] * 2
    assert told(pruned(saver, graph)) == [("waiting", True)] * 2
