"""Calls that an `update_state` of the graph around them hid: found, and brought back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.pregel import Pregel
from langgraph.types import Interrupt, PregelTask, Send, StateSnapshot

from graph_retry.engine.state import ANSWER, LOOP, loop_of
from graph_retry.engine.stored import store
from graph_retry.flow import Ask, Flow
from graph_retry.forks.carry import Move
from graph_retry.ledger import params_at, records_in
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.threads.reading import is_local, read_saved
from graph_retry.threads.saved import SavedThread


@dataclass(frozen=True)
class HiddenCall:
    """A call whose open review the graph no longer shows: its state and its last question."""

    values: dict[str, Any]
    question: Interrupt


def hidden_calls(graph: Any, config: RunnableConfig) -> Flow[list[HiddenCall]]:
    """Find the open reviews that an `update_state` of the outermost graph hid; read only.

    A task counts as the same as before the update if it is of the same node (and sent the same),
    has not begun again, and the update changed none of its inputs: no input key of a retry node,
    and for any other node no value that is found in the params its calls were made with.
    """
    move = yield from _hiding(graph, config)
    if move is None:
        return []
    return [call for call in _reviews(move) if call.values.get(ANSWER) is None]


def unhide(graph: Any, config: RunnableConfig) -> Flow[bool]:
    """Bring hidden calls back and have them ask again, without a model call; tell if any was.

    Their reviews keep their `review_id`; the interrupts have new ids.
    """
    move = yield from _hiding(graph, config)
    if move is None:
        return False
    yield from move.run()
    yield Ask(graph, "invoke", (None, config))
    return True


def _hiding(graph: Any, config: RunnableConfig) -> Flow[Move | None]:
    """Return how to get from the checkpoint that asked to its update, if one hides a review."""
    if not is_local(graph) or config.get("configurable", {}).get("checkpoint_id"):
        return None
    head: StateSnapshot = yield Ask(graph, "get_state", (config,))
    if (head.metadata or {}).get("source") != "update" or not head.tasks:
        return None
    saved = yield from read_saved(graph, config)
    line = [] if saved is None else list(_line(saved))
    if saved is None or not line:
        return None
    new, old = line[0], line[-1]
    before: StateSnapshot = yield Ask(graph, "get_state", (old.config,))
    earlier: dict[Any, PregelTask] = {task.path: task for task in before.tasks}
    pairs = [(earlier[task.path], task) for task in head.tasks if task.path in earlier]
    same = [pair for pair in pairs if _is_same(cast("Any", graph), saved, old, new, *pair)]
    move = Move(saved, old, new, same)
    return move if next(_reviews(move), None) else None


def _line(saved: SavedThread) -> Iterator[CheckpointTuple]:
    """Yield the newest checkpoint and those it updates, down to the one that asked.

    Nothing is yielded where somebody went back: there a later checkpoint ran, too.
    """
    line: list[CheckpointTuple] = []
    here = saved.newest.get("")
    while here is not None:
        line.append(here)
        if len(line) > 1 and any(
            channel == INTERRUPT for _, channel, _ in here.pending_writes or ()
        ):
            break
        if here.metadata.get("source") != "update":
            return
        here = saved.roots.get(_parent(here))
    ids = {each.checkpoint["id"] for each in line}
    others = (each for each in saved.roots.values() if each.checkpoint["id"] not in ids)
    if not any(_parent(each) in ids for each in others):
        yield from line


def _parent(saved: CheckpointTuple) -> str:
    place = saved.parent_config or {}
    return str(place.get("configurable", {}).get("checkpoint_id"))


def _is_same(
    graph: Pregel[Any, Any, Any, Any],
    saved: SavedThread,
    old: CheckpointTuple,
    new: CheckpointTuple,
    task: PregelTask,
    now: PregelTask,
) -> bool:
    """Tell whether a task is what it was before the update and has not begun again."""
    written = {write[0] for write in new.pending_writes or ()}
    begun = {saved.first[each].checkpoint["id"] for each in _within(saved, now)}
    own = {saved.first[each].checkpoint["id"] for each in _within(saved, task)}
    if now.id in written or begun - own or task.name != now.name:
        return False
    if isinstance(task.path[1], int):
        return _sent(old, task.path[1]) == _sent(new, task.path[1])
    was, is_ = old.checkpoint["channel_values"], new.checkpoint["channel_values"]
    keys = {key for key in was.keys() | is_.keys() if repr(was.get(key)) != repr(is_.get(key))}
    calls = {each: saved.newest[each].checkpoint["channel_values"] for each in _within(saved, task)}
    bound = graph.nodes[task.name].bound
    if isinstance(bound, Pregel) and LOOP in calls.get(f"{task.name}:{task.id}", {}):
        return not keys & bound.get_input_jsonschema().get("properties", {}).keys()
    params = [params_at(records_in(each), 1) for each in calls.values() if LOOP in each]
    texts = [json.dumps(each.view, sort_keys=True) for each in params if each]
    before = {key: store(was.get(key)) for key in keys}
    return not any(
        _is_found(key, each.view["value"], texts) for key, each in before.items() if each
    )


def _is_found(key: str, value: Any, texts: list[str]) -> bool:
    """Tell whether a value is in params: by itself if it says anything, else under its key."""
    if is_object(value):
        return any(_is_found(name, each, texts) for name, each in value.items())
    text = json.dumps(value, sort_keys=True, default=str)
    if isinstance(value, str) and value.strip():
        text = text[1:-1]
    elif not (is_array(value) and value):
        text = f"{json.dumps(key)}: {text}"
    return any(text in each for each in texts)


def _sent(saved: CheckpointTuple, place: int) -> Send | None:
    """Return what a checkpoint sends to one of its tasks."""
    values: list[Any] = list(saved.checkpoint["channel_values"].values())
    lists = (value[place] for value in values if is_array(value) and len(value) > place)
    return next((each for each in lists if isinstance(each, Send)), None)


def _within(saved: SavedThread, task: PregelTask) -> Iterator[str]:
    """Yield the namespaces of a task."""
    return (each for each in saved.newest if each.partition("|")[0] == f"{task.name}:{task.id}")


def _reviews(move: Move) -> Iterator[HiddenCall]:
    for task, _ in move.tasks:
        for namespace in _within(move.saved, task):
            saved = move.saved.newest[namespace]
            values = saved.checkpoint["channel_values"]
            if LOOP in values and loop_of(values)["next"] == "review":
                for _, channel, asked in saved.pending_writes or ():
                    if channel == INTERRUPT:
                        yield HiddenCall(values, asked[0])
