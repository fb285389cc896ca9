"""Threads that version 0.1.0 left waiting are answered by this one, without a call too many.

`record_threads` recorded them; each test works on a copy.
"""

import shutil
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from graph_retry import edit, history
from tests.identity.old_graphs import SCENES, graph, reach_goal
from tests.loops import Model, answer, reviews, thread

FOLDER = Path(__file__).parent / "threads_v1"


def modes(name):
    """List the modes that can run a scene: a node-form graph of sync functions runs in both."""
    if SCENES[name].is_async:
        return ["async"]
    return ["sync", "async"] if name.startswith("node") else ["sync"]


def runs(names, *ways):
    """List what to run: a mode, a scene and a way to answer."""
    return [(mode, name, way) for name in names for mode in modes(name) for way in ways]


@pytest.fixture
def saver(mode, tmp_path, name):
    """Open a copy of a scene's thread."""
    copy = shutil.copy(FOLDER / f"{name}.sqlite", tmp_path)
    saver_class = AsyncSqliteSaver if mode.is_async else SqliteSaver
    with mode.opened(saver_class.from_conn_string(copy)) as opened:
        yield opened


def decide(mode, made, way, open_):
    """Answer one question or all of them, in one of the ways a client has."""
    values = [{"type": "edit", "params": {"n": each.params["n"] + 1}} for each in open_]
    if way == "resume":
        chosen = open_[-1]
        return answer(
            mode, made, thread(), answers={chosen.review_id: edit(n=chosen.params["n"] + 1)}
        )
    if way == "plain":
        (value,) = values
        return mode.invoke(made, Command(resume=value), thread())
    by_id = {each.interrupt_id: value for each, value in zip(open_, values, strict=True)}
    return mode.invoke(made, Command(resume=by_id), thread())


def finish(mode, made, way):
    """Answer until nothing is asked; return the last state."""
    state = None
    while open_ := reviews(mode, made, thread()):
        state = decide(mode, made, way, open_)
    return state


def check(scene, model, state):
    """Compare results and model calls with what the scene promises."""
    assert state["results"] == scene.results
    assert sorted((each["item"], each["n"]) for each in model.calls) == scene.further_calls


WAITING = [name for name, scene in SCENES.items() if scene.cut_off is None]
ALONE = [name for name in WAITING if len(SCENES[name].waiting) == 1]
CUT_OFF = [name for name in SCENES if name not in WAITING]


@pytest.mark.parametrize(
    ("mode", "name", "way"),
    runs(WAITING, "resume", "by id") + runs(ALONE, "plain"),
    indirect=["mode"],
)
def test_a_waiting_thread_is_answered(mode, saver, name, way):
    """Protects people's open reviews across an upgrade: each edit costs one call, none repeats."""
    scene, model = SCENES[name], Model(reach_goal)
    made = graph(scene, model, saver)
    shown = sorted(each.params["item"] for each in reviews(mode, made, thread()))
    assert shown == [scene.start(call)["item"] for call in scene.waiting]

    state = finish(mode, made, way)

    check(scene, model, state)


@pytest.mark.parametrize(
    ("mode", "name", "way"), runs(CUT_OFF, "resume", "by id"), indirect=["mode"]
)
@pytest.mark.parametrize("go_on", ["resume", "invoke"])
def test_a_thread_that_was_cut_off_is_continued(mode, saver, name, way, go_on):
    """Protects answers written by the old version: they are applied, and only once."""
    scene, model = SCENES[name], Model(reach_goal)
    made = graph(scene, model, saver)

    if go_on == "resume":
        answer(mode, made, thread())
    else:
        mode.invoke(made, None, thread())
    assert len(model.calls) == 1
    state = finish(mode, made, way)

    check(scene, model, state)


@pytest.mark.parametrize(("mode", "name", "way"), runs(WAITING, "resume"), indirect=["mode"])
def test_the_ledgers_of_a_waiting_thread_are_read(mode, saver, name, way):
    """Protects the record of an old thread: every attempt of every call, before and after."""
    scene, model = SCENES[name], Model(reach_goal)
    made = graph(scene, model, saver)

    def attempts():
        ledgers = mode.call(history, "attempts_of", made, thread())
        return sorted(len(each.attempts) for each in ledgers if each.current)

    def numbers(of_waiting):
        calls = range(len(scene.goals))
        return sorted(
            of_waiting if call in scene.waiting else scene.goals[call] + 1 for call in calls
        )

    assert attempts() == numbers(1)
    finish(mode, made, way)
    assert attempts() == numbers(3)
