"""Runs that were cancelled on a real server: whoever looks at their threads sees the same."""

import json
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from langgraph.pregel.remote import RemoteGraph

from graph_retry import AnswerRefused, approve, edit, pending_reviews, reject, resume
from graph_retry._core.threads import inbox
from graph_retry._core.threads.server import server_reviews
from graph_retry.desk.cli.app import app
from graph_retry.threads import list_reviews

WAIT_S = 60


def until(met: Callable[[], bool]) -> None:
    """Wait for something the server does in its own time."""
    deadline = time.monotonic() + WAIT_S
    while not met():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@dataclass
class Stopped:
    """A thread, which way its last run was stopped, and what is to be seen of it then.

    `attempts` are those that may be under review, None for no review; `left` tells whether there
    is something to run.
    """

    form: str
    way: str
    attempts: set[int | None]
    left: bool = True
    thread_id: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def graph(self) -> str:
        """The graph, whose model waits on the event loop."""
        return f"patient_{self.form}"

    @property
    def gate(self) -> str:
        """The file that the call waits for."""
        return f"gate-{self.thread_id}"

    @property
    def first(self) -> bool:
        """Whether it is the first run that is stopped, which nothing was asked in."""
        return self.way.startswith("first")


CASES = [
    *(
        Stopped(form, *case)
        for form in ("node", "function")
        for case in (
            ("answered interrupt", {None}),
            # As far as the run has come when the server takes it back, the answer is gone or not.
            ("answered rollback", {None, 1}),
            ("not begun interrupt", {1}),
        )
    ),
    Stopped("node", "first interrupt", {None}),
    Stopped("node", "first rollback", {None}, left=False),
    Stopped("node", "not begun rollback", {1}),
    Stopped("node", "double text enqueue", {1}),
    Stopped("function", "double text interrupt", {1}),
]


def begin(client: Any, case: Stopped) -> str | None:
    """Start the run that is to be stopped; of one that has not begun, too."""
    client.threads.create(thread_id=case.thread_id, graph_id=case.graph)
    params = {"n": 0, "note": case.gate if case.first else "keep"}
    return client.runs.create(case.thread_id, case.graph, input={"params": params})["run_id"]


def answer(client: Any, case: Stopped) -> str:
    """Answer the open question as a chat does, by a run that waits for the gate."""
    later = {"after_seconds": 600} if case.way.startswith("not begun") else {}
    changed = {"type": "edit", "params": {"n": 1, "note": case.gate}}
    return client.runs.create(case.thread_id, case.graph, command={"resume": changed}, **later)[
        "run_id"
    ]


def stop(client: Any, case: Stopped, run: str) -> None:
    """Stop the run."""
    how = case.way.rpartition(" ")[2]
    if case.way.startswith("double text"):
        given = {"params": {"n": 0}}
        client.runs.create(case.thread_id, case.graph, input=given, multitask_strategy=how)
    else:
        client.runs.cancel(case.thread_id, run, wait=False, action=how)


@pytest.fixture(scope="module")
def stopped(served):
    """Stop a run of each case, all at the same time."""
    with served.sync_client() as client:
        runs = {case.thread_id: begin(client, case) for case in CASES}
        for case in CASES:
            if not case.first:
                client.runs.join(case.thread_id, runs[case.thread_id])
                runs[case.thread_id] = answer(client, case)
        for case in CASES:
            if not case.way.startswith("not begun"):
                made = 1 if case.first else 2
                until(lambda case=case, made=made: len(served.calls(case.thread_id)) == made)
        for case in CASES:
            stop(client, case, runs[case.thread_id])
        time.sleep(0.6)  # a run is stopped when the server next looks, before the call ends
        for case in CASES:
            (served.folder / case.gate).touch()
        for case in CASES:
            until(lambda case=case: is_at_rest(client, case))


def is_at_rest(client: Any, case: Stopped) -> bool:
    """Tell whether no run of a thread is under way; a status may stay `busy` for ever."""
    runs = client.runs.list(case.thread_id)
    return all(run["status"] not in ("pending", "running") for run in runs)


@pytest.fixture
def command(served, capsys):
    """Run the console command; returns its exit code, output and errors."""

    def command(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app([*arguments, "--url", served.url])
        told = capsys.readouterr()
        return ended.value.code, told.out, told.err

    return command


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.form}, {case.way}")
@pytest.mark.usefixtures("stopped")
def test_inbox_thread_and_terminal_agree(served, command, case, shown):
    """One truth: what waits is listed and shown, what was cut off goes on, and nothing is lost."""
    config = {"configurable": {"thread_id": case.thread_id}}
    # A server that does not show the state of a function's call shows the answered question.
    unseen = not shown and case.form == "function" and case.way == "answered interrupt"
    with served.sync_client() as client:
        graph = RemoteGraph(case.graph, sync_client=client)
        made = served.calls(case.thread_id)

        pending = [(each.review_id, each.attempt) for each in pending_reviews(graph, config)]
        assert len(pending) <= 1
        assert (pending[0][1] if pending else None) in ({1} if unseen else case.attempts)
        listed = list_reviews(client)
        mine = [each for each in listed if each.thread_id == case.thread_id]
        assert [(each.review_id, each.attempt) for each in mine] == pending

        _, out, _ = command("inbox", "--json")
        told = [json.loads(line) for line in out.splitlines()]
        assert [
            (each["review_id"], each["attempt"])
            for each in told
            if each["thread_id"] == case.thread_id
        ] == pending
        code, out, _ = command("show", case.thread_id)
        assert ("field: n" in out) == bool(pending)
        is_cut_off = case.left and not pending
        assert (f"graph-retry continue {case.thread_id}" in out) == is_cut_off
        assert code == (0 if case.left else 3)
        if not pending:
            code, _, err = command("answer", case.thread_id, "approve")
            assert code == (4 if "answered it at" in err else 3)
            assert ("graph-retry continue" in err) == is_cut_off
        assert served.calls(case.thread_id) == made

        if is_cut_off:
            code, out, _ = command("continue", case.thread_id)
            assert (code, out[:24]) == (0, "It waits for an answer: ")
            # What was in flight is made again, or what came of it is taken; nothing else is.
            assert served.calls(case.thread_id) in (made, [*made, made[-1]])
        if case.left:
            (review,) = pending_reviews(graph, config)
            if pending and case.way.startswith("answered"):
                # The call went back or cannot be seen, but the answer is there, and comes first.
                with pytest.raises(AnswerRefused, match="belongs to an earlier question"):
                    resume(graph, config, edit(n=2, note="keep"))
            state = resume(graph, config, edit(n=2, note="keep"))
            assert state["output"] == {"n": 2}
            assert command("continue", case.thread_id)[0] == 3
            with pytest.raises(Exception, match="not open"):
                resume(graph, config, {**approve(), "review_id": review.review_id})


def cancelled_thread(client: Any) -> str:
    """Let a thread ask, and cancel a run on it that has not begun; return its id."""
    case = Stopped("node", "not begun interrupt", {1})
    client.runs.join(case.thread_id, begin(client, case))
    stop(client, case, answer(client, case))
    assert client.threads.get(case.thread_id)["status"] == "idle"
    return case.thread_id


def test_finished_threads_are_asked_for_once(served, mode, monkeypatch):
    """Whoever lists again with the same client asks for idle threads that have changed since."""
    monkeypatch.setattr(server_reviews, "_PAGE", 10)
    monkeypatch.setattr(server_reviews, "_IDLE_PAGE", 10)
    monkeypatch.setattr(server_reviews, "_CLOCKS", timedelta())
    requests: list[Any] = []

    def listed(client: Any) -> tuple[set[str], int]:
        """Return what is listed, and how often idle threads were asked for."""
        requests.clear()
        threads = {each.thread_id for each in mode.call(inbox, "list_reviews", client)}
        return threads, sum(b'"idle"' in each.content for each in requests)

    with ExitStack() as closing:
        make = served.client if mode.is_async else served.sync_client
        client = closing.enter_context(mode.opened(make()))
        client.http.client.event_hooks["request"].append(mode.colour(requests.append))
        sync = closing.enter_context(served.sync_client())

        first = cancelled_thread(sync)
        for _ in range(20):
            sync.threads.create(graph_id="node")
        threads, pages = listed(client)
        assert first in threads
        assert pages >= 3

        threads, pages = listed(client)
        assert first in threads
        assert pages == 1

        second = cancelled_thread(sync)
        threads, pages = listed(client)
        assert {first, second} <= threads
        assert pages == 1

        sync.threads.delete(second)
        resume(
            RemoteGraph("patient_node", sync_client=sync),
            {"configurable": {"thread_id": first}},
            reject("enough"),
        )
        threads, _ = listed(client)
        assert not {first, second} & threads

        monkeypatch.setattr(server_reviews, "_ALL_IDLE_AGAIN_S", 0)
        assert listed(client)[1] >= 3
