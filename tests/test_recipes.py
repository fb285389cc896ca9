"""Recipes of the docs that are run twice, or killed and run again."""

import io
import re
from contextlib import redirect_stdout, suppress
from pathlib import Path

import pytest
from langgraph.checkpoint import memory
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry._core.loop.call as loop
from tests.test_docs import python_blocks

RECIPE = Path(__file__).parents[1] / "docs" / "howto" / "night-batch.md"
NIGHT, MORNING = re.findall("```python\n(.*?)```", RECIPE.read_text(), re.DOTALL)


class Killed(BaseException):
    """The death of a process in a model call."""


def counted(code, calls, dies_at=None):
    """Run a program of the recipe; count its model calls, of which one may end the process."""
    code = code.replace("def ask(params):", "def ask(params):\n    count(params)")

    def count(params):
        calls.append(params["prompt"][-7:])
        if len(calls) == dies_at:
            raise Killed

    names = {"count": count, "print": lambda *_: None}
    exec(code, names)
    return names


@pytest.mark.parametrize("dies_at", [None, 1, 2, 3, 4])
def test_a_night_that_runs_again_pays_for_no_item_twice(tmp_path, monkeypatch, dies_at):
    """Each item is paid once, but for the call in flight, and each open review stays open."""
    monkeypatch.chdir(tmp_path)
    calls = []
    if dies_at:
        with pytest.raises(Killed):
            counted(NIGHT, calls, dies_at)
    for _ in range(2):
        names = counted(NIGHT, calls)
    assert len(calls) == 4 + bool(dies_at)

    exec(MORNING, names)

    assert len(calls) == 6 + bool(dies_at)
    with names["SqliteSaver"].from_conn_string("night.sqlite") as saver:
        graph = names["nightly"](saver, None)
        totals = {
            name: graph.get_state({"configurable": {"thread_id": name}}).values["total"]
            for name in names["documents"]
        }
    assert totals == {"a": 12.5, "b": 99.0, "c": 12.5, "d": 99.0}


DOCS = RECIPE.parent
OTHERS = ("any-node", "deadlines", "fan-out", "migrate", "notify", "tools", "upgrades")


class Storage:
    """Makes the savers of a program: the same ones whenever it is run again."""

    def __init__(self):
        self.savers, self.made = [], 0

    def __call__(self):
        if self.made == len(self.savers):
            self.savers.append(InMemorySaver())
        self.made += 1
        return self.savers[self.made - 1]


def run(code, storage, monkeypatch, dies_at=None):
    """Run a program on its storage; return the number of its calls and what it printed."""
    calls, plain = [], loop.call

    async def counted_call(*given, **more):
        calls.append(given)
        if len(calls) == dies_at:
            raise Killed
        return await plain(*given, **more)

    storage.made = 0
    printed = io.StringIO()
    with monkeypatch.context() as patch, redirect_stdout(printed):
        patch.setattr(memory, "InMemorySaver", storage)
        patch.setattr(loop, "call", counted_call)
        exec(code, {"__name__": "__main__"})
    return len(calls), printed.getvalue()


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.slow
def test_a_recipe_that_is_killed_and_run_again_does_what_it_says(name, tmp_path, monkeypatch):
    """A program that gives its threads an input begins anew, whatever an earlier run left there."""
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks((DOCS / f"{name}.md").read_text())
    code = "\n".join(block.code for block in blocks if not (block.needs or block.file))
    storage = Storage()
    calls, told = run(code, storage, monkeypatch)
    assert calls
    for dies_at in {1, calls // 2 + 1, calls}:
        storage = Storage()
        with suppress(Killed):  # Of two tools at once, LangGraph tells of one.
            run(code, storage, monkeypatch, dies_at)
        assert run(code, storage, monkeypatch) == (calls, told), dies_at
    again = run(code, storage, monkeypatch)
    # The state of a thread keeps the results of the earlier runs, as a list does in `fan-out`.
    assert again == (calls, told) if name != "fan-out" else again[0] == calls
