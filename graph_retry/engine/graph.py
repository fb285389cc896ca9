"""The loop as a LangGraph subgraph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from graph_retry.engine.call import call_step
from graph_retry.engine.check import repair_step, validate_step
from graph_retry.engine.ending import give_up_step
from graph_retry.engine.plan import Plan
from graph_retry.engine.recall import recall_step
from graph_retry.engine.review import review_step
from graph_retry.engine.revise import revise_step
from graph_retry.engine.saving import SavingGraph
from graph_retry.engine.state import ANSWER, loop_of, schemas
from graph_retry.engine.transitions import FOLLOWERS
from graph_retry.flow import Flow, Step
from graph_retry.ledger import params_at, readable
from graph_retry.validate.of_params import SchemaOfParams

_MAKERS = {
    "call": call_step,
    "repair": repair_step,
    "validate": validate_step,
    "revise": revise_step,
    "review": review_step,
}


def build_graph(plan: Plan[Any], params_type: Any) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Compile the five steps; the checkpointer is inherited from the graph around them."""
    settings = plan.settings
    state, inputs, outputs = schemas(
        settings.keys, params_type, lessons=settings.lessons is not None
    )
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, input_schema=inputs, output_schema=outputs
    )
    ends = {"end": END}
    if settings.on_cancel == "raise":
        builder.add_node("give_up", Step(_reading(plan, give_up_step(plan))))
        ends["give_up"] = "give_up"
    for name, followers in FOLLOWERS.items():
        builder.add_node(name, Step(_reading(plan, _fitted(plan, _MAKERS[name]))))
        targets: dict[Hashable, str] = {
            follower: follower for follower in followers if follower not in ("end", "give_up")
        }
        targets |= {end: target for end, target in ends.items() if end in followers}
        builder.add_conditional_edges(name, _router(plan, name), targets)
    first = "call"
    if settings.lessons is not None:
        builder.add_node("recall", Step(recall_step(plan, settings.lessons)))
        builder.add_edge(first := "recall", "call")
    builder.add_edge(START, first)
    graph = SavingGraph(**vars(builder.compile(name=settings.name)))
    return graph.with_config(recursion_limit=_STEPS * (settings.max_attempts + 1))


def _fitted(
    plan: Plan[Any], make: Callable[[Plan[Any]], Callable[..., Flow[Any]]]
) -> Callable[..., Flow[Any]]:
    """Make a step; where params hold the schema, anew for the params at hand."""
    output, key = plan.validator, plan.settings.keys["params"]
    if not isinstance(output, SchemaOfParams):
        return make(plan)

    def flow(state: Mapping[str, Any]) -> Flow[Any]:
        params = plan.codec.load(state.get(key), loop_of(state)["types"]).view
        return make(replace(plan, validator=output.fitted(params)))(state)

    return flow


_STEPS = 10
"""Graph steps one attempt may take at most, with room for a few questions asked again."""


_StepFlow = Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]


def _reading(plan: Plan[Any], step: _StepFlow) -> _StepFlow:
    """Return a step that finds the ledger in state as this version of the library knows it."""
    key = plan.settings.keys["attempts"]
    return lambda state: step({**state, key: readable(state.get(key) or [])})


def _router(plan: Plan[Any], name: str) -> Callable[[Mapping[str, Any]], str]:
    """Return the function that reads the next step from state."""
    keys, raises = plan.settings.keys, plan.settings.on_cancel == "raise"

    def route(state: Mapping[str, Any]) -> str:
        following = loop_of(state)["next"]
        if name == "review" and following == "review" and state.get(ANSWER) is None:
            asked = params_at(state[keys["attempts"]])
            # Params edited in state at a review, as Studio does it, mean: go on with these.
            if asked is not None and state[keys["params"]] != asked.view:
                return "call"
        if following == "end" and raises and state.get(keys["status"]) != "succeeded":
            return "give_up"
        return following

    return route
