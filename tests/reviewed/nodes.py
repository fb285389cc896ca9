"""Graphs whose nodes fail until their state is right, and the answers that mend it."""

import operator
from collections import Counter
from collections.abc import Callable
from typing import Annotated, Any

from typing_extensions import TypedDict

import graph_retry
from graph_retry import edit
from tests.loops import thread


class State(TypedDict, total=False):
    """The state of the graphs."""

    prompt: str
    out: str
    person: dict[str, Any]
    log: Annotated[list[Any], operator.add]


class Calls(Counter[str]):
    """How often each node ran."""

    def node(self, mode: Any, name: str, fails: Callable[[Any], bool], update: Any) -> Any:
        """Return a node that fails while `fails(state)`, and counts its runs."""

        def run(state: Any) -> Any:
            self[name] += 1
            if fails(state):
                message = f"{name} failed"
                raise ValueError(message)
            return update(state) if callable(update) else update

        run.__name__ = name
        return mode.colour(run)


def waiting(mode: Any, graph: Any, config: Any = None) -> list[Any]:
    """Return the open reviews of a thread."""
    return mode.call(graph_retry, "pending_reviews", graph, config or thread())


def answered(mode: Any, graph: Any, mend: Callable[[str, Any], dict[str, Any]]) -> Any:
    """Run a thread and edit each question until none is left; return the state and their number."""
    mode.invoke(graph, {"prompt": "x"}, thread())
    asked = 0
    while reviews := waiting(mode, graph):
        asked += len(reviews)
        answers = {
            one.value["review_id"]: edit(**mend(one.value["function_name"], one.value["params"]))
            for one in reviews
        }
        mode.call(graph_retry, "resume", graph, thread(), answers=answers)
    return mode.call(graph, "get_state", thread()).values, asked
