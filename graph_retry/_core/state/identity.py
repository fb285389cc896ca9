"""Find the identity of a call, which distinguishes the call from other calls of its task.

The identity of a call is a digest of its `key`. Without a key, it is a digest of the first params,
so calls with different params are different calls. The namespace of a saved call contains its task,
its name, its identity and, among equal calls, its number. Therefore one exact lookup finds a saved
call, in whatever order the node makes its calls.

If a crash ends a graph before its first step, the only saved state is the graph's input, under the
channel `START`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from langgraph.graph import START
from langgraph.types import Command

from graph_retry._core.ground.held.captured import Captured
from graph_retry._core.ground.json import digest, is_object, pointer_parts
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.params.fields import fields_of
from graph_retry._core.params.patch import Encoded
from graph_retry._core.state.attempts import params_at, readable, records_in
from graph_retry._core.state.position import LOOP, Loop, fresh_loop, loop_of


def identity_of(params: Encoded, key: str | None = None) -> str:
    """Return a call's identity: a digest of its key, or of its first params."""
    return digest(*params) if key is None else digest(key)


def changed_fields(before: Encoded, params: Encoded | None) -> str:
    """Name the top-level fields in which two params differ; "" if none differs.

    Example:
        >>> before = Encoded({"city": "Rome", "at": 1}, {})
        >>> changed_fields(before, Encoded({"city": "Rome", "at": 2}, {}))
        '`at`'
        >>> changed_fields(before, Encoded({"city": "Rome", "at": 1.0}, {}))
        'the type of `at`'
    """
    after = params or Encoded({}, {})
    names = dict.fromkeys([*before.view, *after.view])
    pairs = {name: (before.view.get(name, ...), after.view.get(name, ...)) for name in names}
    changed = [f"`{name}`" for name, (one, other) in pairs.items() if one != other]
    kinds = before.types.items() ^ after.types.items()
    typed = {pointer_parts(path)[0] if path else "" for path, _ in kinds}
    # 1, 1.0 and True are equal to Python.
    typed |= {name for name, (one, other) in pairs.items() if digest([one]) != digest([other])}
    changed += [f"the type of `{name}`" for name in sorted(typed) if f"`{name}`" not in changed]
    return ", ".join(changed)


def first_params(values: Mapping[str, Any]) -> Encoded | None:
    """Return the first params of a saved call; None if `values` is not a call's state."""
    values = values.get(START) or values
    loop, first = loop_of(values), params_at(readable(records_in(values)), 1)
    if first is not None and loop["given"] is None:
        return first
    view = loop["given"] or values.get("params")
    return None if view is None else Encoded(view, loop["types"])


@dataclass(frozen=True, kw_only=True)
class Made:
    """A call that a function or a retry node is about to make.

    name, key: The call's name, and the option `key`, which may be None.
    keys: The names of the state keys.
    llm_call: The user's function.
    thread: The id of the thread; empty outside any thread.
    given: The input of the loop. If a function makes the call, this input has encoded params.
    task_path: The path of nodes that leads to the task, without ids; None if unknown.
    is_task: Whether the task is a retry node that LangGraph runs. Such a task has only one call.
        The call can continue even if its input does not contain the params.
    """

    name: str
    key: str | None
    keys: Mapping[str, str]
    codec: ParamsCodec[Any]
    llm_call: Any
    thread: str
    given: Any
    task_path: str | None
    is_task: bool

    @cached_property
    def values(self) -> Mapping[str, Any] | None:
        """The input by state key; None if the input is `None` or a `Command`.

        The `attempts` of an earlier call that ended as `exhausted` are left out, because the new
        call begins at attempt 1.
        """
        if self.given is None or isinstance(self.given, Command):
            return None
        values: Mapping[str, Any] = fields_of(self.given)
        if not is_object(self.given):
            values = {key: item for key, item in values.items() if item is not None}
        status, attempts = self.keys["status"], self.keys["attempts"]
        if values.get(status) == "exhausted" and not _asks_for_more(values.get(attempts)):
            values = {**values, attempts: []}
        return values if values or is_object(self.given) else None

    @cached_property
    def identity(self) -> str | None:
        """The identity of the call; None if its params are not known.

        For a retry node that user code invokes, the identity ignores default params, because a
        `default_factory` may return a new value in each run.
        """
        if self.values is None or self.params is None:
            return None
        if LOOP in self.values:
            return str(self.values[LOOP]["identity"])
        as_known = self.params if self.is_task else self.codec.given(*self._as_given(self.values))
        return identity_of(as_known)

    @cached_property
    def params(self) -> Encoded | None:
        """The encoded first params of the call; None if the input does not contain them.

        Raises:
            TypeError, ValueError: If the params cannot be encoded, and the call is not the only
                call of its task.
        """
        if self.values is None:
            return None
        if (loop := self.values.get(LOOP)) is not None:
            return Encoded(self.values[self.keys["params"]], loop["types"])
        try:
            return self.codec.load(*self._as_given(self.values))
        except (TypeError, ValueError):
            # A saved call uses its saved params. A new call raises the error in its step `call`.
            if not self.is_task:
                raise
            return None

    @cached_property
    def function(self) -> Captured | None:
        """The user's function with the values that it holds; None if they are not needed.

        The values are not needed if a key identifies the call, or if LangGraph runs the retry node,
        because then the task identifies the call.
        """
        if self.key is not None or self.is_task:
            return None
        return Captured(self.llm_call, self.thread)

    def _as_given(self, values: Mapping[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return the params in the input, and the types of their parts.

        The types are known only if the last attempt of the input still has to be made or reviewed.
        """
        attempts: Sequence[Mapping[str, Any]] = values.get(self.keys["attempts"]) or []
        types: dict[str, str] = attempts[-1]["params_types"] if _asks_for_more(attempts) else {}
        return values.get(self.keys["params"]), types

    def first_state(self, waits: Loop | None = None) -> Any:
        """Return the input for the first checkpoint, with encoded params and the call's identity.

        `waits` is the saved state of a loop that already waits for a person. If the params cannot
        be encoded, the input still has the key `LOOP`.
        """
        if self.values is None:
            return self.given
        function = self.function and self.function.saved()
        if LOOP in self.values:
            return {**self.values, LOOP: {**self.values[LOOP], "function": function}}
        loop = {**(waits or fresh_loop()), "identity": self.identity, "function": function}
        if self.params is None:
            return {**self.values, LOOP: loop}
        loop["types"] = self.params.types
        return {**self.values, self.keys["params"]: self.params.view, LOOP: loop}


def _asks_for_more(attempts: Sequence[Mapping[str, Any]] | None) -> bool:
    """Return whether the last attempt of an input still has to be made or reviewed."""
    last: Mapping[str, Any] = attempts[-1] if attempts else {}
    return last.get("status") == "running" or bool(last.get("to_review"))
