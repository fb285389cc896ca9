"""The ledgers of threads on a real server, as far as the server shows them."""

import time
from pathlib import Path

import pytest

from graph_retry import edit, respond
from graph_retry.data import corrections_of
from tests.server.remote import HIDDEN


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


@pytest.mark.filterwarnings("ignore:the server hides")
def test_calls_that_nobody_was_asked_about_are_listed_by_the_names_that_asked(remote, shown):
    """A server knows a function's call by its name alone, which only a question tells it."""
    thread = remote("several_async")
    thread.invoke({"params": {"n": 2}})
    assert thread.ledgers() == []
    thread.invoke({"params": {"n": 0}})
    thread.resume(edit(n=3))
    titles = [each.title for each in thread.ledgers() if each.current]
    assert set(titles) == ({"count in ask"} if shown else set())


@pytest.mark.filterwarnings("ignore:the server hides")
def test_a_call_of_a_step_takes_one_request(remote, shown):
    """And one for the thread's steps: no names are tried."""
    thread = remote("several")
    thread.invoke({"params": {"n": 0}})
    before = len(thread.requests)
    assert len(thread.ledgers()) == int(shown)
    assert not shown or len(thread.requests) - before == 2


def test_corrections_are_read_from_a_server(remote):
    """A client lists the threads, and each is read as its graph shows it."""
    thread = remote("node")
    thread.invoke({"params": {"n": 0}})
    thread.resume(respond({"n": 3}))
    place = thread.config["configurable"]["thread_id"]
    with thread.served.sync_client() as client:
        rows = list(corrections_of(client, threads=[place]))
    assert [(row["how"], row["value"], row["thread"]) for row in rows] == [
        ("supplied", {"n": 3}, place)
    ]


def test_long_outputs_of_earlier_attempts_are_read_where_they_are(remote, form, shown):
    """The state of a waiting call has the last of them, and the server shows the others."""
    thread = remote(form)
    thread.invoke({"params": {"n": 0, "note": "talk"}})
    for n in (1, -1):
        thread.resume(edit(n=n))
    if form == "node":
        state = thread.mode.call(thread.graph, "get_state", thread.config, subgraphs=True)
        records = state.tasks[0].state.values["attempts"]
        assert [bool(each["kept_in"]) for each in records] == [True, True, False]
    told = [each.history for each in thread.reviews()]
    if shown or form == "node":
        told += [each.attempts for each in thread.ledgers()]
        assert len(told) == 2
    for attempts in filter(None, told):
        outputs = [each["raw"]["text"] for each in attempts]
        assert [output[7:10] for output in outputs] == ["0 i", "1 i", "-1 "]
        assert [each["kept_in"] for each in attempts] == [None] * 3
    state = thread.resume(edit(n=2))
    if form == "node":
        assert len(state["attempts"][0]["raw"]["text"]) > 2_000


def test_a_long_thread_without_calls_is_read_in_few_requests(remote):
    """Eighty steps of a node that could have called: nothing is tried where nobody was asked."""
    thread = remote("behind_tasks")
    thread.invoke({"params": {"n": 0}})
    before = len(thread.requests)
    assert thread.ledgers() == []
    assert len(thread.requests) - before <= 4


@pytest.mark.parametrize("name", ["hiding", "hiding_async"])
def test_calls_that_the_server_hides_are_told_of(remote, name):
    """Without the key `attempts` in the graph's state the reader is told what to do."""
    thread = remote(name)
    thread.invoke({"params": {"n": 0}})
    with pytest.warns(UserWarning, match=HIDDEN.replace(".*", "ask.*")) as told:
        assert thread.ledgers() == []
    assert [Path(each.filename).name for each in told] == ["conftest.py"]
