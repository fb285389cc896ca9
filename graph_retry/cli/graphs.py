"""Load the graph a thread belongs to, and put it on the opened database."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel

from graph_retry._threads.graphs import is_local
from graph_retry.cli.exits import ExitCode, Stop


def load_graph(name: str, saver: BaseCheckpointSaver[Any]) -> Pregel[Any, Any, Any, Any]:
    """Import `module:variable` or `path/to/file.py:variable`, with `saver` as its checkpointer.

    Raises:
        Stop: If there is no such variable, or no graph in it.
    """
    place, _, variable = name.rpartition(":")
    path = Path(place)
    is_file = path.suffix == ".py"
    module, folder = (path.stem, path.resolve().parent) if is_file else (place, Path.cwd())
    sys.path.insert(0, str(folder))  # as `python file.py` and `python -m module` do
    if not (place and variable):
        raise _refused(name, "it names no variable")
    try:
        found: Any = getattr(importlib.import_module(module), variable)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise _refused(name, f"there is no module {error.name!r} in {folder}") from None
    except AttributeError:
        raise _refused(name, f"the module has no {variable!r}") from None
    if isinstance(found, StateGraph):
        return cast("StateGraph[Any]", found).compile(checkpointer=saver)
    if is_local(found):
        return found.copy(update={"checkpointer": saver})
    what = f"{variable!r} is a {type(found).__name__}, not a graph, a StateGraph or an @entrypoint"
    raise _refused(name, what)


def _refused(name: str, why: str) -> Stop:
    what = f"`--graph` is {name!r}, but {why}: give module:variable or path/to/file.py:variable."
    return Stop(ExitCode.USAGE, what)
