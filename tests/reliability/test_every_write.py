"""The process ends at every write and inside user code; `make crash` tries every moment of all."""

from zlib import crc32

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graph_retry import StaleDecision, edit, pending_reviews, resume
from graph_retry._core.threads import inbox
from tests.loops import Model, one_call, thread
from tests.reliability.every_write import WAYS, different
from tests.reliability.forking import counted
from tests.reliability.more_scenes import SCENES


def faults(scenes, store, mode, durability, step, dsn="", ways=WAYS):
    """Return what was wrong in scenes, each gone on with in some ways."""
    words = (",".join(scenes), store, mode, durability, ",".join(ways), str(step), dsn)
    found = counted("every_write", *words)
    assert len(found) == len(scenes) * len(ways)
    assert all(each["ended"] for each in found)
    return [f"{each['setting']}: {fault}" for each in found for fault in each["faults"]]


@pytest.mark.parametrize(
    ("scene", "mode_name"),
    [("node", "sync"), pytest.param("several", "async", marks=pytest.mark.slow)],
)
def test_a_process_that_ends_at_a_write_changes_nothing(scene, mode_name):
    """What goes on from there calls, asks, lists and returns what an undisturbed process does."""
    assert faults([scene], "sqlite", mode_name, "sync", 12) == []


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["joined function", "by halves node", "reviewed parallel"])
def test_a_process_that_is_killed_from_outside_changes_nothing(scene):
    """SIGKILL comes at four times of a life, wherever the process is then."""
    assert faults([scene], "sqlite", "sync", "sync", "k4", "", ["resume"]) == []


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["function", "several"])
def test_a_process_that_saves_at_its_exit_begins_anew_or_goes_on(scene):
    """With `durability="exit"`, nothing is saved before the first pause, and all after it."""
    assert faults([scene], "sqlite", "sync", "exit", 16, "", ["resume"]) == []


@pytest.mark.long
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("mode_name", ["sync", "async"])
@pytest.mark.parametrize(
    ("store", "durability"),
    [("sqlite", "sync"), ("sqlite", "async"), ("sqlite", "exit"), ("postgres", "sync")],
)
def test_no_scene_is_changed_by_the_end_of_a_process(request, scene, mode_name, store, durability):
    """One moment in thirty of each scene on each storage, each setting gone on with in one way."""
    dsn = request.getfixturevalue("postgres_database") if store == "postgres" else ""
    way = WAYS[crc32(f"{scene} {store} {mode_name} {durability}".encode()) % len(WAYS)]

    assert faults([scene], store, mode_name, durability, 30, dsn, [way]) == []


def call(name="a", key="k", mark="<a>"):
    """Make the event of a call."""
    return {"event": "call", "told": [name], "mark": mark, "attempt": 1, "key": key * 24}


SAVED = {"event": "saved", "data": "<a>"}
ASKED = {"event": "asked", "review_id": "b" * 24, "attempt": 1, "params": {}, "problem": None}
END = {"event": "end", "results": ["a"], "ledgers": [["ask", []]]}
CALM = [call(key="a"), SAVED, ASKED, END]


@pytest.mark.parametrize(
    ("dead", "after", "is_right"),
    [
        ([], CALM, True),
        ([call(key="a")], CALM, True),
        ([call(key="a")], [call(key="c"), SAVED, ASKED, END], False),
        ([call(key="a"), SAVED], CALM, False),
        ([call(key="a"), SAVED], [END], False),
        ([], [call(key="a"), ASKED, END, call("b")], False),
        (CALM, [{**END, "results": ["b"]}], False),
        ([], [*CALM, {"event": "wrong", "why": "it failed"}], False),
    ],
)
def test_the_judge_condemns(dead, after, is_right):
    """Only a call in flight may be made again, and only with its key."""
    assert (different(CALM, dead, after) == []) is is_right


STYLES = {
    "plain": lambda review: {},
    "attempt": lambda review: {"attempt": review.attempt},
    "review_id": lambda review: {"review_id": review.review_id},
    "title": lambda review: {"action": f"count failed (attempt {review.attempt}): ValueError"},
}
"""How a client marks an answer that it sends with `Command(resume=...)` itself."""


class Crash(BaseException):
    """What ends a process from inside, as Ctrl-C does."""


class Dying(InMemorySaver):
    """A saver whose process ends, once `doomed`, before a checkpoint of a call is saved.

    Under strict msgpack each graph has a clone of its saver: so it is the class that is doomed.
    """

    doomed = False

    def put(self, config, *args):
        if self.doomed and config["configurable"]["checkpoint_ns"]:
            raise Crash
        return super().put(config, *args)


def test_an_answer_that_is_written_but_not_applied_is_not_asked_for(form):
    """A second one would be dropped: so neither thread nor inbox asks, and the first is applied."""
    saver, model = Dying(), Model(goal=3)
    graph = one_call(form, None, model, saver)
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    Dying.doomed = True
    with pytest.raises(Crash):
        graph.invoke(Command(resume={review.interrupt_id: edit(n=1)}), thread())
    Dying.doomed = False

    assert pending_reviews(graph, thread()) == inbox.list_reviews(graph) == []
    with pytest.raises(StaleDecision):
        resume(graph, thread(), answers={review.review_id: edit(n=3)})
    resume(graph, thread())
    assert [params["n"] for params in model.calls] == [0, 1]


@pytest.mark.parametrize("style", STYLES)
def test_an_answer_is_delivered_once(form, style):
    """Marked or not, it decides no question that came after it, and pays for no call."""

    def answer_or_die(params):
        if params["n"] == 1 and len(model.calls) == 2:
            raise Crash
        raise ValueError(params["n"])

    model = Model(answer_or_die)
    graph = one_call(form, None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    answer = {"type": "edit", "params": {"n": 1}, **STYLES[style](review)}
    with pytest.raises(Crash):
        graph.invoke(Command(resume=answer), thread())

    graph.invoke(None, thread())

    (review,) = pending_reviews(graph, thread())
    assert [params["n"] for params in model.calls] == [0, 1, 1]
    assert (review.attempt, review.problem) == (2, None)

    graph.invoke(None, thread())

    (review,) = pending_reviews(graph, thread())
    assert ([params["n"] for params in model.calls], review.attempt) == ([0, 1, 1], 2)
