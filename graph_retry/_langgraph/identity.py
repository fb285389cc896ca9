"""The identity of a call, and the namespace of its state. These are pure rules.

A call is known by the task of the node that makes it, by its name, by its `key` or else its first
params as encoded, and by a number among equal calls. All of these are in its namespace. So a saved
call is found by one exact lookup, in whatever order calls start, and a call with other params is
another call: likeness decides nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph_retry._json import digest
from graph_retry._params.codec import Encoded


def identity_of(params: Encoded, key: str | None = None) -> str:
    """Return the identity of a call within its task and name: a digest of its key or params."""
    return digest(*params) if key is None else digest(key)


def namespace_of(task: str, name: str, identity: str, number: int = 0) -> str:
    """Return the namespace of a call's state; `number` counts equal calls of one task.

    Example:
        >>> namespace_of("ask:1f0", "guide", "9ae2"), namespace_of("ask:1f0", "a|b", "9ae2", 1)
        ('ask:1f0|guide:9ae2', 'ask:1f0|a%7Cb:9ae2.1')
    """
    return f"{namesakes(task, name)}{identity}{f'.{number}' if number else ''}"


def namesakes(task: str, name: str) -> str:
    """Return the common beginning of the namespaces of a task's calls of one name."""
    # In a namespace `|` and `:` have a meaning.
    spelled = name.replace("%", "%25").replace("|", "%7C").replace(":", "%3A")
    return f"{task}|{spelled}:"


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """List the top-level fields two params differ in.

    Example:
        >>> changed_fields({"city": "Rome", "at": 1}, {"city": "Rome", "at": 2})
        ['at']
    """
    names = dict.fromkeys([*before, *after])
    return [name for name in names if before.get(name, ...) != after.get(name, ...)]
