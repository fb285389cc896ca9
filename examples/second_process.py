"""Ask in one process, answer from another: the thread lives in an SQLite file."""

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from typing_extensions import TypedDict

from graph_retry import Attempt, create_retry_node, edit, pending_reviews, resume


class State(TypedDict, total=False):
    """The graph's state."""

    params: dict[str, Any]
    output: list[int]
    status: str
    attempts: list[Attempt]


folder = Path(sys.argv[1] if sys.argv[1:] else tempfile.mkdtemp())
config: Any = {"configurable": {"thread_id": "order-7"}}


def ask(params: dict[str, Any]) -> str:
    """Stand in for a model that gets lost in long lists; every call leaves a trace on disk."""
    with (folder / "calls.txt").open("a") as calls:
        calls.write("called\n")
    return "[1, 2" if params["count"] > 3 else str(list(range(1, params["count"] + 1)))


node = create_retry_node(ask, dict, output=list[int], name="count")
builder = StateGraph(State).add_node("count", node).set_entry_point("count")

with SqliteSaver.from_conn_string(str(folder / "threads.sqlite")) as saver:
    graph = builder.compile(checkpointer=saver)
    if not sys.argv[1:]:
        graph.invoke({"params": {"count": 10}}, config)
        print("first process: waits for an answer", flush=True)
    else:
        (review,) = pending_reviews(graph, config)
        print("second process:", review.function_name, review.params, review.value["raw_output"])
        state = resume(graph, config, edit(count=3))
        print("second process:", state["status"], state["output"], flush=True)

if not sys.argv[1:]:
    subprocess.run([sys.executable, __file__, str(folder)], check=True)
    print("model calls:", len((folder / "calls.txt").read_text().splitlines()))

# expect: first process: waits for an answer
# expect: second process: count {'count': 10} [1, 2
# expect: second process: succeeded [1, 2, 3]
# expect: model calls: 2
