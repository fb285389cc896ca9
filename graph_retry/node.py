"""Retry nodes: the loop as a compiled subgraph, to be passed to LangGraph's `add_node`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack, cast

from langgraph.graph.state import CompiledStateGraph

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.functions.signatures import LLMCall, OnRetry, name_of
from graph_retry._core.loop.graph import node_graph
from graph_retry._core.loop.run.plan import make_plan
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.state.attempts import params_at, readable
from graph_retry.errors import AttemptsExhausted
from graph_retry.options import RetryOptions, settle
from graph_retry.records import Attempt


def create_retry_node(
    llm_call: LLMCall[Any, Any],
    params_type: Any,
    on_retry: OnRetry[Any] = None,
    *,
    output: Any = None,
    **options: Unpack[RetryOptions],
) -> CompiledStateGraph[Any, Any, Any, Any]:
    """Make a graph node that calls a model, checks its output and asks a person when it fails.

    The node reads the state key `params` (a `params_type`, or its JSON) and writes `output`
    (plain JSON), `status` (`succeeded`, `cancelled` or `exhausted`) and `attempts` (the ledger).
    A call that ends without an output writes None to `output`, to clear an earlier call's output.
    If the input has the `attempts` of a call that has not ended, the call continues after them.
    After a `status` of `exhausted` it starts anew. Studio and `get_graph(xray=1)` show
    its steps `call`, `repair`, `validate`, `revise` and `review`.

    Args:
        llm_call: A function of the params, sync or async, that returns text, a LangChain message,
            a `Completion` or any object, and raises on failure.
        params_type: The type of the params, which people can inspect and edit: a pydantic model,
            dataclass, TypedDict, `dict`, another type for a single value, or `None` for no params.
        on_retry: A hook `(error, attempt, params) -> new params | None`, or a list of them, tried
            in order; sync or async.
        output: The wanted output: a type, a JSON Schema, or a validator function. With `None`,
            every result that a checkpointer can save is a success.
        **options: See `RetryOptions`.

    Raises:
        TypeError: If an argument has the wrong type.
        ValueError: If an option has a value that is not allowed.

    Example:
        >>> from langgraph.graph import StateGraph
        >>> node = create_retry_node(lambda params: '{"n": 1}', dict, output=dict[str, int])
        >>> node.invoke({"params": {"prompt": "count"}})["output"]
        {'n': 1}
    """
    settings = settle(name_of(llm_call, "llm_call"), "node", options)
    codec: ParamsCodec[Any] = ParamsCodec(params_type)
    return node_graph(make_plan(llm_call, codec, on_retry, output, settings), params_type)


@checked
def review_later(ended: AttemptsExhausted | Sequence[Attempt]) -> dict[str, Any]:
    """Return the input that makes a retry node ask a person about an exhausted call.

    Use it after a job that cannot ask anybody (`review=False`). The job collects its failed calls.
    Later, run a retry node with the same type of params, with a new thread for each failed call.
    The node opens a review of the call's last attempt, without another model call. If the call has
    used all its attempts, its review offers no decision that calls again; to allow one, give the
    node a higher `max_attempts`.

    Args:
        ended: The error, or the `attempts` of a node that ended `exhausted`, perhaps read back from
            JSON.

    Raises:
        ValueError: If the last attempt did not fail, or the attempts do not hold its params.

    Example:
        >>> from graph_retry import AttemptsExhausted, retry_llm_call
        >>> try:
        ...     retry_llm_call(lambda prompt: "many", "How many?", output=int, review=False)
        ... except AttemptsExhausted as error:
        ...     given = review_later(error)
        >>> given["params"], given["attempts"][-1]["to_review"]
        ({'value': 'How many?'}, True)
    """
    attempts = readable(ended.attempts if isinstance(ended, AttemptsExhausted) else ended)
    params = params_at(attempts)
    if not attempts or attempts[-1]["failure"] is None or params is None:
        raise ValueError(
            "`ended` has no failed last attempt with its params: there is no question."
        )
    last = cast("Attempt", {**attempts[-1], "to_review": True})
    return {"params": params.view, "attempts": [*attempts[:-1], last]}
