"""Of many attempts state names the first and the last ones; whoever reads a ledger finds all."""

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import CallCancelled, edit, reject
from graph_retry._core.state import attempts as ledgers
from graph_retry.threads import attempts_of
from tests.history.test_keeping import SIZE, SYNC, in_state, kept
from tests.history.test_pruned import pruned
from tests.loops import Model, answer, one_call, reviews, thread


def wordy(form, saver, upto, begun=None, **options):
    """Return a graph with a call that waits after `upto` long outputs, none of them right."""
    wrong = Model(lambda params: f"no {params['n']} " + "x" * SIZE)
    model = Model(lambda params: wrong(params) if params["n"] < 99 else '{"n": 9}')
    graph = one_call(form, SYNC, model, saver, max_attempts=50, **options)
    if begun is None:
        graph.invoke({"params": {"n": 1}}, thread())
    for n in range((begun or 1) + 1, upto + 1):
        answer(SYNC, graph, thread(), edit(n=n))
    return graph


def words(attempts):
    """Return the beginning of each raw output."""
    return [each["raw"] and each["raw"]["text"][:5].strip("x") for each in attempts]


def listed_in_state(saver):
    """Return the numbers of the attempts that the call's newest state names."""
    saved = [each.checkpoint for each in saver.list(thread())]
    calls = [each for each in saved if "retry_loop" in each["channel_values"]]
    newest = max(calls, key=lambda checkpoint: checkpoint["id"])
    return [each["number"] for each in newest["channel_values"]["attempts"]]


MANY = 20
LATE = [1, *range(12, MANY + 1)]
"""What state names of so many: the first, the last eight that are kept elsewhere, the present."""


def test_state_names_no_more_attempts_after_many_and_readers_find_all(form):
    """Those in between are named by the checkpoints of later ones, and the end has them all."""
    saver = InMemorySaver()
    graph = wordy(form, saver, MANY)
    assert listed_in_state(saver) == LATE
    expected = [f"no {n} "[:5] for n in range(1, MANY + 1)]
    (ledger,) = attempts_of(graph, thread())
    (review,) = reviews(SYNC, graph, thread())
    for attempts in (ledger.attempts, review.history):
        assert words(attempts) == expected
    assert [ledger.params_at(n)["n"] for n in range(1, MANY + 1)] == [*range(1, MANY + 1)]
    answer(SYNC, graph, thread(), edit(n=99))
    assert listed_in_state(saver) == [*range(1, MANY + 2)]
    assert words(in_state(SYNC, saver))[:MANY] == expected


def test_a_call_goes_back_to_an_attempt_that_state_does_not_name(form):
    """It is found through later ones, and what follows is left in the call's new checkpoints."""
    saver = InMemorySaver()
    graph = wordy(form, saver, MANY)
    answer(SYNC, graph, thread(), {**edit(n=50), "rewind": {"attempt": 5}})
    for n in range(51, 62):
        answer(SYNC, graph, thread(), edit(n=n))
    (ledger,) = attempts_of(graph, thread())
    numbers = [*range(1, 6), *range(50, 62)]
    assert words(ledger.attempts) == [f"no {n} "[:5] for n in numbers]
    assert [ledger.params_at(n + 1)["n"] for n in range(len(numbers))] == numbers


def test_a_thread_that_names_every_attempt_goes_on(form, monkeypatch):
    """An earlier version named them all in state; the next attempt leaves that to a checkpoint."""
    saver = InMemorySaver()
    with monkeypatch.context() as patch:
        patch.setattr(ledgers, "_PLACES", 10**9)
        wordy(form, saver, MANY - 2)
        assert len(listed_in_state(saver)) == MANY - 2
    graph = wordy(form, saver, MANY, begun=MANY - 2)
    assert listed_in_state(saver) == LATE
    (ledger,) = attempts_of(graph, thread())
    assert words(ledger.attempts) == [f"no {n} "[:5] for n in range(1, MANY + 1)]


@pytest.mark.parametrize("number", [2, 13])
def test_one_checkpoint_that_is_gone_hides_one_of_many_attempts(form, number):
    """Whether state names it or only the checkpoint of a later one does."""
    saver = InMemorySaver()
    graph = wordy(form, saver, number + 1)
    gone = in_state(SYNC, saver)[number - 1]["kept_in"]["checkpoint_id"]
    wordy(form, saver, MANY, begun=number + 1)
    for place in saver.storage[thread()["configurable"]["thread_id"]].values():
        place.pop(gone, None)
    (ledger,) = attempts_of(graph, thread())
    missing = [each["number"] for each in ledger.attempts if each["kept_in"]]
    assert missing == [number]
    expected = [*range(1, MANY + 1)]
    expected.remove(number)
    assert [ledger.params_at(n)["n"] for n in expected] == expected


def test_many_attempts_whose_checkpoints_are_gone_are_known_by_their_numbers(form):
    """Also those that state does not name."""
    saver = InMemorySaver()
    graph = pruned(saver, wordy(form, saver, MANY, on_cancel="raise"))
    (ledger,) = attempts_of(graph, thread())
    assert [each["number"] for each in ledger.attempts] == [*range(1, MANY + 1)]
    assert kept(ledger.attempts) == [True] * (MANY - 1) + [False]
    assert [ledger.params_at(n)["n"] for n in (1, MANY - 1, MANY)] == [1, MANY - 1, MANY]
    with pytest.raises(CallCancelled) as caught:
        answer(SYNC, graph, thread(), reject("no"))
    assert len(caught.value.attempts) == MANY


def test_a_number_that_no_call_reaches_lists_no_others():
    """A state that somebody changed is left as it is, and takes no memory."""
    changed = [{"number": 1}, {"number": 10**12, "kept_in": {"checkpoint_id": "1f0"}}]
    assert ledgers.listed(changed) == changed
