"""Calls on a real server that are over: read, made again and decided differently."""

import pytest
from langgraph.pregel.remote import RemoteException

from graph_retry import edit, reject, respond
from tests.server.remote import HIDDEN

# An older server shows nothing of functions' calls, and the reader is warned.
pytestmark = pytest.mark.filterwarnings("ignore:the server hides")


def finish(thread):
    """Fail with 0, be edited to 2."""
    thread.invoke({"params": {"n": 0}})
    assert thread.resume(edit(n=2))["output"] == {"n": 2}


def test_a_finished_call_is_read_and_made_again(remote, form, shown):
    """Exactly the new calls, earlier attempts kept; one that fails again is reviewed as ever."""
    thread = remote(form)
    finish(thread)
    seen = shown or form == "node"
    assert thread.told() == ([[("caller", 0), ("human", 2)]] if seen else [])
    assert thread.rewind(attempt=2, params={"n": 3}, reason="three")["output"] == {"n": 3}
    assert thread.calls() == [0, 2, 3]
    if not seen:  # what never asked is not found there
        with pytest.raises(ValueError, match=r"has no calls.*a newer server"):
            thread.rewind(attempt=1, params={"n": 4})
        return
    assert thread.told() == [[("caller", 0), ("rewind", 3)]]
    assert thread.ledgers()[0].at(2)["reason"] == "three"
    thread.rewind(attempt=1, params={"n": 1})
    (review,) = thread.reviews()
    assert (review.attempt, review.params["n"]) == (1, 1)
    assert thread.resume(edit(n=5))["output"] == {"n": 5}
    assert thread.told() == [[("rewind", 1), ("human", 5)]]
    assert thread.calls() == [0, 2, 3, 1, 5]


def test_a_call_that_never_asked_is_made_again(remote, form):
    """It succeeded at once: a retry node is found by its place, a function's call is not."""
    thread = remote(form)
    thread.invoke({"params": {"n": 2}})
    if form == "function":
        with pytest.raises(ValueError, match="has no calls"):
            thread.rewind(attempt=1, params={"n": 3})
        return
    assert thread.rewind(attempt=1, params={"n": 3})["output"] == {"n": 3}
    assert thread.told() == [[("rewind", 3)]]
    assert thread.calls() == [2, 3]


def test_a_review_is_answered_differently(remote, form, shown):
    """While it or a later one is open and when all is over: no model is called for it."""
    thread = remote(form)
    thread.invoke({"params": {"n": 0}})
    thread.resume(edit(n=1))
    for output in ({"n": 9}, {"n": 8}):  # another review waits, then none
        assert thread.rewind(attempt=1, decision=respond(output))["output"] == output
        assert thread.calls() == [0, 1]
    if form == "function" and not shown:
        return
    (ledger,) = thread.ledgers()
    assert [each["decision"]["author"] for each in ledger.attempts] == ["rewind"]
    thread.rewind(attempt=1, params={"n": 1})
    for made in (7, 6):
        calls = thread.calls()
        cancel(thread, form)  # its review waits, then it is over
        assert thread.calls() == calls
        assert thread.rewind(attempt=1, params={"n": made})["output"] == {"n": made}
        assert (thread.calls(), thread.status()) == ([*calls, made], "idle")


def cancel(thread, form):
    """Reject attempt 1; the function form's thread ends in `error`, as with any rejection."""
    change = {"attempt": 1, "decision": reject("no need")}
    if form == "node":
        assert (thread.rewind(**change)["status"], thread.status()) == ("cancelled", "idle")
        return
    with pytest.raises(RemoteException, match="CallCancelled"):
        thread.rewind(**change)
    assert thread.status() == "error"


def test_a_refused_rewind_changes_nothing(remote, form, shown):
    """Params that do not fit and an attempt that is not there leave the thread as it was."""
    thread = remote(form)
    finish(thread)
    ledgers = thread.told()
    for change, problem in (
        ({"attempt": 1, "params": {"n": "x"}}, "refused: `n` expects a number"),
        ({"attempt": 3, "params": {"n": 4}}, "has no attempt 3"),
    ):
        with pytest.raises(
            ValueError, match=problem if shown or form == "node" else "refused|made"
        ):
            thread.rewind(**change)
        assert thread.told() == ledgers
        assert thread.status() == "idle"
    assert thread.calls() == [0, 2]


def test_a_review_is_not_answered_by_a_rewind_that_is_refused(remote, form):
    """An attempt that was never made is no answer to the open question."""
    thread = remote(form)
    thread.invoke({"params": {"n": 0}})
    with pytest.raises(ValueError, match="`attempt` is 2, but the call has made 1"):
        thread.rewind(attempt=2, params={"n": 4})
    assert (len(thread.reviews()), thread.calls()) == (1, [0])


def test_what_ran_beside_it_is_not_paid_again(remote, shown):
    """Other branches keep their calls, and a review that waits there keeps its id."""
    thread = remote("fan")
    thread.invoke({"items": [0, 5, 1]})
    first, waiting = sorted(thread.reviews(), key=lambda review: review.params["n"])
    thread.resume(answers={first.review_id: edit(n=2)})
    if not shown:
        return
    branch = next(each for each in thread.ledgers() if each.params_at(1)["n"] == 0)
    before = thread.calls()
    thread.rewind(branch, attempt=2, params={"n": 3})
    assert thread.calls() == [*before, 3]
    (still,) = thread.reviews()
    assert still.review_id == waiting.review_id
    branch = next(each for each in thread.ledgers() if each.params_at(1)["n"] == 0)
    with pytest.raises(ValueError, match="refused"):
        thread.rewind(branch, attempt=1, params={"n": "x"})
    (still,) = thread.reviews()
    assert still.review_id == waiting.review_id
    assert thread.resume(edit(n=4))["outputs"] == [3, 5, 4]
    assert thread.calls() == [*before, 3, 4]


@pytest.mark.parametrize("name", ["several", "several_async"])
def test_of_several_calls_in_a_node_the_later_ones_follow(remote, name, shown):
    """The first one is known by its question, and has the others made again."""
    thread = remote(name)
    thread.invoke({"params": {"n": 0}})
    assert thread.resume(edit(n=2))["output"] == [2, 12, 22]
    if not shown:
        return
    (first,) = thread.ledgers()  # nobody was asked about the others
    assert thread.rewind(first, attempt=2, params={"n": 3})["output"] == [3, 13, 23]
    assert thread.calls() == [0, 2, 12, 22, 3, 13, 23]
    assert thread.told() == [[("caller", 0), ("rewind", 3)]]


def test_a_call_whose_attempts_no_state_shows_is_made_again(remote):
    """An entrypoint has no state to show them in; its only call is found by what it asked."""
    thread = remote("bare")
    finish(thread)
    with pytest.warns(UserWarning, match=HIDDEN):
        assert thread.ledgers() == []
    assert thread.rewind(attempt=2, params={"n": 3})["output"] == {"n": 3}
    assert thread.calls() == [0, 2, 3]


def test_a_call_in_a_subgraph_is_made_again(remote):
    """The subgraph runs again from its beginning, and its calls keep what they had."""
    thread = remote("nested")
    finish(thread)
    (ledger,) = (each for each in thread.ledgers() if "|" in each.namespace)
    assert len(ledger.attempts) == 2
    assert thread.rewind(ledger, attempt=2, params={"n": 3})["output"] == {"n": 3}
    assert thread.calls() == [0, 2, 3]
    assert thread.status() == "idle"
