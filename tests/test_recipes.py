"""Recipes of the docs that are run twice, or killed and run again."""

import re
from pathlib import Path

import pytest

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
