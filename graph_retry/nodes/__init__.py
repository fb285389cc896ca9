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
from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Annotated, Any, TypeVar, Unpack, cast, get_type_hints

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.func import task
from langgraph.graph import StateGraph
from langgraph.pregel import Pregel
from langgraph.types import Command, TimeoutPolicy
from pydantic import BaseModel, BeforeValidator, TypeAdapter

from graph_retry._core.langgraph.builders import with_defaults
from graph_retry._core.langgraph.inside_node import subgraph_of
from graph_retry.calls import Call, ParamsCodec
from graph_retry.hooks import fields_of, with_fields
from graph_retry.nodes._complete import Complete, asks
from graph_retry.nodes._limits import limits_of
from graph_retry.nodes._types import (
    check_known,
    checked_type,
    part_of,
    plain_type,
    read_text,
    type_for,
    typed_dict,
    types_in,
    with_message_classes,
)
from graph_retry.options import OnRetry, RetryOptions, settle
from graph_retry.output import build_validator
from graph_retry.plugins import WrongArgumentError, as_repr, checked

__all__ = ["NodeOptions", "review_nodes", "reviewed"]

BuilderT = TypeVar("BuilderT", bound=StateGraph[Any, Any, Any, Any])
NodeT = TypeVar("NodeT")
_TASK: type[Any] = type(task(lambda: None))


class NodeOptions(RetryOptions, total=False):
    """The options of one node: those of a call, and the state keys to edit and to validate.

    params: The keys of the node's input that a person may change (default: all keys with JSON
        values).
    on_retry: Hooks, as in `retry_llm_call`.
    output: The keys of the node's update to validate, with their types, such as `{"person":
        Person}`. If the value under such a key is a text or a message, its JSON is read first.
    """

    params: Sequence[str] | None
    on_retry: OnRetry[Any]
    output: Mapping[str, Any] | None


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
        schema: The state schema, which gives params and responses their types (default: the
            annotation of the node's first parameter, or the annotations of the `@task`).
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
    kind = _kind_of(name, types_in(*known), own)
    return cast("NodeT", _Reviewed(cast("Any", spec.runnable), kind, node))


@checked
def review_nodes(
    builder: BuilderT,
    params: Sequence[str] | None = None,
    on_retry: OnRetry[Any] = None,
    *,
    nodes: Collection[str] | Mapping[str, NodeOptions] | None = None,
    **options: Unpack[RetryOptions],
) -> BuilderT:
    """Let the nodes of an existing graph ask a person when they fail; call it before `compile`.

    A node's `timeout` and `retry_policy` (its own, or from `set_node_defaults`) become the options
    `timeout` and `transient` of its call, which handles all failures before LangGraph sees them.
    The call repeats the failures that `retry_on` names, and transient failures such as a lost
    connection. Call `set_node_defaults` first: later defaults do not apply to these nodes.

    Args:
        builder: The `StateGraph`, not compiled yet.
        params: The state keys that a person may change (default: all keys with JSON values).
        on_retry: Hooks, as in `retry_llm_call`.
        nodes: The names of the nodes (default: all that do not ask a person already, by themselves
            or in a subgraph), or a dict of `NodeOptions` by name, which take precedence over
            `**options`.
        **options: See `RetryOptions`.

    Returns:
        The same builder.

    Raises:
        WrongArgumentError: If `nodes` or `params` has an unknown name, `nodes` has one that asks a
            person already, a second call finds no further node, or an option is wrong.

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
        spec.runnable = _Reviewed(runnable, _kind_of(name, states[name], own))
    if nodes is None:
        builder.nodes = Complete(builder.nodes)
    return builder


class _Reviewed(RunnableLambda[Any, Any]):
    """A node that asks a person about its failures.

    LangGraph looks for a subgraph in the `deps` of a `RunnableLambda`, and reads a node's input
    schema and destinations from the annotations of `__call__`.
    """

    asks = True

    def __init__(self, node: Runnable[Any, Any], kind: _Kind, function: Any = None) -> None:
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

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Run the node until it succeeds, or until a person ends the call."""
        again = _Again(self._node, input, self._kind)
        with _running(config):
            return self._kind.update_of(self._kind.call(again, input).invoke()[0])

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        """Do the same as `invoke`, in async code."""
        again = _Again(self._node, input, self._kind)
        with _running(config):
            return self._kind.update_of((await self._kind.call(again, input).ainvoke())[0])


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

    def __init__(self, node: Runnable[Any, Any], given: Any, kind: _Kind) -> None:
        self._node, self._given, self.name, self._kind = node, given, kind.name, kind

    def invoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self._kind.texts_in(self._node.invoke(_with(self._given, input), config))

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **_: Any) -> Any:
        return self._kind.texts_in(await self._node.ainvoke(_with(self._given, input), config))


def _with(given: Any, params: Any) -> Any:
    """Return a node's input with new params. An input without fields is replaced as a whole."""
    return with_fields(given, fields_of(params)) if fields_of(given) else params


@dataclass(frozen=True, kw_only=True)
class _Kind:
    """The settings that all calls of one node share.

    name: The name of the node.
    types: The types of the keys of the node's input and update.
    params: The keys that a person may change; None for all keys with JSON values.
    output: The keys of the node's update to validate, with their types.
    returns: The type of a `@task`'s result, which is no update of a state; None for a node.
    """

    name: str
    types: Mapping[str, Any]
    params: tuple[str, ...] | None
    on_retry: OnRetry[Any]
    output: Mapping[str, Any]
    options: RetryOptions = field(default_factory=RetryOptions)
    returns: Any = None

    def call(self, function: Any, given: Any) -> Call:
        """Return the call that runs `function` with params from `given`, the node's whole input."""
        values = fields_of(given)
        if not values and given not in ({}, None) and not isinstance(given, BaseModel):
            return self._made(function, given, ParamsCodec[Any].for_value(given))
        wanted = self.params if self.params is not None else self.types or values
        kinds = {key: self.types.get(key, Any) for key in wanted if key in values}
        try:
            return self._made(function, *self._part(given, kinds))
        except (TypeError, ValueError):
            # A graph does not check its state: a value may be of another type, or be no JSON.
            found = {key: type_for(values[key], kind) for key, kind in kinds.items()}
            fits = {k: found[k] or Any for k in found if found[k] is not None or self.params}
            return self._made(function, *self._part(given, fits))

    def _made(self, function: Any, shown: Any, codec: ParamsCodec[Any]) -> Call:
        # A run of a node makes one call, even if its params differ, such as the steps left.
        options: RetryOptions = {**self.options, "key": self.name}
        read = {
            key: Annotated[kind, BeforeValidator(read_text)] for key, kind in self.output.items()
        }
        update = typed_dict(f"update of {self.name}", tuple({**self.types, **read}.items()))
        made = Call(function, shown, self.on_retry, update if self.output else None, options, codec)
        known = (update if self.types else Any) if self.returns is None else self.returns
        return made.of_node(None if known is Any else build_validator(known))

    def _part(self, given: Any, kinds: Mapping[str, Any]) -> tuple[Any, ParamsCodec[Any]]:
        """Return the params (the fields of the input that `kinds` names) and their codec."""
        values = fields_of(given)
        shown: dict[str, Any] = {key: values[key] for key in kinds}
        if isinstance(given, BaseModel):
            part = part_of(self.name, type(given), tuple(kinds))
            return part.model_construct(**shown), ParamsCodec[Any](part)
        return shown, ParamsCodec[Any](typed_dict(self.name, tuple(kinds.items())))

    def texts_in(self, value: Any) -> Any:
        """Return a node's update with texts in place of the messages that are to be validated."""
        if self.output and isinstance(value, Command):
            raise WrongArgumentError(
                f"`{self.name}` returns a `Command`, and `output` validates an update: return the "
                "update, and choose the next node by an edge."
            )
        if not self.output or not isinstance(value, Mapping):
            return value
        update = cast("Mapping[str, Any]", value)
        messages = {k: m for k, m in update.items() if isinstance(m, BaseMessage)}
        return {**update, **{k: str(messages[k].text) for k in messages.keys() & self.output}}

    def update_of(self, value: Any) -> Any:
        """Return the node's update, with plain JSON where the state declares a different type."""
        if not isinstance(value, dict):
            return with_message_classes(value)
        given = cast("dict[str, Any]", value)
        update = {key: with_message_classes(each) for key, each in given.items()}
        for key, kind in self.output.items():
            if key in update and plain_type(self.types.get(key)) != kind:
                update[key] = TypeAdapter(kind).dump_python(update[key], mode="json")
        return update


def _kind_of(name: str, types: Mapping[str, Any], own: NodeOptions) -> _Kind:
    options: Any = {"name": name, **own}
    params, on_retry = options.pop("params", None), options.pop("on_retry", None)
    given = options.pop("output", None)
    if given is not None and not isinstance(given, Mapping):
        raise WrongArgumentError(
            f"`output` is {as_repr(given, 100)}: give a mapping of state keys to types."
        )
    output = cast("Mapping[str, Any]", given or {})
    check_known("params", params, types)
    check_known("output", output, types)
    if "key" in options:
        raise WrongArgumentError("`key` is not allowed for a node, which makes one call.")
    settle(name, "function", options)
    kept = None if params is None else tuple(params)
    return _Kind(
        name=name, types=types, params=kept, on_retry=on_retry, output=output, options=options
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
    kind = _kind_of(name, types, {**limits_of(name, found, own), **own})
    kind = replace(kind, returns=checked_type(hints.get("return", Any)))

    def call_of(args: Any, kwargs: Any) -> Call:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = dict(bound.arguments)

        def again(params: Any) -> Any:
            new = inspect.BoundArguments(signature, _with(given, params))
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
