"""A thread as it is saved: its calls, its open questions, and the checkpoints that led here.

A view is filled with checkpoints, of each namespace the newest first. Whoever needs the whole
thread adds all of them; whoever needs its open questions adds the newest of each call that asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, cast

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt

from graph_retry._attempts import ledgers_in, records_in
from graph_retry._langgraph.checkpoints import (
    is_answered,
    namespace_of,
    parent_of,
    root_of,
    values_of,
    writers_of,
)
from graph_retry._langgraph.shown import interrupts_shown, namespace_in, questions_of
from graph_retry._namespaces import outermost
from graph_retry._review.clients.ag_ui import INTERVENTION
from graph_retry._state import LOOP, is_open, loop_of
from graph_retry.ledger import Ledger

_WAITS = {"review": True, "end": False}
"""Whether a call waits for a person, by the step that its saved position names."""


def intervention(value: Any) -> dict[str, Any] | None:
    """Return an interrupt's value if it is a question of ours."""
    asked = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return asked if asked.get("type") == INTERVENTION else None


class ThreadView:
    """What is saved of a thread, as far as it was read.

    `newest` and `first` are the checkpoints of each namespace, and `roots` those of the outermost
    graph by id. `shown` are the interrupts that the graph shows; without a graph the newest
    checkpoint of the outermost graph tells them.
    """

    def __init__(self, shown: Sequence[Interrupt] | None = None) -> None:
        self.newest: dict[str, CheckpointTuple] = {}
        self.first: dict[str, CheckpointTuple] = {}
        self.roots: dict[str, CheckpointTuple] = {}
        self._shown = shown
        self._steps: dict[str, int] = {}

    def add(self, saved: CheckpointTuple) -> None:
        """Add the next checkpoint of a namespace, which is older than those before it."""
        namespace, checkpoint_id = namespace_of(saved), saved.checkpoint["id"]
        self.newest.setdefault(namespace, saved)
        self.first[namespace] = saved
        self._steps[checkpoint_id] = saved.metadata.get("step", -1)
        if not namespace:
            self.roots[checkpoint_id] = saved

    @property
    def root(self) -> CheckpointTuple | None:
        """The newest checkpoint of the outermost graph."""
        return self.newest.get("")

    @property
    def interrupts(self) -> list[Interrupt]:
        """The interrupts that the thread shows, whoever raised them."""
        return list(interrupts_shown(self.root) if self._shown is None else self._shown)

    @cached_property
    def questions(self) -> list[tuple[Interrupt, dict[str, Any]]]:
        """The shown questions of ours, each once, with their values.

        One that is asked in a `@task` is shown for the task and for the call in it.
        """
        by_review: dict[str, tuple[Interrupt, dict[str, Any]]] = {}
        for interrupt in self.interrupts:
            value = intervention(interrupt.value)
            if value is not None:
                by_review.setdefault(value["review_id"], (interrupt, value))
        return list(by_review.values())

    def open_questions(self) -> Iterator[tuple[Interrupt, dict[str, Any]]]:
        """Yield the questions of the read calls that can be answered, with their values.

        LangGraph shows a question until its node has ended. By then an answer to it may be written,
        or the call may have continued after a run that was cut off.
        """
        for interrupt, value in self.questions:
            call = self.newest.get(namespace_in(value))
            if call is None or is_answered(call):
                continue
            asked_at, newest = value.get("checkpoint_id"), call.checkpoint["id"]
            values = values_of(call)
            may_wait = LOOP not in values or is_open(values, value["review_id"])
            if may_wait and (asked_at == newest or not (asked_at and newest)):
                yield interrupt, value

    def values(self, namespace: str) -> dict[str, Any]:
        """Return the newest state of a namespace; empty if nothing of it was read."""
        saved = self.newest.get(namespace)
        return {} if saved is None else values_of(saved)

    def calls(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the namespace and the newest state of each call."""
        for namespace in self.newest:
            values = self.values(namespace)
            if LOOP in values:
                yield namespace, values

    def ledgers(self) -> Iterator[Ledger]:
        """Yield the calls, oldest first, each with the checkpoint that its node started from.

        A call has no attempts here if its state is not shown. State also has ledgers of calls whose
        own checkpoints were deleted.
        """
        line, known = self.line(), list[list[str]]()
        for namespace, values in sorted(self.calls(), key=lambda call: self._age(call[0])):
            root = self.root_of(namespace)
            # Nobody forks from a checkpoint that is not kept, as under `durability="exit"`.
            current = root in line or root not in self.roots
            position: Any = values[LOOP] or {}
            waits = _WAITS.get(position.get("next", ""))
            review = loop_of(values)["review"]
            end = self.ended_unanswered.get(review["review_id"]) if review and waits else None
            ended_by: Any = end.metadata.get("source") if end else ""
            waits = waits and not end
            ledger = Ledger(records_in(values), namespace, root, current, waits, ended_by)
            if ledger.attempts or values[LOOP] is None:
                known.append(_keys(ledger))
                yield ledger
        for key, records in ledgers_in(self.values("")):
            ledger = Ledger(records, f"state:{key}")
            # One that is given to a node ends with an attempt that is still to be made.
            if _keys(ledger) not in known and records[-1]["status"] != "running":
                yield ledger

    @cached_property
    def ended_unanswered(self) -> dict[str, CheckpointTuple]:
        """The reviews that a new input or state of the thread ended, by review: that checkpoint."""
        ended: dict[str, CheckpointTuple] = {}
        for root in self.roots.values():
            if root.metadata.get("source") in ("input", "update"):
                for question in questions_of(self.roots.get(parent_of(root))):
                    ended[question.get("review_id", "")] = root
        return ended

    def root_of(self, namespace: str) -> str:
        """Return the checkpoint of the outermost graph that a namespace was begun from."""
        begun = self._begun_from.get(outermost(namespace).id)
        return begun or root_of(self.newest[namespace])

    @cached_property
    def _begun_from(self) -> dict[str, str]:
        """Checkpoints of the outermost graph by the tasks that wrote something there."""
        return {task: root for root, saved in self.roots.items() for task in writers_of(saved)}

    def _age(self, namespace: str) -> tuple[str, str]:
        """Return the key that sorts namespaces by their beginning."""
        return self.first[namespace].checkpoint["id"], root_of(self.newest[namespace])

    def line(self) -> set[str]:
        """Return the root checkpoints that led to the present one, those forked from left out."""
        line: set[str] = set()
        here, after = next(iter(self.roots), ""), ""
        while here in self.roots:
            forked = after and self.roots[after].metadata.get("source") != "loop"
            # A checkpoint that LangGraph copied and its copy have the same parent.
            if not forked or self._steps[after] > self._steps[here] + 1:
                line.add(here)
            here, after = parent_of(self.roots[here]), here
        return line


def _keys(ledger: Ledger) -> list[str]:
    return [record["idempotency_key"] for record in ledger.attempts]
