"""The compiled loop: a LangGraph subgraph that finds the saved state of its call.

Each call runs the loop in its own checkpoint namespace, in which LangGraph saves every step.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langgraph.channels import EphemeralValue
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.errors import GraphInterrupt
from langgraph.graph import START
from langgraph.graph.state import CompiledStateGraph, StateGraph
from langgraph.types import Command, StateUpdate

from graph_retry._core.ground.functions.awaiting import (
    MistakeInCodeError,
    run_async,
    run_sync,
    sync_or_async,
)
from graph_retry._core.ground.functions.informing import informing
from graph_retry._core.ground.json import is_object
from graph_retry._core.langgraph.calls import find_slot
from graph_retry._core.langgraph.ends.run_end import at_run_end, end_of_task
from graph_retry._core.langgraph.fork import tell_ended
from graph_retry._core.langgraph.run_config import (
    inside,
    is_run_by_task,
    saver_in,
    task_paths,
)
from graph_retry._core.langgraph.seen import write_to, writer_of
from graph_retry._core.langgraph.storage.checkpoints import PLACE, newest_checkpoint, values_of
from graph_retry._core.langgraph.storage.stores import store_of
from graph_retry._core.loop.run.plan import Plan
from graph_retry._core.loop.run.step import RUN, LoopRun
from graph_retry._core.state.execution import Slot
from graph_retry._core.state.identity import Made
from graph_retry._core.state.namespaces import namespace_named, parts_of
from graph_retry._core.state.position import ANSWER, LOOP, Loop, loop_of
from graph_retry._core.state.transitions import FOLLOWERS, next_after_edit

CALL = "__graph_retry_call"
"""The key of `configurable` under which `retry_llm_call` passes its plan to the shared loop."""


class RetryGraph(CompiledStateGraph[Any, Any, Any, Any]):
    """The compiled loop. Inside another graph, it finds its saved state by the call's identity.

    The loop runs with `durability="sync"`, unless its direct caller asks for another durability. It
    must not inherit the durability of the outer run, for these reasons:

    - With `async` (LangGraph's default), a checkpoint is saved a moment after its step, so a crash
      could repeat a finished call.
    - With `exit`, LangGraph saves nothing of a finished subgraph. When a review is answered,
      LangGraph runs the node again, and the node would repeat its finished calls.
    """

    asks = True
    """Whether the node asks a person by itself."""

    def __init__(self, *, plan: Plan[Any] | None = None, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.plan = plan

    @classmethod
    def compile(
        cls,
        builder: StateGraph[Any, Any, Any, Any],
        name: str,
        shown: type[Any],
        plan: Plan[Any] | None = None,
    ) -> RetryGraph:
        """Compile the loop into a `RetryGraph`.

        The `RetryGraph` copies the attributes of the `CompiledStateGraph` that LangGraph compiles.

        Args:
            builder: The graph to compile.
            name: The graph's name.
            shown: The input schema for users, without the keys that the loop adds.
            plan: The plan of every run; None if each run passes its own plan.
        """
        graph = cls(**vars(builder.compile(name=name)), plan=plan)
        graph.channels[START] = EphemeralValue(shown)
        return graph

    def stream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> Iterator[Any]:
        """Stream the run as `CompiledStateGraph` does, but from the saved state of the call."""
        run, given, config = run_sync(self._opened(input, config, options))
        try:
            yield from super().stream(given, config, **options)
            _written(run)
        except GraphInterrupt:
            run_sync(_paused(run))
            raise
        finally:
            run_sync(_closed(run))

    async def astream(
        self, input: Any, config: RunnableConfig | None = None, **options: Any
    ) -> AsyncIterator[Any]:
        """Stream the run as `stream` does, in async code."""
        run, given, config = await run_async(self._opened(input, config, options))
        try:
            async with aclosing(cast("Any", super().astream(given, config, **options))) as parts:
                async for part in parts:
                    with run.slot.parked():
                        yield part
            _written(run)
        except GraphInterrupt:
            await run_async(_paused(run))
            raise
        finally:
            await run_async(_closed(run))

    def get_input_jsonschema(self, config: RunnableConfig | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the input, without the loop's own key."""
        schema = super().get_input_jsonschema(config)
        properties = {key: item for key, item in schema["properties"].items() if key != LOOP}
        return {**schema, "properties": properties}

    def bulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as `CompiledStateGraph` does. The new state determines the next step."""
        return super().bulk_update_state(config, run_sync(self._continued(config, supersteps)))

    async def abulk_update_state(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> RunnableConfig:
        """Update the state as `bulk_update_state` does, in async code."""
        continued = await run_async(self._continued(config, supersteps))
        return await super().abulk_update_state(config, continued)

    async def _continued(
        self, config: RunnableConfig, supersteps: Sequence[Sequence[StateUpdate]]
    ) -> list[list[StateUpdate]]:
        """Replace an update that names a step of the loop by a `Command` to the next step."""
        saved = await sync_or_async(self.get_state, self.aget_state, config)
        state = dict(saved.values)

        def with_next(update: StateUpdate) -> StateUpdate:
            values = {} if update.values is None else update.values
            by_step = update.as_node in FOLLOWERS or (update.as_node is None and ANSWER in state)
            if self.plan is None or not by_step or not is_object(values):
                return update
            state.update(values)
            raises = self.plan.settings.on_cancel == "raise"
            following = next_after_edit(state, self.plan.settings.keys, raises=raises)
            command: Any = Command(update=values, goto=following)
            return update._replace(values=command)

        return [[with_next(update) for update in updates] for updates in supersteps]

    async def _opened(
        self, input: Any, config: RunnableConfig | None, options: dict[str, Any]
    ) -> tuple[LoopRun, Any, RunnableConfig]:
        """Prepare a run: find the call's saved state, encode its input, and build its config."""
        given: Mapping[str, Any] = (config or {}).get("configurable", {})
        # If the given config names a thread, it must not inherit the place of the running node.
        is_placed = any(key in given for key in PLACE)
        around = {} if is_placed else ensure_config().get("configurable", {})
        configurable = {**around, **given}
        _check_not_in_node(configurable)
        plan = cast("Plan[Any]", configurable.pop(CALL, None))
        # `retry_llm_call` passes a config with its own name and recursion limit.
        callers = ensure_config(None if self.plan is None else config)
        caller: RunnableConfig = {**callers, "configurable": dict(configurable)}
        # Each run needs its own codec, because all runs of a retry node share `self.plan`. The
        # function forms make a plan for each run.
        if self.plan is not None:
            plan = replace(self.plan, codec=self.plan.codec.for_one_run())
        inherited = saver_in(configurable)
        saver = inherited or self._own_saver
        # LangGraph refuses `durability` together with `checkpoint_during`, its deprecated form.
        if saver is not None and "checkpoint_during" not in options:
            options["durability"] = options.get("durability") or "sync"
        task = namespace_named(configurable)
        is_task = self.plan is not None and is_run_by_task(given, self)
        made = Made(
            name=plan.settings.name,
            key=plan.settings.key,
            keys=plan.settings.keys,
            codec=plan.codec,
            llm_call=plan.llm_call,
            thread=str(configurable.get("thread_id", "")),
            given=input,
            task_path=_task_path(caller),
            is_task=is_task or not task,
        )
        waits: Loop | None = None
        ended = ""
        if not task:
            slot = Slot()
            waits = await self._waiting(configurable)
            # A new input of the thread ends its open review, which nobody can answer any more.
            if waits and waits["review"] and made.values is not None:
                place = waits["review"]["review_id"], plan.settings.name
                ended = tell_ended(*place, str(configurable["thread_id"]))
        else:
            if saver is not None:
                with informing("the table of open reviews"):
                    await store_of(saver).prepare()
            slot = await find_slot(made, configurable, inherited)
            # If the call has a different namespace than its task, the task makes several calls.
            if is_task and slot.namespace not in ("", task):
                made = replace(made, is_task=False)
        thread_id = configurable.get("thread_id")
        with slot.ended_by_errors():
            run = LoopRun(
                plan,
                slot=slot,
                caller=caller if task else None,
                write=writer_of(caller) if task else None,
                thread=None if thread_id is None else str(thread_id),
                identity=None if made.is_task else made.identity,
                task_path=made.task_path if task else None,
                is_task=made.is_task,
                saver=saver,
                writes=slot.writes,
                ended=ended,
            )
            # If the namespace has a checkpoint, LangGraph continues from it and needs no first
            # state.
            if not slot.is_saved:
                input = made.first_state(waits)
        configurable = inside(configurable, slot.namespace)
        configurable[RUN] = run
        config = cast("RunnableConfig", {**(config or {}), "configurable": configurable})
        return run, input, config

    @property
    def _own_saver(self) -> BaseCheckpointSaver[Any] | None:
        own = cast("Any", self.checkpointer)
        return None if isinstance(own, bool) else own

    async def _waiting(self, configurable: Mapping[str, Any]) -> Loop | None:
        """Return the saved state of an outermost loop that waits for an answer, or None."""
        saver = self._own_saver
        if saver is None or "thread_id" not in configurable:
            return None
        saved = await newest_checkpoint(saver, str(configurable["thread_id"]), "")
        loop = loop_of(values_of(saved) if saved else {})
        return loop if loop["review"] is not None else None


def _check_not_in_node(configurable: Mapping[str, Any]) -> None:
    """Refuse a call inside a reviewed node, because each attempt of the node would repeat the call.

    Raises:
        MistakeInCodeError: If the call is made inside a node of `graph_retry.nodes`.
    """
    around, inner = configurable.get(RUN), configurable.get(CALL)
    if around is not None and around.plan.is_node:
        name = around.plan.settings.name
        which = f"`{inner.settings.name}`" if inner is not None else "a retry node"
        mistake = MistakeInCodeError(
            f"the reviewed node `{name}` makes a call of its own ({which}). Each further attempt "
            "of the node would make this call again, even if the call has finished. To review the "
            f"calls and not the node, leave `{name}` out of the list `nodes` of `review_nodes`."
        )
        around.mistakes.append(mistake)
        raise mistake


def _written(run: LoopRun) -> None:
    """Repeat the writes of the user's function in the state of the graph that made the call."""
    if run.caller is not None and run.writes:
        write_to(run.caller, run.writes)


async def _paused(run: LoopRun) -> None:
    """End a run that pauses, after the other calls of its node have paused or ended."""
    run.trace.close()
    await run.slot.pause()
    if run.caller is not None and run.slot.namespace:
        configurable = run.caller.get("configurable", {})
        with informing("watching that the pause of a call arrives"):
            run.slot.execution.paused(run.slot, end_of_task(configurable))
            at_run_end(configurable, run.slot.execution.check_ended)


async def _closed(run: LoopRun) -> None:
    """End a run, and remove its answered reviews from the inbox.

    The first new call of a node also warns if a new input or a fork has ended reviews. It looks for
    them at its end, because LangGraph may save the input while the call runs.
    """
    run.trace.close()
    run.slot.end()
    if run.saver is not None:
        await run.ended_reviews()
        for review in run.answered:
            with informing("the deletion of an answered review from the table of open reviews"):
                await store_of(run.saver).close_answered(review)


def _task_path(caller: RunnableConfig) -> str | None:
    """Return the path of nodes and tasks that leads to a task, without the ids of tasks.

    If a part of the path is not found, return None, because two branches could have the same
    incomplete path.
    """
    configurable = caller.get("configurable", {})
    parts = parts_of(namespace_named(configurable))
    paths = task_paths(configurable)
    if sum(map(_tasks_in, paths)) != sum(part.is_node for part in parts):
        return None
    steps = "|".join(part.name for part in parts)
    return " ".join([steps, *map(json.dumps, paths)])


def _tasks_in(path: Any) -> int:
    """Return the number of tasks on a path. The path of a `@task` contains its caller's path."""
    inner: list[Any] = [each for each in path if isinstance(each, tuple)]
    return 1 + sum(map(_tasks_in, inner))
