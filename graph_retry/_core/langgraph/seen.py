"""Show the user's function the LangGraph config that it would see without this library.

The function gets the config of the node that made the call. The step that runs the function gives
the parts that pause and continue it: the namespace, the task's id, the scratchpad, the starter of
`@task`s, the durability and the replay position.

A function may also write into the state of the node's graph, as `push_message` does. These writes
are saved with the call, and reach the node's graph when the call has succeeded. So a failed attempt
writes nothing, and a killed process loses no finished writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.runtime import Runtime
from langgraph.types import StreamWriter

from graph_retry._core.langgraph.run_config import STREAM, key_of, reader_in
from graph_retry._core.state.namespaces import CONFIG_NAMESPACE

Write = tuple[str, Any]
"""A channel, and a value that is written into it."""

_OF_STEP = {"callbacks", "configurable", "run_id", "run_name"}
"""The keys of a config whose values come from the step, not from the caller's node."""


class Seen:
    """The config that the function of one attempt sees, and its writes into the caller's state.

    config: The config with which the function runs.
    writes: The function's writes into channels of the caller's graph, in order.
    """

    def __init__(
        self,
        caller: RunnableConfig | None,
        writer: StreamWriter | None,
        inner: RunnableConfig,
        heartbeat: Callable[[], None] | None = None,
    ) -> None:
        """Build the config from `inner`, the step's config, and `caller`, the node's config.

        `writer` writes custom events in the node's name, and `heartbeat` calls the node's
        heartbeat.
        """
        self.writes: list[Write] = []
        outer = {} if caller is None else caller.get("configurable", {})
        here: dict[str, Any] = {**inner.get("configurable", {})}
        # Streams show the tokens of the function under the caller's node.
        if (stream := key_of(here, *STREAM)) in outer:
            here[stream] = outer[stream]
        self._show_runtime(outer, here, writer, heartbeat)
        self._show_channels(outer, here)
        kept = {key: value for key, value in dict(caller or {}).items() if key not in _OF_STEP}
        # LangChain copies this key from `configurable`. The node itself does not see it.
        metadata: Any = (caller or inner).get("metadata", {})
        kept["metadata"] = {key: metadata[key] for key in metadata if key != CONFIG_NAMESPACE}
        self.config = cast("RunnableConfig", {**inner, **kept, "configurable": here})

    def _show_runtime(
        self,
        outer: Mapping[str, Any],
        here: dict[str, Any],
        writer: StreamWriter | None,
        heartbeat: Callable[[], None] | None,
    ) -> None:
        """Show the function the node's `Runtime`, with its context and its store."""
        if not (key := key_of(here, Runtime)):
            return
        shown: Runtime[Any] = outer.get(key, here[key])
        own = here[key].execution_info
        if key in outer and own is not None and shown.execution_info is not None:
            # If `transient` repeats a request, that is a further attempt, as under a retry policy.
            number = shown.execution_info.node_attempt + own.node_attempt - 1
            shown = shown.patch_execution_info(node_attempt=number)
        if heartbeat is not None:
            shown = shown.override(heartbeat=_both(heartbeat, shown.heartbeat))
        here[key] = shown if writer is None else shown.override(stream_writer=writer)

    def _show_channels(self, outer: Mapping[str, Any], here: dict[str, Any]) -> None:
        """Let the function read and write the state of the caller's graph."""
        known, own = reader_in(outer), reader_in(here)
        if known is None or own is None or own.key_of_writer not in here:
            return
        # The path stays that of the step, because it identifies a call inside this call.
        task = _Task(own.task.path, own.task.triggers, (known.task, self))
        given = (task if each is known.task else each for each in known.read.args)
        here[own.key] = partial(known.read.func, *given, **known.read.keywords)
        here.update({key: outer[key] for key in outer.keys() & here if key.endswith("read_state")})
        write = here[own.key_of_writer]
        here[own.key_of_writer] = partial(self._write, frozenset(known.channels), write)

    def _write(
        self, channels: frozenset[str], rest: Callable[[list[Write]], None], writes: Iterable[Write]
    ) -> None:
        """Keep the writes into the caller's channels; pass on others, such as interrupt answers."""
        for write in writes:
            if write[0] in channels:
                self.writes.append(write)
            else:
                rest([write])


def _both(one: Callable[[], None], other: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        one()
        other()

    return both


class _Task:
    """Shows state with the writes of the caller's task and of the function."""

    def __init__(self, path: Any, triggers: Sequence[str], sources: Iterable[Any]) -> None:
        self.path, self.triggers, self._sources = path, triggers, sources

    @property
    def writes(self) -> list[Write]:
        return [write for source in self._sources for write in source.writes]


def write_to(caller: RunnableConfig, writes: Iterable[Write]) -> None:
    """Write into the state of the graph whose node made the call."""
    configurable = caller.get("configurable", {})
    if (known := reader_in(configurable)) is not None:
        configurable[known.key_of_writer](list(writes))


def writer_of(caller: RunnableConfig) -> StreamWriter | None:
    """Return the function that writes custom events in the name of a node, or None."""
    configurable = caller.get("configurable", {})
    outer: Runtime[Any] | None = configurable.get(key_of(configurable, Runtime))
    if outer is None:
        return None

    def write(event: Any) -> None:
        token = var_child_runnable_config.set(caller)
        try:
            outer.stream_writer(event)
        finally:
            var_child_runnable_config.reset(token)

    return write
