"""Fork a thread so that each call in the fork continues from its earlier state.

The tasks of a fork get new ids, so their calls do not find their saved state. Therefore the copied
checkpoint names the original one. A call that begins in the fork searches the calls made from the
original checkpoint: LangGraph saves that checkpoint's id in their metadata, under `parents`.
(Observed by comparing the checkpoints of a thread before and after a fork.)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    Checkpoint,
    CheckpointTuple,
    empty_checkpoint,
)
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from graph_retry._attempts import located, records_in
from graph_retry._awaiting import sync_or_async
from graph_retry._going_back import REWIND, RewindRefused, reopened
from graph_retry._identity import changed_fields, first_params
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    namespace_of,
    place_of,
    read_checkpoint,
    root_of,
    thread_id_of,
    values_of,
)
from graph_retry._namespaces import parts_of
from graph_retry._params.patch import Encoded
from graph_retry._state import ANSWER, LOOP, Loop, loop_of

COPY = "__copy__"
"""The node name with which LangGraph's `update_state` copies a checkpoint to its thread's end."""

_FORK = "graph_retry_fork"
"""The key of the fork note (JSON) in the metadata of the copied checkpoint.

A server accepts no metadata, so there the key is in the run's `configurable`. Its value is a list
with the JSON, because LangGraph would copy a plain string into each checkpoint.
"""

_NODE = int.from_bytes(b"grfork")
"""The last 48 bits of a copied checkpoint's id; in other ids they are random.

They tell a call that it is in a fork. Other calls need not read the (perhaps large) checkpoint.
"""


class _ForkNote(TypedDict):
    """A message from a fork to the calls that run in it.

    `root` is the id of the forked checkpoint of the outermost graph. If `answer` is given, the call
    whose namespace is `call` is resumed with that answer.
    """

    root: str
    call: str
    answer: dict[str, Any] | None


def fork_note(root: str, call: str = "", answer: dict[str, Any] | None = None) -> str:
    """Return the fork note as JSON; `_ForkNote` explains the fields."""
    fork: _ForkNote = {"root": root, "call": call, "answer": answer}
    return json.dumps(fork)


def forked_config(config: RunnableConfig, note: str) -> RunnableConfig:
    """Return the config for a server run that continues from a fork."""
    there = {**config.get("configurable", {}), _FORK: [note]}
    return cast("RunnableConfig", {**config, "configurable": there})


async def put_fork(saver: BaseCheckpointSaver[Any], old: RunnableConfig, note: str) -> str:
    """Copy a checkpoint to the end of its thread, with the fork note; return the copy's id.

    The copy and the note are a single write. Therefore the next run of the thread always knows of
    the fork, even if this process crashes.
    """
    saved = await read_checkpoint(saver, old)
    if saved is None:
        raise RewindRefused("the checkpoint it goes back to is gone.")
    own_id = str(uuid6(node=_NODE, clock_seq=-2))  # `uuid6` as LangGraph calls it.
    copy: Checkpoint = {**saved.checkpoint, "id": own_id, "ts": empty_checkpoint()["ts"]}
    step = saved.metadata.get("step", -1) + 1
    told: Any = {**saved.metadata, "source": "fork", "step": step, _FORK: note}
    parent = saved.parent_config or place_of(thread_id_of(saved), namespace_of(saved))
    await sync_or_async(saver.put, saver.aput, parent, copy, told, {})
    return str(copy["id"])


async def _note_of(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> _ForkNote | None:
    """Return the note for the calls of this task, if it began from a fork."""
    told: Any = configurable.get(_FORK)
    note: str | None = told[0] if told else None
    root_id = _root_of(configurable)
    if note is None and root_id.endswith(f"{_NODE:012x}"):
        place = place_of(str(configurable["thread_id"]), checkpoint_id=root_id)
        saved = await read_checkpoint(saver, place)
        note = saved and cast("Any", saved.metadata).get(_FORK)
    return None if note is None else json.loads(note)


def _root_of(configurable: Mapping[str, Any]) -> str:
    """Return the id of the outermost graph's checkpoint from which a task began."""
    return str(configurable.get("checkpoint_map", {}).get("", ""))


def task_path(caller: RunnableConfig) -> str:
    """Return the path of nodes that leads to a task, without task ids."""
    parts = parts_of(str(caller.get("configurable", {}).get("checkpoint_ns", "")))
    steps = "|".join(part.name for part in parts)
    return f"{steps} {json.dumps(caller.get('metadata', {}).get('langgraph_path'))}"


class Begun(NamedTuple):
    """A call that begins: its namespace, the path of its task, its name and its first params."""

    namespace: str
    task_path: str
    name: str
    params: Encoded | None


async def past_of(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any], begun: Begun
) -> dict[str, Any] | None:
    """Return the state that a call had before the fork; None without a fork or an earlier state.

    The earlier namespace differs only in its task ids. If a loop made several matching calls, they
    are matched in order, because each new call saves the namespace of the call that it continues.

    Raises:
        ValueError: If a call should be rewound, but the node now calls with different params.
    """
    fork = await _note_of(configurable, saver)
    if fork is None:
        return None
    thread: RunnableConfig = {"configurable": {"thread_id": str(configurable["thread_id"])}}
    saved = await list_checkpoints(saver, thread)
    taken = continued_in(saved, _root_of(configurable))
    there = {
        namespace: (values, made_with)
        for namespace, values in _made_from(fork["root"], saved).items()
        if namespace not in taken and (made_with := _params_if_made_in(values, begun)) is not None
    }
    own = begun.namespace.removeprefix(str(configurable["checkpoint_ns"]))
    depth = len(parts_of(begun.namespace))
    same = [place for place in there if place.endswith(own) and len(parts_of(place)) == depth]
    if not same:
        if fork["answer"] is not None and fork["call"] in there:
            _refuse(there[fork["call"]][1], begun)
        return None
    place = same[-1]
    values = located(there[place][0], place)
    if place == fork["call"] and fork["answer"] is not None:
        number, made = fork["answer"][REWIND]["attempt"], len(records_in(values))
        if not 1 <= number <= made:  # A client may send a number without having read the ledger.
            raise RewindRefused(f"`attempt` is {number}, and the call has {made}.")
        again: Loop = {**reopened(values), "continues": place}
        return {**values, LOOP: again, ANSWER: {"value": fork["answer"]}}
    return {**values, LOOP: {**loop_of(values), "continues": place}}


def _refuse(made_with: Mapping[str, Any], begun: Begun) -> NoReturn:
    """Raise, because a call with the same name but other params replaces the call to rewind."""
    fields = changed_fields(made_with, begun.params)
    raise RewindRefused(
        f"the node calls `{begun.name}` with other params now (they differ in {fields}), "
        "so it is not known to be the same call. Give the call a `key=` that stays the same, such "
        "as the id of what it works on, or the node the params that it had."
    )


def continued_in(saved: list[CheckpointTuple], root: str) -> set[str | None]:
    """Return the namespaces of earlier calls that calls of the fork `root` already continue."""
    return {loop_of(values)["continues"] for values in _made_from(root, saved).values()}


def _made_from(root: str, saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest state of each call made from the checkpoint `root`, by namespace."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        newest.setdefault(namespace_of(checkpoint), checkpoint)
    return {
        namespace: values
        for namespace, checkpoint in newest.items()
        if LOOP in (values := values_of(checkpoint)) and root_of(checkpoint) == root
    }


def _params_if_made_in(values: Mapping[str, Any], begun: Begun) -> dict[str, Any] | None:
    """Return the first params of a saved call; None if its name or its task is different."""
    attempts = records_in(values)
    if not attempts or attempts[-1].get("name", begun.name) != begun.name:
        return None
    same = loop_of(values)["task_path"] == begun.task_path
    return first_params(values, "params") if same else None


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the state update that restores a call's earlier state."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
