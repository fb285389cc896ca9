"""The graphs whose threads an earlier version left waiting; `record_threads` recorded them.

Do not change a graph here: the saved threads in `threads_v1/` belong to these nodes, names and
params. Every call's model fails until `n` has reached `goal`, so a goal of 2 takes two edits.
"""

import operator
from dataclasses import dataclass
from typing import Annotated, Any

from langgraph.func import entrypoint
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from graph_retry import aretry_llm_call, create_retry_node, gather_calls, retry_llm_call
from tests.loops import Model

OPTIONS: Any = {"output": dict[str, int], "name": "count"}


class State(TypedDict, total=False):
    params: Any
    output: Any
    status: str
    attempts: list[Any]
    results: Annotated[list[Any], operator.add]


class Results(TypedDict):
    results: list[Any]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A thread that waits: what its graph is, and how far the recorder went.

    `goals` has one number for each call. `settled` are the calls that the recorder answered until
    they were finished. `cut_off` tells where the recording process was killed: in the model call
    with that `n` of the last call, or, as `written`, between saving an answer and applying it.
    """

    shape: str
    goals: tuple[int, ...]
    is_async: bool = False
    settled: tuple[int, ...] = ()
    equal: bool = False
    cut_off: int | str | None = None

    def start(self, index: int) -> dict[str, Any]:
        """Return the first params of a call."""
        return {"item": 0 if self.equal else index, "n": 0, "goal": self.goals[index]}

    @property
    def waiting(self) -> list[int]:
        """List the calls that are not finished."""
        calls = range(len(self.goals))
        return [call for call in calls if self.goals[call] and call not in self.settled]

    @property
    def results(self) -> list[dict[str, int]]:
        """Return what the thread must end with."""
        starts = [self.start(call) for call in range(len(self.goals))]
        return [{"item": each["item"], "n": each["goal"]} for each in starts]

    @property
    def further_calls(self) -> list[tuple[int, int]]:
        """List the model calls, as item and `n`, that are still to be made, in order of both."""
        first = 0 if self.cut_off == 0 else 1
        made = [
            (self.start(call)["item"], n)
            for call in self.waiting
            for n in range(first, self.goals[call] + 1)
        ]
        return sorted(made)


SCENES = {
    "node": Scene(shape="node", goals=(2,)),
    "node_answer_written": Scene(shape="node", goals=(2,), cut_off="written"),
    "node_first_call_in_flight": Scene(shape="node", goals=(2,), cut_off=0),
    "node_call_in_flight": Scene(shape="node", goals=(2,), cut_off=1),
    "node_nested": Scene(shape="nested node", goals=(2,)),
    "node_send": Scene(shape="send node", goals=(2, 2, 2), settled=(0,)),
    "sync_one": Scene(shape="sequence", goals=(2,)),
    "sync_second_of_two": Scene(shape="sequence", goals=(0, 2)),
    "sync_third_of_three": Scene(shape="sequence", goals=(0, 2, 2), settled=(1,)),
    "sync_equal": Scene(shape="sequence", goals=(2, 2), settled=(0,), equal=True),
    "sync_call_in_flight": Scene(shape="sequence", goals=(0, 2), cut_off=1),
    "sync_nested": Scene(shape="nested sequence", goals=(0, 2)),
    "sync_entrypoint": Scene(shape="entrypoint", goals=(0, 2)),
    "sync_send": Scene(shape="send", goals=(2, 2, 2), settled=(0,)),
    "async_one": Scene(shape="sequence", goals=(2,), is_async=True),
    "async_second_of_two": Scene(shape="sequence", goals=(0, 2), is_async=True),
    "async_third_of_three": Scene(shape="sequence", goals=(0, 2, 2), settled=(1,), is_async=True),
    "async_equal": Scene(
        shape="sequence", goals=(2, 2), settled=(0,), equal=True, is_async=True
    ),
    "async_call_in_flight": Scene(shape="sequence", goals=(0, 2), cut_off=1, is_async=True),
    "async_gathered": Scene(shape="gather", goals=(0, 2, 2), is_async=True),
    "async_entrypoint": Scene(shape="entrypoint", goals=(0, 2), is_async=True),
    "async_send": Scene(shape="send", goals=(2, 2, 2), settled=(0,), is_async=True),
}  # fmt: skip


def reach_goal(params: dict[str, Any]) -> dict[str, int]:
    """Fail until `n` has reached the goal."""
    if params["n"] < params["goal"]:
        raise ValueError(f"{params['n']} is too small")
    return {"item": params["item"], "n": params["n"]}


def graph(scene: Scene, model: Model, saver: Any) -> Any:
    """Compile a scene's graph; the state's `results` are the results of its calls in order."""
    starts = [scene.start(call) for call in range(len(scene.goals))]

    def in_sequence(state: Any) -> Results:
        return {"results": [retry_llm_call(model, start, **OPTIONS) for start in starts]}

    async def in_async_sequence(state: Any) -> Results:
        return {"results": [await aretry_llm_call(model, start, **OPTIONS) for start in starts]}

    async def at_once(state: Any) -> Results:
        calls = [aretry_llm_call(model, start, **OPTIONS) for start in starts]
        return {"results": await gather_calls(*calls)}

    def of_branch(state: State) -> Results:
        return {"results": [retry_llm_call(model, state["params"], **OPTIONS)]}

    async def of_async_branch(state: State) -> Results:
        return {"results": [await aretry_llm_call(model, state["params"], **OPTIONS)]}

    def node_form() -> StateGraph[Any]:
        steps: StateGraph[Any] = StateGraph(State, output_schema=Results)
        steps.add_node("ask", create_retry_node(model, dict, **OPTIONS))
        steps.add_node("hand", lambda state: {"results": [state["output"]]})
        steps.add_edge(START, "ask").add_edge("ask", "hand")
        return steps

    def spread(state: State) -> list[Send]:
        return [Send("ask", {"params": start}) for start in starts]

    sequence = in_async_sequence if scene.is_async else in_sequence
    if scene.shape == "entrypoint":
        return entrypoint(checkpointer=saver)(sequence)
    if scene.shape == "node":
        return node_form().compile(checkpointer=saver)
    builder: Any = StateGraph(State)
    if scene.shape.startswith("send"):
        branch = of_async_branch if scene.is_async else of_branch
        builder.add_node("ask", node_form().compile() if scene.shape == "send node" else branch)
        builder.add_conditional_edges(START, spread, ["ask"])
        return builder.compile(checkpointer=saver)
    if scene.shape.startswith("nested"):
        inner: Any = StateGraph(State).add_node("ask", sequence).add_edge(START, "ask")
        inner = node_form() if scene.shape == "nested node" else inner
        builder.add_node("around", inner.compile())
        return builder.add_edge(START, "around").compile(checkpointer=saver)
    builder.add_node("ask", at_once if scene.shape == "gather" else sequence)
    return builder.add_edge(START, "ask").compile(checkpointer=saver)
