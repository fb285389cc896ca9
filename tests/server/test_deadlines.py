"""Reviews that nobody answers in time, on a real server: swept once, from outside and inside."""

import threading

import pytest
from langgraph.pregel.remote import RemoteException, RemoteGraph

from graph_retry import StaleDecision, edit, pending_reviews
from graph_retry._core.threads import expiry, inbox
from tests.dev_server import dev_server
from tests.server.conftest import Served, graphs_in


def decision(client, thread_id):
    """Return what was decided about a thread's only attempt."""
    (attempt,) = client.threads.get_state(thread_id)["values"]["attempts"]
    return attempt["decision"]


def expired(client, count):
    """Start threads whose reviews are over at once; return their ids."""
    threads = [client.threads.create()["thread_id"] for _ in range(count)]
    runs = [client.runs.create(each, "expiring", input={"params": {"n": 0}}) for each in threads]
    for thread_id, run in zip(threads, runs, strict=True):
        client.runs.join(thread_id, run["run_id"])
    return threads


def test_two_sweeps_end_a_review_once(served):
    """Both sweeps together end each review once, by its default decision, without a model call."""
    with served.sync_client() as client:
        threads = expired(client, 4)
        start, ended = threading.Barrier(2), []

        def sweep():
            start.wait(30)
            with served.sync_client() as own:
                ended.extend(review.thread_id for review in expiry.expire_reviews(own))

        sweeps = [threading.Thread(target=sweep) for _ in range(2)]
        for each in sweeps:
            each.start()
        for each in sweeps:
            each.join(60)
        assert sorted(each for each in ended if each in threads) == sorted(threads)
        for thread_id in threads:
            runs = client.runs.list(thread_id)
            for run in runs:
                client.runs.join(thread_id, run["run_id"])
            note = decision(client, thread_id)
            assert (note["author"], note["type"], note["channel"]) == (
                "system",
                "respond",
                "system",
            )
            assert client.threads.get_state(thread_id)["values"]["output"] == {"n": 7}
            assert len(served.calls(thread_id)) == 1
        assert expiry.expire_reviews(client) == []


def test_an_answer_after_the_deadline_is_refused(served, config):
    """The default decision is applied instead, and the one who answered is told."""
    with served.sync_client() as client:
        graph = RemoteGraph("expiring", sync_client=client)
        graph.invoke({"params": {"n": 0}}, config)
        (review,) = pending_reviews(graph, config)
        with pytest.raises(StaleDecision, match="expired at 20"):
            review.answer(edit(n=4))
        thread_id = config["configurable"]["thread_id"]
        assert decision(client, thread_id)["author"] == "system"
        assert len(served.calls(thread_id)) == 1


def test_a_late_answer_is_told_so_if_the_default_rejects(served, config, shown):
    """The run of a function's call ends as an error on the server, and the sender is told why.

    An older server hides the call's state, and only its own error is raised.
    """
    with served.sync_client() as client:
        graph = RemoteGraph("expiring_function", sync_client=client)
        graph.invoke({"params": {"n": 0}}, config)
        (review,) = pending_reviews(graph, config)
        error, text = (StaleDecision, "expired at 20") if shown else (RemoteException, "Cancelled")
        with pytest.raises(error, match=text) as caught:
            review.answer(edit(n=4))
        raised = caught.value
        assert isinstance(raised.__cause__ if shown else raised, RemoteException)
        assert len(served.calls(config["configurable"]["thread_id"])) == 1


@pytest.mark.long
def test_threads_outlive_the_server_and_the_sweeper_needs_no_second_worker(tmp_path):
    """After a restart a review is answered, and a sweep from inside ends others with one worker."""
    graphs = graphs_in(tmp_path)
    with dev_server(tmp_path, graphs, jobs=1) as url, Served(url, tmp_path).sync_client() as client:
        (over,) = expired(client, 1)
        asked = client.threads.create()["thread_id"]
        state = client.runs.wait(asked, "node", input={"params": {"n": 0}})
        (question,) = state["__interrupt__"]
        failed = client.threads.create()["thread_id"]
        state = client.runs.wait(failed, "function", input={"params": {"n": 0}})
        stop = {each["id"]: "reject" for each in state["__interrupt__"]}
        client.runs.wait(failed, "function", command={"resume": stop}, raise_error=False)
        assert client.threads.get(failed)["status"] == "error"
    del graphs["function"]
    with dev_server(tmp_path, graphs, jobs=1) as url, Served(url, tmp_path).sync_client() as client:
        waiting = {review.thread_id for review in inbox.list_reviews(client)}
        assert waiting == {asked, over}  # a failed thread of a graph that is gone is passed over
        resume = {question["id"]: {"type": "edit", "params": {"n": 4}}}
        state = client.runs.wait(asked, "node", command={"resume": resume})
        assert state["output"] == {"n": 4}
        assert [call["n"] for call in Served(url, tmp_path).calls(asked)] == [0, 4]

        swept = client.runs.wait(None, "sweeper", input={})
        assert swept == {"ended": [{"thread_id": over, "function_name": "count", "attempt": 1}]}
        (run, *_) = client.runs.list(over)
        assert client.runs.join(over, run["run_id"])["output"] == {"n": 7}
        assert decision(client, over)["author"] == "system"
        assert client.runs.wait(None, "sweeper", input={}) == {"ended": []}
