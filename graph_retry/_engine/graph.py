"""The loop as a LangGraph subgraph."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from langgraph.graph import END, START, StateGraph

from graph_retry._engine.call import call_step
from graph_retry._engine.check import repair_step, validate_step
from graph_retry._engine.ending import give_up_step
from graph_retry._engine.keeping import keeping
from graph_retry._engine.plan import Plan
from graph_retry._engine.recall import recall_step
from graph_retry._engine.review import review_step
from graph_retry._engine.revise import revise_step
from graph_retry._engine.running import RetryGraph, current_run
from graph_retry._engine.state import ANSWER, loop_of, schemas
from graph_retry._engine.transitions import FOLLOWERS
from graph_retry._flow import Flow, Step
from graph_retry._output.schema_of_params import SchemaOfParams
from graph_retry.errors import ReplayMismatch
from graph_retry.ledger import params_at, readable
from graph_retry.options import DEFAULT_KEYS

_STEPS = 10
"""Graph steps one attempt may take at most, with room for a few questions asked again."""

_MAKERS: dict[str, Callable[[Plan[Any]], Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]]] = {
    "recall": recall_step,
    "call": call_step,
    "repair": repair_step,
    "validate": validate_step,
    "revise": revise_step,
    "review": review_step,
    "give_up": give_up_step,
}


def node_graph(plan: Plan[Any], params_type: Any) -> RetryGraph:
    """Compile the loop of a retry node; the checkpointer is inherited from the graph around it."""
    settings = plan.settings
    keys = tuple(sorted(settings.keys.items()))
    raises, learns = settings.on_cancel == "raise", settings.lessons is not None
    builder = _builder(keys, params_type, raises=raises, learns=learns)
    graph = RetryGraph(**vars(builder.compile(name=settings.name)), plan=plan)
    return graph.with_config(recursion_limit=steps_allowed(plan))


@cache
def function_graph(*, learns: bool) -> RetryGraph:
    """Compile the loop that all calls of functions share; each run is given its plan."""
    builder = _builder(DEFAULT_KEYS, None, raises=True, learns=learns)
    return RetryGraph(**vars(builder.compile(name="retry_llm_call")))


def steps_allowed(plan: Plan[Any]) -> int:
    """Return the recursion limit that `max_attempts` needs, whatever LangGraph's default is."""
    return _STEPS * (plan.settings.max_attempts + 1)


def _builder(
    keys: tuple[tuple[str, str], ...], params_type: Any, *, raises: bool, learns: bool
) -> StateGraph[Any, Any, Any, Any]:
    names = dict(keys)
    state, inputs, outputs = schemas(names, params_type, lessons=learns)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, input_schema=inputs, output_schema=outputs
    )
    ends = {"end": END}
    if raises:
        builder.add_node("give_up", Step(_step("give_up", names)))
        ends["give_up"] = "give_up"
    for name, followers in FOLLOWERS.items():
        builder.add_node(name, Step(_step(name, names)))
        targets: dict[Hashable, str] = {
            follower: follower for follower in followers if follower not in ("end", "give_up")
        }
        targets |= {end: target for end, target in ends.items() if end in followers}
        builder.add_conditional_edges(name, _router(name, names, raises=raises), targets)
    first = "call"
    if learns:
        builder.add_node("recall", Step(_step("recall", names)))
        builder.add_edge(first := "recall", "call")
    builder.add_edge(START, first)
    return builder


def _step(
    name: str, keys: Mapping[str, str]
) -> Callable[[Mapping[str, Any]], Flow[dict[str, Any]]]:
    """Return a step that finds in state its own call, and the ledger as this version knows it."""

    def flow(state: Mapping[str, Any]) -> Flow[dict[str, Any]]:
        run = current_run()
        run.has_saved()
        check_identity(run.plan.settings.name, loop_of(state)["identity"], run.identity)
        plan = _fitted(run.plan, state)
        attempts = readable(state.get(keys["attempts"]) or [])
        step = keeping(_MAKERS[name](plan), plan)
        return step({**state, keys["attempts"]: attempts})

    return flow


def check_identity(name: str, saved: str | None, identity: str | None) -> None:
    """Refuse to run a call on the state of another one, wherever that came from.

    Raises:
        ReplayMismatch: If the state is known to be of a call with another identity.
    """
    if saved is not None and identity is not None and saved != identity:
        raise ReplayMismatch(
            f"`{name}` was given the saved state of another call: this version of LangGraph names "
            "the graphs of a task in a way that graph-retry does not know. Nothing was called."
        )


def _fitted(plan: Plan[Any], state: Mapping[str, Any]) -> Plan[Any]:
    """Return the plan; where params hold the schema, with that of the params at hand."""
    output, key = plan.validator, plan.settings.keys["params"]
    if not isinstance(output, SchemaOfParams):
        return plan
    params = plan.codec.load(state.get(key), loop_of(state)["types"]).view
    return replace(plan, validator=output.fitted(params))


def _router(
    name: str, keys: Mapping[str, str], *, raises: bool
) -> Callable[[Mapping[str, Any]], str]:
    """Return the function that reads the next step from state."""

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
