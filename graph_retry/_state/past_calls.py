"""Match the calls that run in a fork of a thread with the calls made before the fork."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from typing_extensions import TypedDict

from graph_retry._state.attempts import located, records_in
from graph_retry._state.going_back import REWIND, RewindRefused, reopened
from graph_retry._state.identity import Made, changed_fields, first_params
from graph_retry._state.namespaces import outermost, without_task_ids
from graph_retry._state.position import ANSWER, LOOP, Loop, loop_of


class ForkNote(TypedDict):
    """A message from a fork to the calls that run in it.

    `root` is the id of the forked checkpoint of the outermost graph. If `answer` is given, the call
    whose namespace is `call` is resumed with that answer.
    """

    root: str
    call: str
    answer: dict[str, Any] | None


@dataclass(frozen=True)
class PastCalls:
    """The calls that were made from the checkpoint of a fork, for the calls of one execution.

    states: The newest state of each of these calls, by namespace, oldest call first.
    taken: The namespaces of those that calls of the fork continue already.
    """

    fork: ForkNote
    states: dict[str, dict[str, Any]]
    taken: set[str | None]

    def continued_by(self, made: Made, task: str, namespace: str) -> dict[str, Any] | None:
        """Return the state that a call had before the fork; None if there is no earlier state.

        The earlier call has the same name, task path and identity. Equal calls differ in the
        numbers in their namespaces; those of a loop are matched in order, each only once.

        Raises:
            ValueError: If a call should be rewound, but the node now calls with different params.
        """
        name, rewound, here = made.name, self.fork["call"], without_task_ids(namespace)
        if made.task_path is None:
            raise RewindRefused(f"LangGraph does not tell in which branch `{name}` is called.")
        there = {
            place: values
            for place, values in self.states.items()
            if loop_of(values)["task_path"] == made.task_path
            and [each.get("name", name) for each in records_in(values)[-1:]] == [name]
        }
        same = [place for place in there if loop_of(there[place])["identity"] == made.identity]
        # A lone retry node is known by its task, whatever its params are today. The params may come
        # from the output of the rewound call only in the same task of the outermost graph.
        if namespace == task and [*map(without_task_ids, there)] == [here]:
            independent = outermost(rewound) != outermost(*there)
            same = [*there] if independent or rewound in there else same
        free = [place for place in same if place not in self.taken]
        exact = (place for place in free if without_task_ids(place) == here)
        place = next(exact, next(iter(free), None))
        if place is None:
            if self.fork["answer"] is not None and rewound in {*there} - self.taken:
                fields = changed_fields(first_params(there[rewound], "params") or {}, made.params)
                raise RewindRefused(
                    f"the node calls `{name}` with other params now (they differ in {fields}), so "
                    "it is not known to be the same call. Give the call a `key=` that stays the "
                    "same, or the node the params that it had."
                )
            return None
        self.taken.add(place)
        values = located(there[place], place)
        loop = cast("Loop", {**loop_of(values), "continues": place})
        if place != rewound or self.fork["answer"] is None:
            return {**values, LOOP: loop}
        answer, count = self.fork["answer"], len(records_in(values))
        # A client may send a number without having read the ledger.
        if not 1 <= (number := answer[REWIND]["attempt"]) <= count:
            raise RewindRefused(f"`attempt` is {number}, and the call has {count}.")
        again: Loop = {**reopened(values), "continues": place}
        return {**values, LOOP: again, ANSWER: {"value": answer}}
