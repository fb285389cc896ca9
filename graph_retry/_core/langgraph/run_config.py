"""Read the config of a running task, and change it for a call's subgraph.

LangGraph keeps its own objects under private keys of `configurable`, such as the saver, the
scratchpad (answers and a counter of subgraphs) and the `Runtime`. Only this file searches for these
objects, by their type or attributes, and for plain values by the end of their key. If something is
missing, the loop works without it, and `tests/langgraph/test_run_config.py` fails.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from types import FunctionType
from typing import Any, NamedTuple, cast

from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import var_child_runnable_config
from langgraph.channels import BaseChannel, LastValue, Topic
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.config import get_config
from langgraph.runtime import ExecutionInfo, Runtime
from langgraph.types import Send
from typing_extensions import TypeIs

from graph_retry._core.state.namespaces import CONFIG_NAMESPACE, around, namespace_named
from graph_retry.lossless._ground import as_repr


def call_namespace() -> str:
    """Return the checkpoint namespace of the call whose step is running."""
    return namespace_in(get_config())


def namespace_in(config: RunnableConfig) -> str:
    """Return the checkpoint namespace of a call, from the config of one of its steps."""
    return around(namespace_named(config.get("configurable", {})))


def current_thread() -> str | None:
    """Return the id of the thread whose step is running, or None."""
    thread_id = get_config().get("configurable", {}).get("thread_id")
    return None if thread_id is None else str(thread_id)


def thread_in_logs() -> str:
    thread_id = current_thread()
    return "outside of any thread" if thread_id is None else f"thread {as_repr(thread_id)}"


def current_saver() -> BaseCheckpointSaver[Any] | None:
    return saver_in(get_config().get("configurable", {}))


def saver_in(configurable: Mapping[str, Any]) -> BaseCheckpointSaver[Any] | None:
    return configurable.get(key_of(configurable, BaseCheckpointSaver))


def scratchpad_in(configurable: Mapping[str, Any]) -> Any:
    """Return LangGraph's scratchpad of a task. It holds the task's answers and counts subgraphs."""
    return configurable.get(key_of(configurable, *_SCRATCHPAD))


_SCRATCHPAD = ("subgraph_counter", "get_null_resume")
_REPLAY = ("get_checkpoint", "aget_checkpoint")
STREAM = ("__call__", "modes")
"""Attributes that identify LangGraph's private objects in a `configurable`."""

_found: dict[tuple[str | type[Any], ...], str] = {}
"""The keys that were found, which are tried first because every config has the same keys."""


def key_of(configurable: Mapping[str, Any], *known: str | type[Any]) -> str:
    """Return the key of the first value with all these attributes or classes, or ""."""
    before = _found.get(known, "")
    keys = (before, *configurable) if before in configurable else configurable
    for key in keys:
        value = configurable[key]
        for each in known:
            if not (hasattr(value, each) if isinstance(each, str) else isinstance(value, each)):
                break
        else:
            _found[known] = key
            return key
    return ""


def state_keys_around(configurable: Mapping[str, Any]) -> Collection[str] | None:
    """Return the state keys of the graph that runs this task, or None."""
    found = reader_in(configurable)
    return None if found is None else found.channels


def sent_twice(configurable: Mapping[str, Any], written: Iterable[str]) -> list[str]:
    """Return the keys of `written` without a reducer, if several `Send`s of a step run this node.

    After such a step, LangGraph raises an `InvalidUpdateError`.
    """
    found = reader_in(configurable)
    plain = [key for key in written if found and isinstance(found.channels.get(key), LastValue)]
    if found is None or not plain:
        return []
    topics = [each for each in found.channels.values() if isinstance(each, Topic)]
    sent = [one for each in topics if each.is_available() for one in each.get()]
    same = [one for one in sent if isinstance(one, Send) and one.node == found.task.name]
    return plain if len(same) > 1 else []


class Reader(NamedTuple):
    """The function with which a task reads the channels of its graph.

    key: The key of the function in `configurable`.
    read: The function.
    channels: The channels by name.
    task: LangGraph's object with the path of the task and the task's writes so far.
    """

    key: str
    read: partial[Any]
    channels: Mapping[str, BaseChannel[Any, Any, Any]]
    task: Any

    @property
    def key_of_writer(self) -> str:
        """The key of the function with which the task writes into these channels."""
        return f"{self.key.removesuffix('read')}send"


def reader_in(configurable: Mapping[str, Any]) -> Reader | None:
    """Return the function with which a task reads its graph's channels, or None."""
    for key, value in configurable.items():
        if not isinstance(value, partial):
            continue
        channels = next((each for each in value.args if _are_channels(each)), None)
        task = next((each for each in value.args if _is_task(each)), None)
        if channels is not None and task is not None:
            return Reader(key, value, channels, task)
    return None


def is_sent(configurable: Mapping[str, Any]) -> bool:
    """Return whether a `Send` or the call of a `@task` made the running task."""
    found = reader_in(configurable)
    return found is not None and "push" in str(found.task.path[0])


def _are_channels(given: object) -> TypeIs[Mapping[str, BaseChannel[Any, Any, Any]]]:
    if not isinstance(given, Mapping) or not given:
        return False
    return all(isinstance(each, BaseChannel) for each in cast("Mapping[str, Any]", given).values())


def _is_task(given: object) -> bool:
    return hasattr(given, "path") and hasattr(given, "triggers")


def task_paths(configurable: Mapping[str, Any]) -> list[Any]:
    """Return the path of the running task and of each task around it, outermost first.

    A path, such as the index of a `Send`, stays the same in a fork. The path of a `@task` contains
    the path of its caller. If LangGraph's loop of a graph is not found, the tasks around the graph
    are left out.
    """
    paths: list[Any] = []
    for here in configurables_around(configurable):
        for value in here.values():
            for given in value.args if isinstance(value, partial) else ():
                if _is_task(given):
                    paths.insert(0, given.path)
    return paths


def configurables_around(configurable: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the `configurable` of a task and of each task around it, innermost first."""
    here: Mapping[str, Any] | None = configurable
    while here is not None:
        yield here
        loop = loop_around(here)
        here = None if loop is None else loop.config.get("configurable")


def outermost_loop(configurable: Mapping[str, Any]) -> Any:
    """Return LangGraph's running loop of the outermost graph around a task, or None.

    The loop knows the checkpoint from which its step began (`checkpoint_metadata`), and the config
    of the checkpoint before it (`prev_checkpoint_config`). `is_replaying` tells whether the run
    began from an earlier checkpoint of the thread.
    """
    loop = loop_around(configurable)
    if loop is None or not loop.is_nested:
        return loop
    return outermost_loop(loop.config["configurable"])


def starters(configurable: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the function with which a task starts a `@task`."""
    for value in configurable.values():
        starter: Any = value
        if isinstance(value, FunctionType):  # A node with a timeout has this function in a closure.
            starter = inspect.getclosurevars(value).nonlocals.get("call")
        if isinstance(starter, partial) and "schedule_task" in starter.keywords:
            yield starter


def loop_around(configurable: Mapping[str, Any]) -> Any:
    """Return LangGraph's running loop of the graph that runs a task, or None."""
    for starter in starters(configurable):
        loop: Any = getattr(starter.keywords["schedule_task"], "__self__", None)
        if loop is not None:
            return loop
    return None


def is_run_by_task(configurable: Mapping[str, Any], graph: object) -> bool:
    """Return whether LangGraph itself runs a graph as a node; True if this is unknown.

    A node's function may invoke the graph with the same config. Then the function is the node.
    """
    if scratchpad_in(configurable) is None:
        return False
    for starter in starters(configurable):
        task: Any = starter.args[0]()
        return task is None or graph in _runnables_in(task.proc)
    return True


def _runnables_in(runnable: Any) -> Iterator[Any]:
    """Yield a runnable and all runnables inside it, as in a chain (`a | b`)."""
    yield runnable
    bound = getattr(runnable, "bound", None)
    for each in (*getattr(runnable, "steps", ()), *([] if bound is None else [bound])):
        yield from _runnables_in(each)


def inside(configurable: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return the `configurable` for a call's subgraph; `namespace` is the call's own, or empty.

    The subgraph sends no `values` to the outer stream, because chat clients would mistake these
    `values` for the state. It sends updates, tokens, tasks and custom events.

    If a namespace is given, the counter of subgraphs stays at 0, because LangGraph would append any
    other count to the namespace. The replay position is removed, because LangGraph would use it to
    look for an old checkpoint of the subgraph. A call's namespace belongs to one checkpoint of the
    outer graph, so its newest checkpoint is always the right one.
    """
    inner = dict(configurable)
    if key := key_of(inner, *STREAM):
        inner[key] = copy(inner[key])
        inner[key].modes = inner[key].modes - {"values"}
    if not namespace:
        return inner
    if key := key_of(inner, *_SCRATCHPAD):
        inner[key] = replace(inner[key], subgraph_counter=lambda: 0)
    if key := key_of(inner, *_REPLAY):
        inner[key] = None
    inner[CONFIG_NAMESPACE] = namespace
    return inner


def has_answer() -> bool:
    """Return whether the run brings an answer to this step; True if this is unknown."""
    scratchpad = scratchpad_in(get_config().get("configurable", {}))
    if scratchpad is None or not isinstance(getattr(scratchpad, "resume", None), list):
        return True
    has_plain = scratchpad.get_null_resume() is not None
    return bool(scratchpad.resume) or has_plain or bool(answers_by_id())


def answers_by_id() -> Mapping[str, Any]:
    """Return the answers in the run's `Command` by interrupt id; empty if it has none."""
    configurable = get_config().get("configurable", {})
    found = (value for key, value in configurable.items() if key.endswith("resume_map"))
    return next(found, None) or {}


def brings_answer_to(interrupt_id: str, configurable: Mapping[str, Any]) -> bool:
    """Return whether a run's answer is for this interrupt, or has no interrupt id."""
    by_id: Any = [value for key, value in configurable.items() if key.endswith("resume_map")]
    scratchpad = scratchpad_in(configurable)
    is_plain = scratchpad is not None and scratchpad.get_null_resume() is not None
    return is_plain or any(interrupt_id in (each or ()) for each in by_id)


@contextmanager
def plain_answer_hidden() -> Generator[None, None, None]:
    """Hide a plain answer (one without an interrupt id) from an `interrupt` in the `with` block."""
    config = get_config()
    here = dict(config.get("configurable", {}))
    if key := key_of(here, *_SCRATCHPAD):
        here[key] = replace(here[key], get_null_resume=lambda _=False: None)
    hidden = cast("RunnableConfig", {**config, "configurable": here})
    token = var_child_runnable_config.set(hidden)
    try:
        yield
    finally:
        var_child_runnable_config.reset(token)


def keep_newest_answer() -> None:
    """Remove earlier answers to this question from the run, if the run brings a newer answer.

    If a step that took an answer is undone, LangGraph keeps this old answer, and would give it to
    the question before the new answer. A run brings either one plain answer or answers by id. In a
    run with answers by id, a plain answer is therefore old.
    """
    scratchpad = scratchpad_in(get_config().get("configurable", {}))
    if scratchpad is None or not scratchpad.resume:
        return
    plain = scratchpad.get_null_resume(True)  # True removes the plain answer from the run.
    is_plain_newest = plain is not None and not answers_by_id()
    scratchpad.resume[:] = [plain] if is_plain_newest else scratchpad.resume[-1:]


def node_attempt(configurable: Mapping[str, Any]) -> int:
    """Return the number of a task's attempt under its retry policy; the first is 1."""
    info = _execution_in(configurable)
    return info.node_attempt if info else 1


def may_be_resumed(configurable: Mapping[str, Any]) -> bool:
    """Return whether the task may have run before; True if LangGraph does not say."""
    told = [value for key, value in configurable.items() if key.endswith("resuming")]
    return not told or any(told)


def saves_later(configurable: Mapping[str, Any]) -> bool:
    """Return whether the checkpoints around a task may still be unsaved when it starts.

    They may be unsaved with durability `async`, the default. LangGraph tells subgraphs any other
    durability.
    """
    asked = [value for key, value in configurable.items() if key.endswith("durability")]
    return asked in ([], ["async"])


def began_at(configurable: Mapping[str, Any]) -> str | None:
    """Return when the task's first attempt in this run began (ISO 8601, UTC), or None."""
    info = _execution_in(configurable)
    began = info.node_first_attempt_time if info else None
    return None if began is None else datetime.fromtimestamp(began, UTC).isoformat()


def has_context(config: RunnableConfig) -> bool:
    """Return whether the caller of a graph gave the run a `context`.

    The result is False on a server, because a server gives each run a context.
    """
    configurable = config.get("configurable", {})
    runtime: Runtime[Any] | None = configurable.get(key_of(configurable, Runtime))
    return runtime is not None and runtime.server_info is None and bool(runtime.context)


def _execution_in(configurable: Mapping[str, Any]) -> ExecutionInfo | None:
    runtime: Runtime[Any] | None = configurable.get(key_of(configurable, Runtime))
    return runtime.execution_info if runtime else None
