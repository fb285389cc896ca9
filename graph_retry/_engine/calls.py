"""Find the saved state of a call: the calls of one task, told apart by what they are.

LangGraph names the graphs that a task invokes by a counter, so that calls which start in another
order would find each other's state. Here each call of a name has a namespace of its own, and which
saved one a call continues is decided by its identity. The saved ones are read once when a task
begins to run, and remembered for as long as it runs.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from langgraph.checkpoint.base import BaseCheckpointSaver

from graph_retry._awaiting import wait
from graph_retry._engine.checkpoints import newest_checkpoint
from graph_retry._engine.fork import past_of
from graph_retry._engine.identity import Choice, Saved, changed_fields, choose, identity_of
from graph_retry._engine.run_config import (
    is_in_own_flow,
    may_be_resumed,
    node_attempt,
    saver_in,
    scratchpad_in,
)
from graph_retry._engine.saved_state import old_calls, saved_call
from graph_retry._params.codec import Encoded
from graph_retry.errors import ReplayMismatch
from graph_retry.options import Settings


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call as it is made, by a retry node (`is_node`) or by a function.

    `identity` is what it is known by, beside its task (at `task_path`) and name. A node that
    `is_task`, not run by code of another node, makes the only call of its task.
    """

    settings: Settings
    params: Encoded
    identity: str
    task_path: str
    is_node: bool
    is_task: bool

    def namespace(self, task: str, number: int) -> str:
        """Return where the state of such a call is saved; a retry node has its task's namespace."""
        if self.is_node and number == 0:
            return task
        name, key = _spelled(self.settings.name), self.settings.key
        label = f"{name}:" if key is None else f"{name}:{_spelled(key)}."
        return f"{task}|{label}{number}"


@dataclass(frozen=True)
class Slot:
    """Where the state of a call is, or is to be, and what the call is known by there.

    `past` is its state from before a fork. `turn` is to be ended when the call has saved something,
    so that the next call of its name can have a namespace. `at_rest` is to be done when its run has
    ended; `beside` has those of all calls of the same execution.
    """

    namespace: str
    identity: str
    past: dict[str, Any] | None
    turn: Turn
    beside: WeakSet[Future[None]]
    at_rest: Future[None]

    def end(self) -> None:
        """Note that the run of the call has ended, perhaps before anything was saved."""
        self.turn.end(saved=False)
        if not self.at_rest.done():
            self.at_rest.set_result(None)


class Turn:
    """The right of one call at a time to take the next namespace of its name."""

    def __init__(self, calls: _Calls) -> None:
        self._calls, self._lock = calls, threading.Lock()
        self.took_one = False
        self.done: Future[None] = Future()

    def end(self, *, saved: bool) -> None:
        """Let the next call go on, and have the namespace if nothing was `saved` in it."""
        with self._lock:
            if not self.done.done():
                self._calls.begun -= self.took_one and not saved
                self.done.set_result(None)

    def give_up(self, before: Turn | None) -> None:
        """Leave the queue without having had the turn."""
        if before is None:
            self.end(saved=False)
        else:
            before.done.add_done_callback(lambda _: self.end(saved=False))


@dataclass
class _Calls:
    """What one execution of a task knows of its calls of one name.

    `saved` are those of earlier executions, `numbered` of them as this version does it; `taken`
    tells which of them go on, and as what; `begun` counts the new ones.
    """

    saved: list[tuple[str, Saved]] | None = None
    numbered: int = 0
    taken: dict[int, str] = field(default_factory=dict[int, str])
    begun: int = 0
    params_of_key: str | None = None
    last: Turn | None = None


@dataclass
class _Execution:
    """What one execution of a task knows of the calls it makes."""

    calls: dict[tuple[str, str | None, bool], _Calls] = field(
        default_factory=lambda: defaultdict(_Calls)
    )
    running: WeakSet[Future[None]] = field(default_factory=WeakSet[Future[None]])


_lock = threading.Lock()
_executions: WeakKeyDictionary[Any, dict[int, _Execution]] = WeakKeyDictionary()


async def find_slot(made: Made, configurable: Mapping[str, Any]) -> Slot | None:
    """Return where the state of a call is, or None where LangGraph's own naming has to do.

    Raises:
        ReplayMismatch: If the call may or may not be one that is saved.
        ValueError: If its key names a call with other params, too.
    """
    saver, scratchpad = saver_in(configurable), scratchpad_in(configurable)
    if saver is None or scratchpad is None:
        return None
    with _lock:
        # A retry policy runs a node again with the scratchpad it had.
        known = _executions.setdefault(scratchpad.get_null_resume, defaultdict(_Execution))
        execution = known[node_attempt(configurable)]
        calls = execution.calls[made.settings.name, made.settings.key, made.is_node]
        before, turn = calls.last, Turn(calls)
        calls.last = turn
    with ExitStack() as undo:
        undo.callback(turn.give_up, before)
        if before is not None:
            await wait(before.done)
        if calls.saved is None:
            saved = await _read_numbered(made, configurable, saver)
            calls.numbered = len(saved)
            # Threads of version 1 are read as they were saved.
            if not made.is_node and made.settings.key is None and may_be_resumed(configurable):
                saved += await old_calls(saver, configurable, made.settings.name)
            calls.saved = saved
        identity, namespace = _chosen(made, calls, configurable["checkpoint_ns"], turn)
        past: dict[str, Any] | None = None
        if turn.took_one:
            who = {"task": made.task_path, "name": made.settings.name, "identity": made.identity}
            past = await past_of(configurable, saver, **who)
        slot = Slot(namespace, identity, past, turn, execution.running, Future())
        execution.running.add(slot.at_rest)
        undo.pop_all()
    return slot


async def _read_numbered(
    made: Made, configurable: Mapping[str, Any], saver: BaseCheckpointSaver[Any]
) -> list[tuple[str, Saved]]:
    """Read what the task has saved of calls of this name."""
    saved: list[tuple[str, Saved]] = []
    params_key = made.settings.keys["params"]
    for number in count():
        namespace = made.namespace(configurable["checkpoint_ns"], number)
        newest = await newest_checkpoint(saver, str(configurable["thread_id"]), namespace)
        call = newest and saved_call(newest.checkpoint["channel_values"], params_key)
        if call is None:
            break
        saved.append((namespace, call))
    return saved


def _chosen(made: Made, calls: _Calls, task: str, turn: Turn) -> tuple[str, str]:
    """Decide which saved call this is, or that it is new; return its identity and namespace."""
    assert calls.saved is not None  # noqa: S101
    identity, name, key = made.identity, made.settings.name, made.settings.key
    if key is not None:
        params_now = identity_of(*made.params)
        if calls.params_of_key not in (None, params_now):
            raise ValueError(
                f"`key={key!r}` names two calls of `{name}` with different params in one "
                "node: give each call a key of its own."
            )
        calls.params_of_key = params_now
    saved = [call for _, call in calls.saved]
    first = not calls.taken and not calls.begun
    if made.is_task and first and len(saved) == 1:
        choice = Choice(0)
    else:
        alone = first and bool(saved) and is_in_own_flow()
        choice = choose(identity, made.params.view, saved, calls.taken, alone=alone)
    if choice.doubt is not None:
        fields = changed_fields(saved[choice.doubt].params, made.params.view)
        raise ReplayMismatch(_doubt(name, fields))
    if choice.number is not None:
        calls.taken[choice.number] = identity
        turn.end(saved=True)
        namespace, call = calls.saved[choice.number]
        return call.identity, namespace
    namespace = made.namespace(task, calls.numbered + calls.begun)
    calls.begun += 1
    turn.took_one = True
    return identity, namespace


def _doubt(name: str, fields: list[str]) -> str:
    differ = ", ".join(f"`{field}`" for field in fields)
    what = f"they differ in {differ}" if fields else "another call with its params took its place"
    return (
        f"`{name}` may or may not be a call that this task has saved: {what}. Nothing was called. "
        "Give each call of this name a `key=` of its own that stays the same whenever the node "
        "runs again, such as the id of what it works on."
    )


def _spelled(name: str) -> str:
    """Write a name as a part of a namespace, in which `|` and `:` have a meaning."""
    return name.replace("%", "%25").replace("|", "%7C").replace(":", "%3A")
