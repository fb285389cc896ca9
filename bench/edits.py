"""Model calls that N edits of a failing call cost, in this library and in loops written by hand.

Each row fails until a person has edited the params N times. The loops by hand are the one of the
design that this library grew out of (one function that calls, catches, interrupts and calls again),
the one LangGraph's pages on the functional API show (a task in a loop around `interrupt`), an
`error_handler` that interrupts and goes to the failed node again, and the most careful one: a node
for the call, a node for the question, and an edge.
Run: `python -m bench.edits`
"""

from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import NodeError
from langgraph.func import entrypoint, task
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt
from typing_extensions import TypedDict

from bench.markdown import table
from graph_retry import create_retry_node, edit, resume, retry_llm_call

EDITS = (1, 2, 3, 5, 10)

Model = Callable[[dict[str, Any]], str]


class State(TypedDict, total=False):
    """State of all of them."""

    params: dict[str, Any]
    output: Any
    error: str | None


def around(node: Any) -> Any:
    """Put a node into a graph with a checkpointer."""
    builder = StateGraph(State).add_node("ask", node).set_entry_point("ask")
    return builder.compile(checkpointer=InMemorySaver())


def source_design(model: Model) -> Any:
    """Call, catch, interrupt, and call again with what the person sends."""

    def retry(params: dict[str, Any]) -> str:
        attempt = 0
        while True:
            attempt += 1
            try:
                return model(params)
            except ValueError as error:
                shown = {"type": "llm_intervention", "error": str(error), "params": params}
                answer = interrupt({**shown, "attemptCount": attempt, "functionName": "model"})
                params = {**params, **answer}

    return around(lambda state: {"output": retry(state["params"])})


def documented(model: Model) -> Any:
    """Put the call into a task, and the task into a loop around `interrupt`."""
    ask = task(model)

    @entrypoint(checkpointer=InMemorySaver())
    def graph(state: State) -> State:
        params = state["params"]
        while True:
            try:
                return {"output": ask(params).result()}
            except ValueError as error:
                params = {**params, **interrupt(str(error))}

    return graph


def two_nodes(model: Model) -> Any:
    """Give the call a node, the question another one, and state the position between them."""

    def ask(state: State) -> State:
        try:
            return {"output": model(state["params"]), "error": None}
        except ValueError as error:
            return {"error": str(error)}

    def review(state: State) -> State:
        return {"params": {**state["params"], **interrupt(state["error"])}}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("review", review)
    builder.set_entry_point("ask")
    builder.add_conditional_edges("ask", lambda state: "review" if state["error"] else "__end__")
    builder.add_edge("review", "ask")
    return builder.compile(checkpointer=InMemorySaver())


def handled(model: Model) -> Any:
    """Let the node's error handler ask, and go to the node again."""

    def ask(state: State) -> State:
        return {"output": model(state["params"])}

    def handle(state: State, error: NodeError) -> Command[Any]:
        answer = interrupt(str(error.error))
        return Command(update={"params": {**state["params"], **answer}}, goto=error.node)

    builder = StateGraph(State)
    builder.add_node("ask", ask, error_handler=handle)
    builder.set_entry_point("ask")
    return builder.compile(checkpointer=InMemorySaver())


def as_function(model: Model) -> Any:
    """Call `retry_llm_call` in a node."""
    return around(lambda state: {"output": retry_llm_call(model, state["params"], max_attempts=99)})


def as_node(model: Model) -> Any:
    """Use the node of `create_retry_node`."""
    return around(create_retry_node(model, dict, max_attempts=99))


LOOPS: dict[str, Callable[[Model], Any]] = {
    "the source design's loop": source_design,
    "LangGraph: a task in a loop around `interrupt`": documented,
    "LangGraph: an `error_handler` with `interrupt` and `goto`": handled,
    "by hand: two nodes and an edge": two_nodes,
    "graph-retry, function": as_function,
    "graph-retry, node": as_node,
}


def after_edits(make: Callable[[Model], Any], model: Model, edits: int) -> Any:
    """Run a loop, answer it with edits, and return its output."""
    graph = make(model)
    config: Any = {"configurable": {"thread_id": "1"}}
    state = graph.invoke({"params": {"n": 0}}, config)
    for n in range(1, edits + 1):
        if make in (as_function, as_node):
            state = resume(graph, config, edit(n=n))
        else:
            state = graph.invoke(Command(resume={"n": n}), config)
    return state["output"]


def calls_for(make: Callable[[Model], Any], edits: int) -> int:
    """Count the calls of a model that fails until the last edit."""
    calls: list[int] = []

    def model(params: dict[str, Any]) -> str:
        calls.append(params["n"])
        if params["n"] < edits:
            raise ValueError("not yet")
        return f"done with {params['n']}"

    assert after_edits(make, model, edits) == f"done with {edits}"
    return len(calls)


def edit_counts(make: Callable[[Model], Any]) -> bool:
    """Tell whether an edit is used where the model, asked the same again, would now succeed."""
    calls: list[int] = []

    def model(params: dict[str, Any]) -> str:
        calls.append(params["n"])
        if len(calls) == 1:
            raise ValueError("no capacity")
        return f"done with {params['n']}"

    return bool(after_edits(make, model, 1) == "done with 1")


def main() -> None:
    """Print the table."""
    headings = ["edits", *map(str, EDITS), "an edit is used if the first call would now succeed"]
    rows = [
        [name, *(calls_for(make, edits) for edits in EDITS), "yes" if edit_counts(make) else "no"]
        for name, make in LOOPS.items()
    ]
    print(table(headings, rows))


if __name__ == "__main__":
    main()
