"""The ledgers of threads on a real server, as far as the server shows them."""

import time
from pathlib import Path

import pytest

from tests.server.remote import HIDDEN
from tests.server.served import P


def test_a_thread_that_never_ran_has_no_ledgers(remote):
    """It is there, and was not run: no calls."""
    thread = remote("node")
    with thread.served.sync_client() as client:
        thread.config = {"configurable": {"thread_id": client.threads.create()["thread_id"]}}
    assert thread.ledgers() == []


@pytest.mark.parametrize("name", ["node", "function", "several_async", "hiding_async"])
def test_a_first_attempt_on_its_way_is_no_hidden_call(remote, name):
    """While the model is asked there is nothing to show yet, and nothing to warn of."""
    thread = remote(name)
    thread_id = thread.config["configurable"]["thread_id"]
    with thread.served.sync_client() as client:
        client.threads.create(thread_id=thread_id)
        given = {"params": {"n": 2, "note": f"gate-{thread_id}"}}
        run = client.runs.create(thread_id, name, input=given)["run_id"]
        deadline = time.monotonic() + 60
        while not thread.calls() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert thread.ledgers() == []
        (thread.served.folder / f"gate-{thread_id}").touch()
        client.runs.join(thread_id, run)
    assert thread.calls()[0] == 2


def test_calls_that_nobody_was_asked_about_are_listed(remote, shown):
    """Async calls of one node, each by its own name, where none of them needed a person."""
    thread = remote("several_async")
    thread.invoke({"params": {"n": 2}})
    titles = ["count in ask", "again in ask", "count in ask"]
    assert [each.title for each in thread.ledgers()] == (titles if shown else [])
    if shown:
        state = thread.rewind(thread.ledgers()[1], attempt=1, params={"n": 3})
        assert state["output"] == [2, 3, 13]
        assert thread.told() == [[("caller", 2)], [("rewind", 3)], [("caller", 13)]]


def test_a_call_after_tasks_of_ones_own_is_listed(remote, shown):
    """It is found in the one of eighty steps that made it."""
    thread = remote("behind_tasks")
    thread.invoke({"params": {"n": 70}})
    found = thread.ledgers()
    assert [(each.title, each.params_at(1)) for each in found] == (
        [("count_model in count_up", P(n=4).model_dump())] if shown else []
    )


def test_three_calls_of_a_step_take_as_many_requests(remote, shown):
    """And one for the thread's steps, one where there is no fourth call, and one for its state."""
    thread = remote("several")
    thread.invoke({"params": {"n": 2}})
    before = len(thread.requests)
    assert len(thread.ledgers()) == (3 if shown else 0)
    assert not shown or len(thread.requests) - before == 6


def test_a_long_thread_without_calls_is_read_in_bounded_requests(remote):
    """Eighty steps of a node that could have called: six for each of the first fifty, then two."""
    thread = remote("behind_tasks")
    thread.invoke({"params": {"n": 0}})
    before = len(thread.requests)
    assert thread.ledgers() == []
    assert 80 < len(thread.requests) - before <= 50 * 6 + 30 * 2 + 2


@pytest.mark.parametrize("name", ["hiding", "hiding_async"])
def test_calls_that_the_server_hides_are_told_of(remote, name):
    """Without the key `attempts` in the graph's state the reader is told what to do."""
    thread = remote(name)
    thread.invoke({"params": {"n": 0}})
    with pytest.warns(UserWarning, match=HIDDEN.replace(".*", "ask.*")) as told:
        assert thread.ledgers() == []
    assert [Path(each.filename).name for each in told] == ["conftest.py"]
