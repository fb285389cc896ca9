"""Build the retry loop as a LangGraph subgraph: its steps, and the edges of `FOLLOWERS`.

Each step returns a `Command` that names the next step. With conditional edges, LangGraph would copy
the whole state after each step to find the next step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, NotRequired, cast

from langgraph.graph import END, START, StateGraph
from langgraph.types import RetryPolicy
from typing_extensions import TypedDict

from graph_retry._core.loop.after_attempt import give_up_step
from graph_retry._core.loop.call import call_step, transport_policy
from graph_retry._core.loop.check import repair_step, validate_step
from graph_retry._core.loop.revise import recall_step, revise_step
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.running import RetryGraph
from graph_retry._core.loop.run.settings import DEFAULT_KEYS, Settings
from graph_retry._core.loop.run.step import Step, StepFunction, StepInput
from graph_retry._core.state.attempts import merge_attempts
from graph_retry._core.state.position import ANSWER, LOOP, REVIEWED, WRITES
from graph_retry._core.state.transitions import FOLLOWERS
from graph_retry.records import Attempt

Reducer = Callable[..., Any]

_STEPS_OF_ATTEMPT = 10
"""Graph steps that one attempt may take, including questions that are asked again."""


async def _review_step(given: StepInput) -> dict[str, Any]:
    # Imported late, because a program whose calls all succeed never needs these modules.
    from graph_retry._core.loop.review import review_step  # noqa: PLC0415

    return await review_step(given)


_STEPS: dict[str, StepFunction] = {
    "call": call_step,
    "repair": repair_step,
    "validate": validate_step,
    "revise": revise_step,
    "review": _review_step,
}


def node_graph(plan: Plan[Any], params_type: Any) -> RetryGraph:
    """Compile the loop of a retry node. The loop uses the checkpointer of the graph around it."""
    settings = plan.settings
    builder, shown = _builder(
        settings.keys,
        params_type,
        raises=settings.on_cancel == "raise",
        learns=_reducer(settings),
        transport=transport_policy(settings.transient),
    )
    graph = RetryGraph.compile(builder, settings.name, shown, plan)
    return graph.with_config(recursion_limit=steps_allowed(plan))


def function_graph(settings: Settings) -> RetryGraph:
    """Return the loop that all calls with the same lessons and `transient` share."""
    return _shared_graph(_reducer(settings), transport_policy(settings.transient))


@lru_cache(maxsize=64)
def _shared_graph(learns: Reducer | None, transport: RetryPolicy | None) -> RetryGraph:
    builder, shown = _builder(
        dict(DEFAULT_KEYS), None, raises=False, learns=learns, transport=transport
    )
    return RetryGraph.compile(builder, "retry_llm_call", shown)


def _reducer(settings: Settings) -> Reducer | None:
    return None if settings.lessons is None else settings.lessons.reducer


def steps_allowed(plan: Plan[Any]) -> int:
    """Return a recursion limit for LangGraph that is high enough for `max_attempts` attempts."""
    return _STEPS_OF_ATTEMPT * (plan.settings.max_attempts + 1)


def _builder(
    keys: Mapping[str, str],
    params_type: Any,
    *,
    raises: bool,
    learns: Reducer | None,
    transport: RetryPolicy | None,
) -> tuple[StateGraph[Any, Any, Any, Any], type[Any]]:
    state, inputs, outputs, shown = _schemas(keys, params_type, lessons=learns)
    builder: StateGraph[Any, Any, Any, Any] = StateGraph(
        state, input_schema=inputs, output_schema=outputs
    )
    ends = {"end": END}
    if raises:
        builder.add_node("give_up", Step(give_up_step, chooses_next=False))
        ends["give_up"] = "give_up"
    for name, followers in FOLLOWERS.items():
        # Only the request itself is tried again. No other step may repeat user code.
        policy = transport if name == "call" else None
        targets = tuple(ends.get(each, each) for each in followers if raises or each != "give_up")
        builder.add_node(name, Step(_STEPS[name]), retry_policy=policy, destinations=targets)
    first = "call"
    if learns is not None:
        builder.add_node("recall", Step(recall_step, chooses_next=False))
        builder.add_edge(first := "recall", "call")
    builder.add_edge(START, first)
    return builder, shown


def _schemas(
    keys: Mapping[str, str], params_type: Any, *, lessons: Reducer | None
) -> tuple[type[Any], type[Any], type[Any], type[Any]]:
    """Return the schemas of the state, the input, the output, and the input that users see.

    The input that users see lacks the loop's own key. The schemas are TypedDicts that are made at
    run time, because users may rename the keys.

    Args:
        keys: The names of the state keys.
        params_type: The type of the params; None for a function's call, whose input and output are
            the whole state.
        lessons: The reducer of the lessons; None if the call uses no lessons.
    """
    ledger = Annotated[list[Attempt], merge_attempts]
    inputs: dict[str, Any] = {
        keys["params"]: Any if params_type is None else params_type,
        keys["attempts"]: NotRequired[ledger],
    }
    outputs: dict[str, Any] = {
        keys["output"]: Any,
        keys["status"]: str,
        keys["attempts"]: ledger,
    }
    if lessons is not None:
        window = Annotated[list[Any], lessons]
        inputs[keys["lessons"]] = NotRequired[window]
        outputs[keys["lessons"]] = window
    private: dict[str, Any] = {LOOP: Any, ANSWER: Any, REVIEWED: Any, WRITES: Any}
    make = cast("Callable[..., type[Any]]", TypedDict)
    state = make("RetryState", {**inputs, **outputs, **private}, total=False)
    if params_type is None:
        return state, state, state, state
    shown = make("RetryInput", inputs)
    # `Made.first_state` adds the position to the input, beside the encoded params.
    encoded = make("RetryInput", {**inputs, LOOP: NotRequired[Any]})
    return state, encoded, make("RetryOutput", outputs), shown
