"""Reminders: a review that waits is sent again, each stage once, from the sweep that expires."""

import subprocess
import sys
import threading
from datetime import timedelta

import psycopg
import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import edit
from graph_retry._core.langgraph.storage import stores
from graph_retry._core.threads import expiry
from graph_retry.threads import attempts_of, defer, list_reviews
from tests.loops import Model, answer, one_call, refused, reviews, thread
from tests.threads.test_expiry import clock  # noqa: F401

ALL = ("approve", "edit", "reject", "defer")


class Told(list):
    """Keeps what was sent; `fails` is what sending raises."""

    fails = None

    def by(self, name):
        """Return a function for a stage."""

        def tell(review):
            self.append((name, review.thread_id, review.attempt))
            if self.fails:
                raise self.fails

        return tell

    @property
    def stages(self):
        """Remind after an hour and two; tell somebody else after four."""
        hour = 3_600
        return {
            "notify": self.by("remind"),
            "remind_after": (hour, 2 * hour),
            "escalate_to": {4 * hour: self.by("escalate")},
        }


def sweep(mode, source, told):
    """Sweep in the mode's way."""
    return mode.call(expiry, "expire_reviews", source, **told.stages)


def waiting(mode, saver, form="function", **options):
    """Return a graph whose one thread waits."""
    graph = one_call(form, mode, Model(goal=9), saver, allowed_decisions=ALL, **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    return graph


def test_each_stage_is_sent_once_when_its_time_comes(form, mode, checkpointer, clock):  # noqa: F811
    """However often somebody sweeps: nothing before its time, and nothing twice."""
    graph, told = waiting(mode, checkpointer, form), Told()
    counts = []
    for _ in range(6):
        sweep(mode, graph, told)
        sweep(mode, graph, told)
        counts.append(len(told))
        clock.now += timedelta(hours=1)
    assert counts == [0, 1, 2, 2, 3, 3]
    assert told == [("remind", "1", 1)] * 2 + [("escalate", "1", 1)]
    assert len(reviews(mode, graph, thread())) == 1


def test_a_question_that_is_asked_again_is_the_same_one(mode, checkpointer, clock):  # noqa: F811
    """A refused answer begins no new count; the question about the next attempt does."""
    graph, told = waiting(mode, checkpointer), Told()
    clock.now += timedelta(hours=1)
    sweep(mode, graph, told)
    refused(mode, graph, thread(), "perhaps")
    sweep(mode, graph, told)
    assert told == [("remind", "1", 1)]
    answer(mode, graph, thread(), edit(n=1))
    sweep(mode, graph, told)
    clock.now += timedelta(hours=1)
    sweep(mode, graph, told)
    assert told == [("remind", "1", 1), ("remind", "1", 2)]


def test_a_question_that_was_put_off_is_left_alone(mode, clock):  # noqa: F811
    """Nobody is reminded of what they put off; from then on the stages that are due are sent."""
    graph, told = waiting(mode, InMemorySaver()), Told()
    answer(mode, graph, thread(), defer((clock.now + timedelta(hours=3)).isoformat()))
    clock.now += timedelta(hours=2)
    sweep(mode, graph, told)
    assert told == []
    clock.now += timedelta(hours=1)
    sweep(mode, graph, told)
    assert told == [("remind", "1", 1)] * 2


def test_a_message_that_fails_is_sent_by_the_next_sweep(mode, checkpointer, clock):  # noqa: F811
    """The other threads are told all the same, and the sweep says what failed."""
    graph, told = waiting(mode, checkpointer), Told()
    mode.invoke(graph, {"params": {"n": 0}}, thread("2"))
    clock.now += timedelta(hours=1)
    told.fails = OSError("no route")
    with pytest.raises(ExceptionGroup, match="2 threads could not be ended, or its people"):
        sweep(mode, graph, told)
    told.fails = None
    told.clear()
    sweep(mode, graph, told)
    assert sorted(told) == [("remind", "1", 1), ("remind", "2", 1)]


def test_two_sweeps_at_once_send_one_message(checkpointer_sync, clock):  # noqa: F811
    """While one sends, the other leaves the thread alone."""
    told, sending, go_on = [], threading.Event(), threading.Event()

    def slowly(review):
        told.append(review.review_id)
        sending.set()
        assert go_on.wait(20)

    graph = one_call("function", None, Model(goal=9), checkpointer_sync)
    graph.invoke({"params": {"n": 0}}, thread())
    clock.now += timedelta(hours=1)
    stages = {"notify": slowly, "remind_after": 3_600}
    first = threading.Thread(target=expiry.expire_reviews, args=[graph], kwargs=stages)
    first.start()
    assert sending.wait(20)
    expiry.expire_reviews(graph, **stages)
    go_on.set()
    first.join()
    expiry.expire_reviews(graph, **stages)
    assert len(told) == 1


@pytest.fixture(params=["memory", "sqlite"])
def checkpointer_sync(request, tmp_path):
    """Give a saver that threads may share."""
    if request.param == "memory":
        yield InMemorySaver()
        return
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.sqlite")) as saver:
        yield saver


DIES = """
import os, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from graph_retry.threads import expire_reviews
from tests.loops import Model, one_call

def tell(name):
    def told(review):
        with open(sys.argv[2], "a") as log:
            log.write(name + "\\n")
        if name == sys.argv[3]:
            os._exit(7)
    return told

with SqliteSaver.from_conn_string(sys.argv[1]) as saver:
    graph = one_call("function", None, Model(goal=9), saver)
    stages = {(number + 1) / 1_000: tell(f"stage {number}") for number in range(3)}
    expire_reviews(graph, escalate_to=stages)
"""


@pytest.mark.slow
def test_a_sweep_that_dies_repeats_the_message_in_flight_at_most(tmp_path):
    """What was sent before it is not sent again, and what comes after it is not lost."""
    database, log = tmp_path / "threads.sqlite", tmp_path / "log"
    with SqliteSaver.from_conn_string(str(database)) as saver:
        graph = one_call("function", None, Model(goal=9), saver)
        graph.invoke({"params": {"n": 0}}, thread())
    command = [sys.executable, "-c", DIES, str(database), str(log)]
    assert subprocess.run([*command, "stage 1"], check=False).returncode == 7
    assert subprocess.run([*command, "none"], check=False).returncode == 0
    assert subprocess.run([*command, "none"], check=False).returncode == 0
    assert log.read_text().split("\n") == ["stage 0", "stage 1", "stage 1", "stage 2", ""]


def test_what_was_sent_is_kept_in_the_thread_and_nowhere_else(mode, checkpointer, clock):  # noqa: F811
    """State, ledger and inbox are as before, and it is deleted with the thread."""
    graph, told = waiting(mode, checkpointer), Told()
    before = mode.call(graph, "get_state", thread())
    clock.now += timedelta(hours=1)
    sweep(mode, graph, told)
    after = mode.call(graph, "get_state", thread())
    assert (after.config, after.values) == (before.config, before.values)
    assert len(reviews(mode, graph, thread())) == 1
    if not mode.is_async:
        assert [len(ledger.attempts) for ledger in attempts_of(graph, thread())] == [1]
        assert len(list_reviews(graph)) == 1
    answer(mode, graph, thread(), edit(n=9))
    mode.call(checkpointer, "delete_thread", "1")
    left = mode.call(checkpointer, "list", None)
    assert not [saved for saved in left if saved.config["configurable"]["thread_id"] == "1"]


@pytest.mark.parametrize(
    ("options", "kind", "told"),
    [
        ({"remind_after": 5}, ValueError, "work only together"),
        ({"notify": print}, ValueError, "work only together"),
        ({"notify": print, "remind_after": "soon"}, TypeError, "seconds above 0"),
        ({"notify": print, "remind_after": [0]}, TypeError, "seconds above 0"),
        ({"escalate_to": {5: Told}}, ValueError, "not the class `Told`"),
        ({"escalate_to": {5: lambda: None}}, ValueError, "takes only a `PendingReview`"),
    ],
)
def test_a_wrong_stage_is_told_before_anything_is_sent(options, kind, told):
    """A sweep that could tell nobody says so."""
    graph = one_call("function", None, Model(), InMemorySaver())
    with pytest.raises(kind, match=told):
        expiry.expire_reviews(graph, **options)


def test_a_server_cannot_keep_what_was_sent():
    """A client has no checkpointer: the sweep refuses before it sends what it could not note."""

    class Client:
        threads = runs = None

    with pytest.raises(TypeError, match="reminders need a graph with its checkpointer"):
        expiry.expire_reviews(Client(), notify=print, remind_after=5)


def test_a_sweep_that_meets_a_locked_thread_leaves_no_connection_open(
    clock,  # noqa: F811
    postgres_dsn,
    monkeypatch,
):
    """The connection that asked for the lock in vain is closed."""
    opened = []

    class Counted(stores.PostgresStore):
        def connect(self):
            opened.append(super().connect())
            return opened[-1]

    monkeypatch.setattr(stores, "_STORES", [Counted])
    with PostgresSaver.from_conn_string(postgres_dsn) as saver:
        saver.setup()
        graph = one_call("function", None, Model(goal=9), saver)
        graph.invoke({"params": {"n": 0}}, thread())
        clock.now += timedelta(hours=1)
        number = "hashtextextended('graph_retry:1', 0)"
        with psycopg.connect(postgres_dsn) as other:
            other.execute(f"SELECT pg_advisory_lock({number})")
            expiry.expire_reviews(graph, notify=print, remind_after=3_600)
    # The run that asked had one as well, until it ended.
    assert [connection.closed for connection in opened] == [True, True]
