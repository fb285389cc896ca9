"""The namespaces of checkpoints: the one place that reads and writes them.

LangGraph saves the outermost graph under the empty namespace, and a graph inside a task under
`node:task_id`. Inside that graph, a part for each further task follows after `|`. If a task invokes
several graphs, a part that is a number follows. Ids are UUIDs. Found in `langgraph.pregel._algo`
and in the checkpoints of nested graphs.

A call of a function is no node. So the last part of its namespace is ours: its name and identity.
"""

from __future__ import annotations

from typing import NamedTuple

from graph_retry._patterns import lazy

_BETWEEN, _BEFORE_ID = "|", ":"
_UUID = lazy(r"[0-9a-f-]{36}")


class Part(NamedTuple):
    """A part of a namespace: the name of a node or call, and the id of its task or its identity."""

    name: str
    id: str

    @property
    def is_task(self) -> bool:
        """Whether the part is of a task of a graph, and not of a call of a function."""
        return _UUID.fullmatch(self.id) is not None


def parts_of(namespace: str) -> list[Part]:
    """Return the parts of a namespace, from the outermost on, numbers left out.

    Example:
        >>> [part.name for part in parts_of("outer:1f0|ask:2e4|1")]
        ['outer', 'ask']
    """
    parts = namespace.split(_BETWEEN) if namespace else []
    return [
        Part(*part.rpartition(_BEFORE_ID)[::2]) if _BEFORE_ID in part else Part(part, "")
        for part in parts
        if not part.isdigit()
    ]


def outermost(namespace: str) -> Part:
    """Return the node and the task of the outermost graph that a namespace is in."""
    return next(iter(parts_of(namespace)), Part("", ""))


def around(namespace: str) -> str:
    """Return the namespace that encloses the given one."""
    return namespace.rpartition(_BETWEEN)[0]


def moved(namespace: str, task: str) -> str:
    """Return the namespace that a call has in another task of its node."""
    return f"{task}{_BETWEEN}{namespace.rpartition(_BETWEEN)[2]}"


def task_namespace(namespace: str, name: str, task_id: str) -> str:
    """Return the namespace of a graph that runs in a task of the graph with this namespace."""
    return f"{namespace}{_BETWEEN}{name}{_BEFORE_ID}{task_id}".removeprefix(_BETWEEN)


def call_namespace_of(task: str, name: str, identity: str, number: int = 0) -> str:
    """Return the namespace of a call's state; `number` counts equal calls of one task.

    Example:
        >>> of = call_namespace_of
        >>> of("ask:1f0", "guide", "9ae2"), of("ask:1f0", "a|b", "9ae2", 1)
        ('ask:1f0|guide:9ae2', 'ask:1f0|a%7Cb:9ae2.1')
    """
    return f"{namesakes(task, name)}{identity}{f'.{number}' if number else ''}"


def namesakes(task: str, name: str) -> str:
    """Return the common beginning of the namespaces of a task's calls of one name."""
    spelled = name.replace("%", "%25").replace(_BETWEEN, "%7C").replace(_BEFORE_ID, "%3A")
    return f"{task}{_BETWEEN}{spelled}{_BEFORE_ID}"


def are_namesakes(one: str, other: str) -> bool:
    """Tell whether two namespaces are of calls with one name, made in one task."""
    return one.rpartition(_BEFORE_ID)[0] == other.rpartition(_BEFORE_ID)[0]
