"""Nothing is pickled at run time, whatever the form and the storage."""

from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from graph_retry import edit
from tests.loops import Model, answer, one_call, refused, thread


@pytest.mark.parametrize("storage", ["memory", "sqlite"])
def test_a_call_pauses_and_ends_without_pickle(
    storage: str, form: str, mode: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With pickle forbidden a thread asks, is answered badly and well, and finishes."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    kind: Any = AsyncSqliteSaver if mode.is_async else SqliteSaver
    path = str(tmp_path / "db")
    used: list[str] = []
    for name in ("dumps", "loads", "dump", "load", "Pickler", "Unpickler"):
        monkeypatch.setattr(f"pickle.{name}", lambda *_, name=name, **__: used.append(name))

    def play(saver: Any) -> Any:
        graph = one_call(form, mode, Model(), saver)
        mode.invoke(graph, {"params": {"n": 0, "when": {1, 2}, "raw": b"\xff"}}, thread())
        refused(mode, graph, thread(), "perhaps")
        return answer(mode, graph, thread(), edit(n=1))

    if storage == "memory":
        done = play(InMemorySaver())
    else:
        with mode.opened(kind.from_conn_string(path)) as saver:
            done = play(saver)
    assert done["output"] == {"n": 1}
    assert used == []
