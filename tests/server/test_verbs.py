"""The local verbs on a real server: the inbox of all threads, and one answer to each review."""

import asyncio
import re
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from langgraph.pregel.remote import RemoteGraph

import graph_retry
from graph_retry import StaleDecision, edit, pending_reviews, respond, resume
from graph_retry._core.threads import inbox
from graph_retry._core.threads.server import server_reviews
from tests.dev_server import ROOT


async def started(served, graph, inputs):
    """Start one thread for each input; return the ids."""
    async with served.client() as client:

        async def start(given):
            thread_id = (await client.threads.create())["thread_id"]
            await client.runs.wait(thread_id, graph, input=given)
            return thread_id

        return await asyncio.gather(*map(start, inputs))


@pytest.fixture
def client(served, mode):
    """A client of the test's mode."""
    with mode.opened(served.client() if mode.is_async else served.sync_client()) as client:
        yield client


def answer(mode, review, decision):
    """Answer a review in the test's mode."""
    return mode.call(review, "answer", decision)


def test_the_inbox_of_a_server(served, mode, client, monkeypatch):
    """Reviews of 27 threads of two graphs are listed over several pages, and can be answered."""
    monkeypatch.setattr(server_reviews, "_PAGE", 10)
    numbers = [{"params": {"n": 0, "note": str(i)}} for i in range(14)]
    nodes, functions = (
        asyncio.run(started(served, "node", numbers)),
        asyncio.run(started(served, "function", numbers[1:])),
    )
    listed = mode.call(inbox, "list_reviews", client)
    asked_at = [review.asked_at for review in listed]
    assert asked_at == sorted(asked_at, reverse=True)
    mine = {each.thread_id: each for each in listed if each.thread_id in {*nodes, *functions}}
    assert set(mine) == {*nodes, *functions}
    assert len({review.review_id for review in listed}) == len(listed)
    assert [mine[each].params["note"] for each in nodes] == [str(i) for i in range(14)]
    assert [mine[each].function_name for each in functions] == ["count"] * 13
    limited = mode.call(inbox, "list_reviews", client, limit=3)
    assert [review.review_id for review in limited] == [review.review_id for review in listed[:3]]

    for thread_id in (nodes[0], functions[0]):
        state = answer(mode, mine[thread_id], edit(n=4))
        assert state["output"] == {"n": 4}
        with pytest.raises(StaleDecision, match="human answered it at 20"):
            answer(mode, mine[thread_id], edit(n=5))
        assert [call["n"] for call in served.calls(thread_id)] == [0, 4]
    left = {each.thread_id for each in mode.call(inbox, "list_reviews", client)}
    assert left & set(mine) == set(mine) - {nodes[0], functions[0]}


class Older(RemoteGraph):
    """A remote graph on a server with LangGraph 1.2.20, which shows no function-form calls."""

    def get_state(self, config, **options):
        """Refuse a place inside the thread."""
        return super().get_state(misplaced(config), **options)

    async def aget_state(self, config, **options):
        """Refuse a place inside the thread, from async code."""
        return await super().aget_state(misplaced(config), **options)


def misplaced(config):
    """Refuse a config that names a place inside a thread, as such a server does."""
    if "checkpoint_ns" in config["configurable"]:
        request = httpx.Request("POST", "http://server/threads/1/state/checkpoint")
        raise httpx.HTTPStatusError("no", request=request, response=httpx.Response(400))
    return config


def test_reviews_beside_a_broken_branch_are_found_and_answered(served, mode, client):
    """A thread in `error` still asks what it asked; what was answered there is not shown again."""
    (thread_id,) = asyncio.run(started(served, "fan", [{"items": [0, 1, -1]}]))
    config = {"configurable": {"thread_id": thread_id}}
    graph = RemoteGraph("fan", **{"client" if mode.is_async else "sync_client": client})
    reviews = mode.call(inbox, "list_reviews", client)
    (third,) = (r for r in reviews if r.thread_id == thread_id and r.params["n"] == -1)
    with pytest.raises(Exception, match="this branch is broken"):
        answer(mode, third, edit(n=113))

    with served.sync_client() as reader:
        assert reader.threads.get(thread_id)["status"] == "error"
        shown = reader.threads.get_state(thread_id)["interrupts"]
        assert len(shown) == 3  # the server still shows the answered one
    asked = [r for r in mode.call(inbox, "list_reviews", client) if r.thread_id == thread_id]
    assert sorted(review.params["n"] for review in asked) == [0, 1]
    found = mode.call(graph_retry, "pending_reviews", graph, config)
    assert sorted(review.params["n"] for review in found) == [0, 1]
    older = Older("fan", client=graph.client, sync_client=graph.sync_client)
    found = mode.call(graph_retry, "pending_reviews", older, config)
    assert sorted(review.params["n"] for review in found) == [0, 1]
    with pytest.raises(StaleDecision, match="human answered it at 20"):
        answer(mode, third, edit(n=113))

    answer(mode, asked[0], edit(n=4))
    state = answer(mode, asked[1], edit(n=5))
    assert sorted(state["outputs"]) == [4, 5, 113]
    models = [call["n"] for call in served.calls(thread_id) if "n" in call]
    assert sorted(models) == [-1, 0, 1, 4, 5, 113]


class Slow(RemoteGraph):
    """A remote graph on whose thread somebody else is always a little quicker."""

    rival = None

    def invoke(self, *args, **kwargs):
        """Let the rival be first."""
        self.rival()
        return super().invoke(*args, **kwargs)


RIVALS = {
    "by id": {"type": "edit", "params": {"n": 1}, "by": "ada"},
    # LangGraph hands a plain answer to the next question, too: this one tells its attempt.
    "plain": {"type": "edit", "params": {"n": 1}, "by": "ada", "attempt": 1},
    "new input": None,
}


def beaten(served, form, rival):
    """Answer a moment after a rival; return what both of them were told and the calls."""
    config = {"configurable": {"thread_id": str(uuid.uuid4())}}
    thread_id, given = config["configurable"]["thread_id"], RIVALS[rival]
    with served.sync_client() as client:
        graph = Slow(form, sync_client=client)
        graph.rival = lambda: None
        graph.invoke({"params": {"n": 0}}, config)
        (review,) = pending_reviews(graph, config)
        resume_ = {review.interrupt_id: given} if rival == "by id" else given
        run = {"command": {"resume": resume_}} if given else {"input": {"params": {"n": 1}}}
        graph.rival = lambda: client.runs.wait(thread_id, form, **run)
        with pytest.raises(StaleDecision) as told:
            resume(graph, config, {**edit(n=7), "by": "bob"})
        calls = [call["n"] for call in served.calls(thread_id)]
        graph.rival = lambda: None
        return str(told.value), calls, resume(graph, config, edit(n=2))["output"]


def test_an_answer_that_comes_second_is_told_so(served):
    """The server passes over an answer to a question that is gone: the list of runs tells."""
    cases = [(form, rival) for form in ("node", "function") for rival in RIVALS]
    with ThreadPoolExecutor(len(cases)) as pool:
        found = list(pool.map(lambda case: beaten(served, *case), cases))
    for (form, rival), (told, calls, output) in zip(cases, found, strict=True):
        who = "human:ada continued it"
        what = "a run without an answer began" if rival == "new input" else who
        assert re.search(f"another answer on thread '.*' came first: {what} at 20", told), (
            form,
            rival,
        )
        assert (calls, output) == ([0, 1], {"n": 2}), (form, rival)


def test_an_answer_while_the_thread_runs_is_refused(served, config):
    """Somebody else's answer is being applied: who it was is told, nothing is written."""
    with served.sync_client() as client:
        graph, thread_id = (
            RemoteGraph("node", sync_client=client),
            config["configurable"]["thread_id"],
        )
        graph.invoke({"params": {"n": 0}}, config)
        (review,) = pending_reviews(graph, config)
        slow = {**edit(n=3, note=f"gate-{thread_id}"), "by": "ada"}
        run = client.runs.create(thread_id, "node", command={"resume": {review.interrupt_id: slow}})
        with pytest.raises(StaleDecision, match="nothing was saved: human:ada continued it at 20"):
            review.answer(respond({"n": 9}))
        (served.folder / f"gate-{thread_id}").touch()
        assert client.runs.join(thread_id, run["run_id"])["output"] == {"n": 3}


@pytest.mark.slow
def test_of_two_processes_one_answers(served, config):
    """Two processes answer at once: one is applied, the other one is told who was first."""
    with served.sync_client() as client:
        RemoteGraph("node", sync_client=client).invoke({"params": {"n": 0}}, config)
    thread_id = config["configurable"]["thread_id"]
    command = [sys.executable, "-m", "tests.server.resume_process", served.url, thread_id]
    people = {"ada": "4", "bob": "5"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    processes = [subprocess.Popen([*command, *each], **pipes) for each in people.items()]
    assert [each.stdout.readline() for each in processes] == ["ready\n"] * 2
    for each in processes:
        each.stdin.write("go\n")
        each.stdin.flush()
    outcomes = [each.communicate(timeout=120)[0] for each in processes]
    (n,) = (each.split()[1] for each in outcomes if each.startswith("applied"))
    (stale,) = (each for each in outcomes if each.startswith("stale"))
    (winner,) = (name for name in people if people[name] == n)
    assert f"human:{winner} continued it at 20" in stale
    assert [call["n"] for call in served.calls(thread_id)] == [0, int(n)]
