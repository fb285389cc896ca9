"""The `ThreadView`: the calls and open questions in the checkpoints that were read from a thread.

Add the checkpoints to the view newest first within each namespace. For ledgers, add all
checkpoints. For open questions, the newest checkpoint of each call that asks is enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt

from graph_retry._core.langgraph.open_questions import (
    ShownQuestion,
    interventions,
    namespace_in,
    questions_at,
    questions_of,
    value_in,
)
from graph_retry._core.langgraph.storage.checkpoints import (
    is_answered,
    line_of,
    namespace_of,
    root_of,
    source_of,
    unapplied_answer,
    values_of,
    writers_of,
)
from graph_retry._core.state.namespaces import outermost, tasks_around
from graph_retry._core.state.position import LOOP, is_open, loop_of

_REPLACING = ("update", "fork")
"""The `source` of checkpoints that start new tasks, even if earlier tasks still wait."""


class Asked(NamedTuple):
    """A question that a thread shows, with the newest checkpoint of the call that asks it.

    `value` is the interrupt's value. `call` is the checkpoint of the call `name` in `namespace`.
    """

    interrupt_id: str
    review_id: str
    name: str
    namespace: str
    value: dict[str, Any]
    call: CheckpointTuple

    @property
    def is_open(self) -> bool:
        """Whether the question can be answered.

        LangGraph shows a question until its node ends. The question cannot be answered if it has a
        saved answer, or if a run that crashed has continued the call.
        """
        values = values_of(self.call)
        may_wait = LOOP not in values or is_open(values, self.review_id)
        return may_wait and not is_answered(self.call)

    @property
    def unapplied(self) -> dict[str, Any] | None:
        """The answer that `resume` has saved and no run has applied yet, or None."""
        return unapplied_answer(self.call, self.review_id)

    @property
    def is_saved(self) -> bool:
        """Whether the call's checkpoint exists and can be read."""
        return bool(self.call.checkpoint["id"])


class ThreadView:
    """The checkpoints that were read from a thread, and the questions and calls in them.

    `newest` and `first` have the newest and the oldest checkpoint of each namespace. `roots` has
    the checkpoints of the outermost graph by id. `shown` has the interrupts in a state of the
    graph, and `shown_at` is the time of this state. If `shown` is None, the interrupts are read
    from the newest root.
    """

    def __init__(
        self, shown: Sequence[Interrupt] | None = None, shown_at: str | None = None
    ) -> None:
        self.newest: dict[str, CheckpointTuple] = {}
        self.first: dict[str, CheckpointTuple] = {}
        self.roots: dict[str, CheckpointTuple] = {}
        self._shown, self._shown_at = shown, shown_at

    def add(self, saved: CheckpointTuple) -> None:
        """Add a checkpoint. It must be older than all checkpoints of its namespace in this view."""
        namespace = namespace_of(saved)
        self.newest.setdefault(namespace, saved)
        self.first[namespace] = saved
        if not namespace:
            self.roots[saved.checkpoint["id"]] = saved

    @property
    def root(self) -> CheckpointTuple | None:
        """The newest checkpoint of the outermost graph."""
        return self.newest.get("")

    @cached_property
    def questions(self) -> list[ShownQuestion]:
        """The questions that the thread shows, one for each review, also of other libraries."""
        root = self.root
        at = root.checkpoint["ts"] if self._shown is None and root else self._shown_at
        read = partial(value_in, at=at)
        if self._shown is not None:
            shown = [ShownQuestion(*each) for each in interventions(self._shown, read)]
        else:
            # LangGraph may show a question in a `@task` twice.
            shown = sorted(questions_at(root, read), key=attrgetter("is_apart"))
        by_review: dict[str, ShownQuestion] = {}
        for question in shown:
            by_review.setdefault(question.value["review_id"], question)
        return list(by_review.values())

    def asked(self) -> list[Asked]:
        """Return the shown questions that are still the newest question of their call."""
        found: list[Asked] = []
        for interrupt, value, is_apart in self.questions:
            namespace, asked_at = namespace_in(value), value.get("checkpoint_id")
            call = self.newest.get(namespace)
            newest = "" if call is None else call.checkpoint["id"]
            is_newest = asked_at == newest or not (asked_at and newest)
            is_left = self.left_at(namespace) is not None
            if call is not None and is_newest and not (is_left or (is_apart and newest)):
                whose = value["review_id"], value["function_name"], namespace
                found.append(Asked(interrupt.id, *whose, value, call))
        return found

    def values(self, namespace: str) -> dict[str, Any]:
        """Return the newest state of a namespace; empty if the view has no checkpoint of it."""
        saved = self.newest.get(namespace)
        return {} if saved is None else values_of(saved)

    def calls(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the namespace and the newest state of each call."""
        for namespace in self.newest:
            values = self.values(namespace)
            if LOOP in values:
                yield namespace, values

    def waiting(self) -> dict[str, str]:
        """Return the review ids of the calls that still wait for a person, by call namespace."""
        head = "" if self.root is None else self.root.checkpoint["id"]
        return {
            namespace: review["review_id"]
            for namespace, values in self.calls()
            if (review := loop_of(values)["review"]) and is_open(values, review["review_id"])
            if not self.root_of(namespace) or head <= self.root_of(namespace)
            if self.left_at(namespace) is None
        }

    def left_at(self, namespace: str) -> CheckpointTuple | None:
        """Return the checkpoint that dropped the task of a call from its subgraph, or None.

        For example, `update_state` on the subgraph saves such a checkpoint, although the outer
        graph may still show the question of the call.
        """
        for graph, task in tasks_around(namespace):
            saved = self.newest.get(graph)
            if saved and source_of(saved) in _REPLACING and task not in writers_of(saved):
                return saved
        return None

    @cached_property
    def ended_unanswered(self) -> dict[str, CheckpointTuple]:
        """The checkpoint that ended a review without an answer, by review id.

        An input, an update, or a fork that does not ask the review again saves such a checkpoint.
        """
        ended: dict[str, CheckpointTuple] = {}
        asked = list[str]()
        for _, root in sorted(self.roots.items()):
            if source_of(root) != "loop":
                ended |= dict.fromkeys(asked, root)
            asked = [question.get("review_id", "") for question in questions_of(root)]
            for review_id in asked:
                ended.pop(review_id, None)
        for namespace, values in self.calls():
            review, left = loop_of(values)["review"], self.left_at(namespace)
            if review and left and is_open(values, review["review_id"]):
                ended.setdefault(review["review_id"], left)
        return ended

    def root_of(self, namespace: str) -> str:
        """Return the id of the root (see `roots`) from which the calls in a namespace were made."""
        begun = self._begun_from.get(outermost(namespace).id)
        return begun or root_of(self.newest[namespace])

    @cached_property
    def _begun_from(self) -> dict[str, str]:
        """For each task id, the id of the root whose pending writes have this task."""
        return {task: root for root, saved in self.roots.items() for task in writers_of(saved)}

    def age(self, namespace: str) -> tuple[str, str]:
        """Return a key to sort namespaces by age: the ids of the first checkpoint and the root."""
        return self.first[namespace].checkpoint["id"], root_of(self.newest[namespace])

    @cached_property
    def line(self) -> dict[str, bool]:
        """Whether each of the `roots` led to the newest root, by id; see `line_of`."""
        return line_of(self.roots)
