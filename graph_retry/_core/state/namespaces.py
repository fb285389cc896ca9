"""Parse and build checkpoint namespaces. No other module does this.

LangGraph saves the outermost graph under the empty namespace, and the subgraph of a task under
`node:task_id`. Each further level appends `|node:task_id`. If a task invokes several subgraphs,
LangGraph also appends `|1`, `|2`, and so on. A subgraph that is compiled with `checkpointer=True`
has one history per thread. Its namespace has only nodes, as `outer|node`.

The call of a function is not a node. Therefore graph-retry appends its own part, `|name:identity`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graph_retry.lossless._ground import lazy

CONFIG_NAMESPACE = "checkpoint_ns"
"""LangGraph's key of a namespace in a `configurable`."""

_BETWEEN, _BEFORE_ID = "|", ":"
_OTHER = "__interrupt__:"
_UUID = lazy(r"[0-9a-f-]{36}")
_TASK_ID = lazy(r":[0-9a-f-]{36}(?=\||$)")


class Part(NamedTuple):
    """A part of a namespace: a node and its task's id, or a call's name and identity."""

    name: str
    id: str

    @property
    def is_task(self) -> bool:
        """Whether the part belongs to a task of a graph, not to a call of a function."""
        return _UUID.fullmatch(self.id) is not None

    @property
    def is_node(self) -> bool:
        """Whether the part names a node: `node:task_id`, or `node` with `checkpointer=True`."""
        return self.is_task or not self.id


def namespace_named(configurable: Mapping[str, Any]) -> str:
    """Return the namespace in a `configurable`; empty for the outermost graph."""
    return str(configurable.get(CONFIG_NAMESPACE, ""))


def parts_of(namespace: str) -> list[Part]:
    """Return the parts of a namespace, outermost first, without the numbers of subgraphs.

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


def without_task_ids(namespace: str) -> str:
    """Return a namespace without the ids of tasks, but with the numbers of subgraphs.

    Example:
        >>> without_task_ids("outer:01a202b9-959f-769c-8f43-4d60c3bb9df1|1|ask:9ae2")
        'outer|1|ask:9ae2'
    """
    return _TASK_ID.sub("", namespace)


def tasks_in(namespace: str) -> list[str]:
    """Return the names of the nodes whose tasks are in a namespace, outermost first."""
    return [part.name for part in parts_of(namespace) if part.is_task]


def outermost(namespace: str) -> Part:
    """Return the part of a namespace that names the outermost graph's node and task."""
    return next(iter(parts_of(namespace)), Part("", ""))


def form_of(namespace: str) -> str:
    """Return the kind of the outermost node around a call: a retry node, a subgraph or a function.

    Example:
        >>> task = "01a202b9-959f-769c-8f43-4d60c3bb9df1"
        >>> form_of(f"ask:{task}"), form_of(f"ask:{task}|guide:9ae2")
        ('a retry node', 'a function')
    """
    inner = parts_of(namespace)[1:]
    if not inner:
        return "a retry node"
    return "a subgraph" if any(part.is_node for part in inner) else "a function"


def around(namespace: str) -> str:
    """Return the enclosing namespace: the given namespace without its last part."""
    return namespace.rpartition(_BETWEEN)[0]


def tasks_around(namespace: str) -> Iterator[tuple[str, str]]:
    """Yield each subgraph around a call, with the id of its task that makes the call.

    Example:
        >>> task = "01a202b9-959f-769c-8f43-4d60c3bb9df1"
        >>> list(tasks_around(f"sub|ask:{task}|guide:9ae2"))
        [('sub', '01a202b9-959f-769c-8f43-4d60c3bb9df1')]
    """
    while graph := around(namespace):
        part = parts_of(namespace)[-1]
        if part.is_task and namespace.endswith(part.id):
            yield graph, part.id
        namespace = graph


def moved(namespace: str, task: str) -> str:
    """Return the namespace of the same call in a different task of its node."""
    return f"{task}{_BETWEEN}{namespace.rpartition(_BETWEEN)[2]}"


def task_namespace(namespace: str, name: str, task_id: str) -> str:
    """Return the namespace of a subgraph that a task of the graph at `namespace` runs."""
    return f"{namespace}{_BETWEEN}{name}{_BEFORE_ID}{task_id}".removeprefix(_BETWEEN)


def call_namespace_of(task: str, name: str, identity: str) -> str:
    """Return the namespace of a call's state.

    Example:
        >>> call_namespace_of("ask:1f0", "guide", "9ae2"), call_namespace_of("ask:1f0", "a|b", "9")
        ('ask:1f0|guide:9ae2', 'ask:1f0|a%7Cb:9')
    """
    return f"{namesakes(task, name)}{identity}"


def namesakes(task: str, name: str) -> str:
    """Return the prefix of the namespaces of all calls with this name in a task."""
    spelled = name.replace("%", "%25").replace(_BETWEEN, "%7C").replace(_BEFORE_ID, "%3A")
    return f"{task}{_BETWEEN}{spelled}{_BEFORE_ID}"


def namespace_of_other(interrupt_id: str) -> str:
    """Make up a namespace for another library's question, because this question has no call."""
    return f"{_OTHER}{interrupt_id}"


def is_of_other(namespace: str) -> bool:
    """Return whether a namespace is one that `namespace_of_other` made for another library.

    Example:
        >>> is_of_other(namespace_of_other("8c99")), is_of_other("ask:1f0|guide:9ae2")
        (True, False)
    """
    return namespace.startswith(_OTHER)


def are_namesakes(one: str, other: str) -> bool:
    """Return whether two namespaces belong to calls of the same name and task."""
    return one.rpartition(_BEFORE_ID)[0] == other.rpartition(_BEFORE_ID)[0]
