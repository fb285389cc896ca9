"""Let any node ask a person when it fails: `reviewed` wraps one node, `review_nodes` a graph.

A node runs like the `llm_call` of `retry_llm_call`. Its params are keys of the node's input, and
its result is the node's update. The review is part of the node's own task, so the node's edges,
joins and `Send`s work as before.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import MethodType
from typing import Annotated, Any, TypeVar, Unpack, cast, get_type_hints

from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.config import get_config
from langgraph.func import task
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.types import TimeoutPolicy

from graph_retry._core.langgraph.builders import with_defaults
from graph_retry._core.langgraph.inside_node import subgraph_of
from graph_retry.calls import Call
from graph_retry.nodes._complete import Complete, asks, tell_compiled
from graph_retry.nodes._kind import Kind, NodeOptions, kind_of, with_params
from graph_retry.nodes._limits import limits_of
from graph_retry.nodes._types import check_known, checked_type, types_in
from graph_retry.options import OnRetry, RetryOptions
from graph_retry.plugins import WrongArgumentError, as_repr, checked

__all__ = ["NodeOptions", "review_nodes", "reviewed"]

BuilderT = TypeVar("BuilderT", bound=StateGraph[Any, Any, Any, Any])
NodeT = TypeVar("NodeT")
_IN_FUNCTIONS = "In an `@entrypoint`, write `@reviewed` above each `@task` that may fail."
_TASK: type[Any] = type(task(lambda: None))


class _OptionsOfNodes(RetryOptions, total=False):
    output: Annotated[None, 'it by node, as in `nodes={"read": {"output": {"person": Person}}}`']


@checked
def reviewed(
    node: NodeT,
    params: Sequence[str] | None = None,
    on_retry: OnRetry[Any] = None,
    *,
    schema: type[Any] | None = None,
    output: Mapping[str, Any] | None = None,
    **options: Unpack[RetryOptions],
) -> NodeT:
    """Wrap a node, or a `@task`, so that it asks a person when it fails.

    Args:
        node: Any node that `add_node` takes: a function of the state, a runnable, or a compiled
            subgraph. Or a `@task` of the functional API: its params are its arguments by name.
        params: The keys of the input that a person may change (default: all keys with JSON values).
        on_retry: Hooks, as in `retry_llm_call`.
        schema: The state schema. Its types apply to the params, and to outputs that a person gives
            (default: the annotation of the node's first parameter; for a `@task`, all annotations).
        output: The keys of the node's update to validate, with their types; not for a `@task`.
        **options: See `RetryOptions`. LangGraph's `retry_policy` has no effect: give `transient`.

    Raises:
        WrongArgumentError: If an argument has the wrong type or a value that is not allowed.

    Example:
        >>> from graph_retry.nodes import reviewed
        >>> StateGraph(dict).add_node("ask", reviewed(lambda state: state, ["prompt"])).nodes.keys()
        dict_keys(['ask'])
    """
    own: NodeOptions = {**options, "params": params, "on_retry": on_retry, "output": output}
    if isinstance(node, _TASK):
        return cast("NodeT", _reviewed_task(node, own))
    given = cast("Any", node)
    parts: Any = cast("Any", given).values() if isinstance(given, Mapping) else (given,)
    if not all(callable(each) or isinstance(each, Runnable) for each in parts):
        message = "give a node, such as a function of the state, and then its options; not"
        raise WrongArgumentError(f"`node`: {message} {as_repr(node)}.")
    name = str(options.get("name") or getattr(node, "__name__", getattr(node, "name", "node")))
    spec = StateGraph(cast("Any", schema or dict)).add_node(name, cast("Any", node)).nodes[name]
    known = () if schema is None and spec.input_schema is dict else (schema, spec.input_schema)
    kind = kind_of(name, types_in(*known), own)
    return cast("NodeT", _Reviewed(cast("Any", spec.runnable), kind, node))


@checked
def review_nodes(
    builder: BuilderT,
    params: Sequence[str] | None = None,
    on_retry: OnRetry[Any] = None,
    *,
    nodes: Collection[str] | Mapping[str, NodeOptions] | None = None,
    **options: Unpack[_OptionsOfNodes],
) -> BuilderT:
    """Let the nodes of an existing graph ask a person when they fail; call it before `compile`.

    Each node runs as a call, which handles all failures before LangGraph sees them. So the node's
    `timeout` and `retry_policy` become the options `timeout` and `transient` of its call. The call
    repeats the failures that the policy's `retry_on` names, and transient failures such as a lost
    connection. Call `set_node_defaults` first: later defaults do not apply to these nodes.

    Args:
        builder: The `StateGraph`, not compiled yet.
        params: The state keys that a person may change (default: all keys with JSON values).
        on_retry: Hooks, as in `retry_llm_call`.
        nodes: The names of the nodes, or a dict of `NodeOptions` by name. The options of a node
            take precedence over `**options`. The default is all nodes, except those that ask a
            person already, by themselves or in a subgraph.
        **options: See `RetryOptions`.

    Returns:
        The same builder.

    Raises:
        WrongArgumentError: If `nodes` or `params` has an unknown name, if a node in `nodes` asks a
            person already, if a second call of this function finds no node left, or if an option is
            wrong.

    Example:
        >>> from graph_retry.nodes import review_nodes
        >>> builder = StateGraph(dict).add_node("ask", lambda state: state).set_entry_point("ask")
        >>> graph = review_nodes(builder, ["prompt"], max_attempts=3).compile()
    """
    if isinstance(cast("object", builder), Pregel):
        raise WrongArgumentError(
            "`builder` is a compiled graph, whose nodes are fixed: pass the `StateGraph`, and "
            "compile the result of `review_nodes`."
        )
    specs = {
        name: one
        for name, one in builder.nodes.items()
        if not (one.is_error_handler or asks(one.runnable))
    }
    is_second = nodes is None and isinstance(builder.nodes, Complete)
    if not builder.nodes or (is_second and not specs):
        which = "only nodes that ask already" if builder.nodes else "no nodes yet"
        raise WrongArgumentError(
            f"`builder` has {which}: call `review_nodes` once, after `add_node`."
        )
    for name in nodes or ():
        if name not in specs:
            why = "asks a person already" if name in builder.nodes else "is not in the graph"
            raise WrongArgumentError(
                f"`nodes` names `{name}`, which {why}: choose from {', '.join(specs) or 'none'}."
            )
    tell_compiled(builder)
    common: NodeOptions = {**options, "params": params, "on_retry": on_retry, "output": None}
    states = {name: _state_of(builder, spec) for name, spec in specs.items()}
    check_known("params", params, {key for types in states.values() for key in types})
    for name in specs if nodes is None else nodes:
        spec = specs[name]
        given = cast("NodeOptions", nodes[name] if isinstance(nodes, Mapping) else {})
        limits = limits_of(name, with_defaults(spec, builder), {**common, **given})
        keys = None if params is None else [key for key in params if key in states[name]]
        own: NodeOptions = {**common, "params": keys, **limits, **given}
        # Without values of its own, a node would get the defaults of the graph.
        spec.retry_policy, spec.timeout = (), TimeoutPolicy()
        runnable = cast("Any", spec.runnable)
        spec.runnable = _Reviewed(runnable, kind_of(name, states[name], own))
    if nodes is None:
        builder.nodes = Complete(builder.nodes)
    return builder


class _Reviewed(RunnableLambda[Any, Any]):
    """A node that asks a person about its failures.

    LangGraph looks for a subgraph in the `deps` of a `RunnableLambda`, and reads a node's input
    schema and destinations from the annotations of `__call__`.
    """

    asks = True

    def __init__(self, node: Runnable[Any, Any], kind: Kind, function: Any = None) -> None:
        super().__init__(self.invoke, self.ainvoke, name=kind.name)
        self._node, self._kind = node, kind
        if inspect.isfunction(function):
            vars(self)["__call__"] = MethodType(function, self)
            vars(self)["__signature__"] = inspect.signature(function)

    @functools.cached_property
    def deps(self) -> list[Runnable[Any, Any]]:
        """The objects in which LangGraph looks for a subgraph, to show the state of an attempt."""
        return [subgraph_of(self._node, self._kind.name) or self._node]

    def __call__(self, state: Any) -> Any:
        """Run the node in sync code, as `invoke` does."""
        return self.invoke(state)

    def __hash__(self) -> int:  # type: ignore[override]
        """Refuse the node as the function of an `@entrypoint`, which looks it up by its hash."""
        raise TypeError(f"`{self.name}` is a node: add it with `add_node`. {_IN_FUNCTIONS}")

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Run the node until it succeeds, or until a person ends the call."""
        again = self._again(input)
        with _running(config):
            return self._kind.update_of(self._kind.call(again, input).invoke()[0])

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Do the same as `invoke`, in async code."""
        again = self._again(input)
        with _running(config):
            return self._kind.update_of((await self._kind.call(again, input).ainvoke())[0])

    def _again(self, input: Any) -> _Again:
        if getattr(self._node, "checkpointer", None):
            try:
                get_config()
            except RuntimeError:  # No node runs it.
                raise TypeError(
                    f"`{self.name}` is a whole graph, and its review needs another graph around "
                    f"it: add it with `add_node`. {_IN_FUNCTIONS}"
                ) from None
        return _Again(self._node, input, self._kind)


@contextmanager
def _running(config: RunnableConfig | None) -> Generator[None]:
    """Run the block with the given config as the current config of LangChain."""
    token = None if config is None else var_child_runnable_config.set(config)
    try:
        yield
    finally:
        if token is not None:
            var_child_runnable_config.reset(token)


class _Again(Runnable[Any, Any]):
    """A node as a function of its params. The rest of the node's input is always the same."""

    def __init__(self, node: Runnable[Any, Any], given: Any, kind: Kind) -> None:
        self._node, self._given, self.name, self._kind = node, given, kind.name, kind

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self._kind.texts_in(self._node.invoke(with_params(self._given, input), config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self._kind.texts_in(
            await self._node.ainvoke(with_params(self._given, input), config)
        )


def _state_of(builder: StateGraph[Any, Any, Any, Any], spec: Any) -> dict[str, Any]:
    """Return the types of a node's state keys, without the values that LangGraph manages."""
    types = types_in(builder.state_schema, spec.input_schema)
    return {key: kind for key, kind in types.items() if key not in builder.managed}


def _reviewed_task(found: Any, own: NodeOptions) -> Any:
    function: Callable[..., Any] = found.func
    signature = inspect.signature(function)
    hints = get_type_hints(function, include_extras=True)
    types = {key: hints.get(key, Any) for key in signature.parameters}
    name = own.get("name") or function.__name__
    if own.get("output") is not None:
        raise WrongArgumentError(
            "`output` is not allowed for a `@task`, whose result is no update of a state."
        )
    kind = kind_of(name, types, {**limits_of(name, found, own), **own})
    kind = replace(kind, returns=checked_type(hints.get("return", Any)))

    def call_of(args: Any, kwargs: Any) -> Call:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)

        def again(params: Any) -> Any:
            new = inspect.BoundArguments(signature, with_params(given, params))
            return function(*new.args, **new.kwargs)

        return kind.call(again, given)

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return kind.update_of(call_of(args, kwargs).invoke()[0])

    @functools.wraps(function)
    async def arun(*args: Any, **kwargs: Any) -> Any:
        return kind.update_of((await call_of(args, kwargs).ainvoke())[0])

    made = copy.copy(found)
    made.func = arun if inspect.iscoroutinefunction(function) else run
    made.retry_policy, made.timeout = (), None
    return made
