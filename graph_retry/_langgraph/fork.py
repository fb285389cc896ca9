"""Fork a thread, such that its calls take up their own past.

A fork gives its tasks new ids, under which nothing of theirs is saved. So the copied checkpoint
says which one was forked, and each call that begins in a task of the copy looks for itself among
the calls that were made from there. LangGraph notes the checkpoint of the outermost graph in their
metadata, as `parents`. Found by comparing the checkpoints of a thread before and after a fork.
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
from graph_retry._going_back import REFUSED, REWIND, reopened
from graph_retry._langgraph.checkpoints import (
    list_checkpoints,
    namespace_of,
    place_of,
    read_checkpoint,
    root_of,
    thread_id_of,
    values_of,
)
from graph_retry._langgraph.identity import changed_fields, first_params
from graph_retry._namespaces import parts_of
from graph_retry._params.codec import Encoded
from graph_retry._state import ANSWER, LOOP, Loop, loop_of

COPY = "__copy__"
"""The node in whose name LangGraph repeats a checkpoint as the newest one of its thread."""

_FORK = "graph_retry_fork"
"""Where a fork is noted: in the metadata of LangGraph's copy of a checkpoint, as JSON.

On a server, which takes no metadata, it is in the `configurable` of the run: a list with the JSON.
A plain string would be copied into each checkpoint.
"""

_NODE = int.from_bytes(b"grfork")
"""The last 48 bits of the id of such a copy, which are random in others.

So a call that begins reads the checkpoint around it, with all of the user's state, only in a fork.
"""


class _ForkNote(TypedDict):
    """The note of a fork for the calls that run in it.

    `root` is the forked checkpoint of the outermost graph. If there is an `answer`, the call that
    is saved at `call` is resumed with it.
    """

    root: str
    call: str
    answer: dict[str, Any] | None


def fork_note(root: str, call: str = "", answer: dict[str, Any] | None = None) -> str:
    """Return the note for the calls of a fork of the checkpoint `root`."""
    fork: _ForkNote = {"root": root, "call": call, "answer": answer}
    return json.dumps(fork)


def forked_config(config: RunnableConfig, note: str) -> RunnableConfig:
    """Return the config for a run on a server that goes on from a fork."""
    there = {**config.get("configurable", {}), _FORK: [note]}
    return cast("RunnableConfig", {**config, "configurable": there})


async def put_fork(saver: BaseCheckpointSaver[Any], old: RunnableConfig, note: str) -> str:
    """Repeat a checkpoint as the newest one of its thread, as LangGraph does, and note the fork.

    One write does both, so that whoever runs the thread on, after a crash, too, knows of the fork.
    Returns the id of the copy.
    """
    saved = await read_checkpoint(saver, old)
    if saved is None:
        raise ValueError(f"{REFUSED}the checkpoint it goes back to is gone.")
    own_id = str(uuid6(node=_NODE, clock_seq=-2))  # otherwise made in LangGraph's way
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
    """Return the checkpoint of the outermost graph that a task was begun from."""
    return str(configurable.get("checkpoint_map", {}).get("", ""))


def task_path(caller: RunnableConfig) -> str:
    """Return the path of a task through its graphs, without its id."""
    parts = parts_of(str(caller.get("configurable", {}).get("checkpoint_ns", "")))
    steps = "|".join(part.name for part in parts)
    return f"{steps} {json.dumps(caller.get('metadata', {}).get('langgraph_path'))}"


class Begun(NamedTuple):
    """A call that begins: its own place, the task that makes it, its name and first params."""

    namespace: str
    task_path: str
    name: str
    params: Encoded | None


async def past_of(
    configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any], begun: Begun
) -> dict[str, Any] | None:
    """Return the state of a call before the fork that its run starts from, if it had one.

    Its namespace is the same but for the ids of tasks. Where an inner loop made several such calls
    they are taken in order: each new one notes in its state which one it continues.

    Raises:
        ValueError: If a call was to be rewound, and the node calls with other params in its stead.
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
        if not 1 <= number <= made:  # the client may not have known the ledger
            raise ValueError(f"{REFUSED}`attempt` is {number}, and the call has {made}.")
        again: Loop = {**reopened(values), "continues": place}
        return {**values, LOOP: again, ANSWER: {"value": fork["answer"]}}
    # Its text is read again, because a fork cannot begin between two steps.
    following = loop_of(values)["next"]
    following = "repair" if following == "validate" else following
    return {**values, LOOP: {**loop_of(values), "next": following, "continues": place}}


def _refuse(made_with: Mapping[str, Any], begun: Begun) -> NoReturn:
    """Refuse a new call where another of its name is to be rewound, before anything is paid."""
    changed = changed_fields(made_with, begun.params.view if begun.params else {})
    fields = ", ".join(f"`{field}`" for field in changed) or "their types"
    raise ValueError(
        f"{REFUSED}the node calls `{begun.name}` with other params now (they differ in {fields}), "
        "so it is not known to be the same call. Give the call a `key=` that stays the same, such "
        "as the id of what it works on, or the node the params that it had."
    )


def continued_in(saved: list[CheckpointTuple], root: str) -> set[str | None]:
    """Return which calls those continue that were made from a fork."""
    return {loop_of(values)["continues"] for values in _made_from(root, saved).values()}


def _made_from(root: str, saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest states of the calls that were made from a checkpoint, by namespace."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        newest.setdefault(namespace_of(checkpoint), checkpoint)
    return {
        namespace: values
        for namespace, checkpoint in newest.items()
        if LOOP in (values := values_of(checkpoint)) and root_of(checkpoint) == root
    }


def _params_if_made_in(values: Mapping[str, Any], begun: Begun) -> dict[str, Any] | None:
    """Return the first params of the call with this state, if it is of this name and task."""
    attempts = records_in(values)
    if not attempts or attempts[-1].get("name", begun.name) != begun.name:
        return None
    same = loop_of(values)["task_path"] == begun.task_path
    return first_params(values, "params") if same else None


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the update that makes a past state the present one."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
