"""The id LangGraph will give a task that moves to another checkpoint or namespace.

It is a hash of the checkpoint, the namespace, the step, the node's name and how the task came
about. LangGraph has no call that tells it, so the rule is held against the task's present id first:
a LangGraph with another rule is noticed, and nothing is written under a wrong name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from xxhash import xxh3_128_hexdigest

_PULL, _PUSH = "__pregel_pull", "__pregel_push"
MOST = 4096
"""Tasks of one origin that are told apart."""


Path = tuple[Any, ...]


class Place(NamedTuple):
    """Where a task runs: in the step after which checkpoint, in which namespace."""

    checkpoint_id: str
    step: int
    namespace: str


class Moved(NamedTuple):
    """A task after a move: its new id, the path it had and the one it has."""

    task_id: str
    old_path: Path
    path: Path


def moved_task(
    name: str, task_id: str, was: Place, becomes: Place, channels: Iterable[str], caller: Moved
) -> Moved:
    """Return what becomes of a task.

    Args:
        name: The node or function.
        task_id: The task's present id.
        was: Where it ran.
        becomes: Where it will run.
        channels: The channels of the graph it is a node of, if that is known.
        caller: The task around it, which may have called it.

    Raises:
        ValueError: If the present id does not follow from what is known.
    """
    for old, new in _origins(name, channels, caller):
        if _id_of(name, was, old[0]) == task_id:
            return Moved(_id_of(name, becomes, new[0]), old[1], new[1])
    raise ValueError(
        f"the task `{name}` ({task_id}) cannot be taken along: this version of LangGraph names "
        "tasks in another way. Fork the graph before the node (`get_state_history`, "
        "`update_state`)."
    )


def called_task(name: str, place: Place, path: Path, index: int) -> str:
    """Return the id of the task that a node or function at `path` called as its `index`-th."""
    return _id_of(name, place, (_PUSH, spelled(path), str(index)))


def path_of(name: str, task_id: str, place: Place) -> Path:
    """Return the path of a task that nobody called: its node, unless it was sent there."""
    for index in range(MOST):
        if _id_of(name, place, (_PUSH, str(index))) == task_id:
            return _PUSH, index
    return _PULL, name


_Origin = tuple[tuple[str, ...], Path]


def _origins(
    name: str, channels: Iterable[str], caller: Moved
) -> Iterator[tuple[_Origin, _Origin]]:
    """Yield what a task can have come from, before and after: an edge, a `Send` or a call."""
    joins = (each for each in channels if each.endswith(f":{name}"))
    edges = sorted({f"branch:to:{name}", *joins})
    for triggers in (edges, ["__start__"]):
        edge: _Origin = (_PULL, *triggers), (_PULL, name)
        yield edge, edge
    for place in range(MOST):
        sent: _Origin = (_PUSH, str(place)), (_PUSH, place)
        yield sent, sent
        old, new = (
            ((_PUSH, spelled(path), str(place)), (_PUSH, path, place, True)) for path in caller[1:]
        )
        yield old, new


def spelled(path: Any) -> str:
    """Return a task's path as text, as checkpoint savers are given it."""
    if isinstance(path, int):
        return f"{path:010d}"
    return path if isinstance(path, str) else f"~{', '.join(map(spelled, path))}"


def _id_of(name: str, place: Place, origin: tuple[str, ...]) -> str:
    namespace = f"{place.namespace}|{name}" if place.namespace else name
    text = "".join((namespace, str(place.step), name, *origin))
    return str(UUID(xxh3_128_hexdigest(UUID(place.checkpoint_id).bytes + text.encode())))
