"""Go back: an answer for an earlier attempt, and calls that take up their own past.

A fork gives its tasks new ids, under which nothing of theirs is saved. So the run that goes on from
it is told which checkpoint was forked, and each call that begins in that run looks for itself among
the calls that were made from there.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple, cast
from uuid import uuid4

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.graph import START
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from graph_retry._attempts import params_at, records_in
from graph_retry._json import is_object
from graph_retry._langgraph.checkpoints import list_checkpoints
from graph_retry._langgraph.keeping import located
from graph_retry._langgraph.saved_state import Saved, saved_call
from graph_retry._params.codec import Encoded
from graph_retry._review.deadline import now
from graph_retry._review.decisions import ROWS
from graph_retry._state import ANSWER, LOOP, Loop, OpenReview, fresh_review, loop_of
from graph_retry.records import Attempt, Failure

REWIND = "rewind"
REFUSED = "this rewind is refused: "
_SUCCEEDED: Failure = {"kind": "rejected_input", "type": "Rewound", "message": "it succeeded"}

_FORK = "graph_retry_fork"
"""Where a run's `configurable` tells of the fork: a list of JSON, and of what was taken already.

All tasks of the run share the list. A plain string would be copied into each checkpoint.
"""


class Fork(NamedTuple):
    """An answer that goes back: what it decides, about which attempts, from which params.

    With `again` the last of `attempts` is made once more instead of being answered. `problem` tells
    why that cannot be.
    """

    answer: dict[str, Any]
    attempts: list[Attempt]
    params: Encoded
    again: bool
    reason: str
    problem: str | None

    def kept(self, decision: dict[str, Any]) -> list[Attempt]:
        """Return the attempts that stay, the decision noted on the one it answers."""
        if self.again and any(ROWS[decision["type"]].calls):
            return self.attempts[:-1]
        last: Any = {**self.attempts[-1], "decision": decision}
        return [*self.attempts[:-1], last]


def goes_back(answer: Any) -> bool:
    """Tell whether an answer may be about an earlier attempt than the one under review."""
    return is_object(answer) and REWIND in answer


def fork_of(answer: Any, attempts: list[Attempt]) -> Fork | None:
    """Read `{…, "rewind": {"attempt": 2, "again": true}}`; None for any other answer.

    A number that is not in the ledger counts as no rewind: the answer is then held against the
    open review, where the unknown `rewind` does nothing.
    """
    asked: Any = answer.get(REWIND) if is_object(answer) else None
    number: Any = asked.get("attempt") if is_object(asked) else None
    if type(number) is not int or not 1 <= number <= len(attempts):
        return None
    said = {key: value for key, value in answer.items() if key != REWIND}
    record = attempts[number - 1]
    before = [*attempts[: number - 1], cast("Attempt", {**record, "decision": None})]
    if record["failure"] is None:
        before[-1]["failure"] = _SUCCEEDED
    params = params_at(attempts, number)
    reason = f"went back from attempt {attempts[-1]['number']}"
    gone = record["kept_in"] is not None or params is None
    problem = (
        f"attempt {number} cannot be gone back to, since the checkpoint that kept it was deleted: "
        "name another one, or answer without `rewind`"
    )
    return Fork(
        said,
        before,
        params or Encoded({}, {}),
        bool(asked.get("again")),
        reason,
        problem if gone else None,
    )


def forked(loop: Loop) -> Loop:
    """Return the position an answer that goes back starts from, with the whole ledger in state.

    Nothing is suggested there.
    """
    review = loop["review"]
    assert review is not None  # noqa: S101
    bare: Any = {**review, "suggested": None, "suggested_types": {}, "suggested_by": None}
    return {**loop, "review": bare, "fork": review["review_id"], "seen": [], "spent": None}


def reopened(state: Mapping[str, Any]) -> Loop:
    """Return the position of a call that waits for an answer which goes back."""
    review: OpenReview = {**fresh_review(str(uuid4())), "asked_at": now()}
    return {**loop_of(state), "next": "review", "review": review}


class _ForkNote(TypedDict):
    """What a fork's run is told.

    `root` is the checkpoint of the outermost graph that was forked. With an `answer` the call saved
    at `call` is taken up again and given that answer.
    """

    root: str
    call: str
    answer: dict[str, Any] | None


_lock = threading.Lock()


def forked_config(
    config: RunnableConfig, root: str, call: str = "", answer: dict[str, Any] | None = None
) -> RunnableConfig:
    """Return the config for a run that goes on from a fork of the checkpoint `root`."""
    fork: _ForkNote = {"root": root, "call": call, "answer": answer}
    there = {**config.get("configurable", {}), _FORK: [json.dumps(fork)]}
    return cast("RunnableConfig", {**config, "configurable": there})


def task_path(caller: RunnableConfig) -> str:
    """Return where in its graphs a task is that makes a call, whatever its id."""
    steps = steps_of(str(caller.get("configurable", {}).get("checkpoint_ns", "")))
    return f"{steps} {json.dumps(caller.get('metadata', {}).get('langgraph_path'))}"


def steps_of(namespace: str) -> str:
    """Return the nodes and tasks a namespace names, without their ids.

    Example:
        >>> steps_of("outer:1f0|ask:2e4|1")
        'outer|ask'
    """
    parts = [part for part in namespace.split("|") if not part.isdigit()]
    return "|".join(part.partition(":")[0] for part in parts)


def is_forked(configurable: Mapping[str, Any]) -> bool:
    """Tell whether a run goes on from a fork."""
    return bool(configurable.get(_FORK))


async def past_of(
    configurable: Mapping[str, Any],
    saver: BaseCheckpointSaver[Any],
    *,
    task: str,
    name: str,
    identity: str | None,
    is_task: bool,
) -> dict[str, Any] | None:
    """Return the state a call had before the fork that its run goes on from, if it had one.

    A retry node that `is_task` may have other params today, such as a new default: where it alone
    ran there, it is the one.
    """
    shared: Any = configurable.get(_FORK)
    if not shared:
        return None
    fork: _ForkNote = json.loads(shared[0])
    thread: RunnableConfig = {"configurable": {"thread_id": str(configurable["thread_id"])}}
    calls = _made_from(fork["root"], await list_checkpoints(saver, thread))
    with _lock:
        there = {
            namespace: saved
            for namespace, values in calls.items()
            if (saved := _made_in(values, task, name)) is not None
        }
        same = [
            namespace
            for namespace, saved in there.items()
            if saved.identity == identity or (is_task and len(there) == 1)
        ]
        same = [namespace for namespace in same if namespace not in shared[1:]]
        shared += same[:1]
    if not same:
        return None
    values = located(calls[same[0]], same[0])
    if same[0] == fork["call"] and fork["answer"] is not None:
        number, made = fork["answer"][REWIND]["attempt"], len(records_in(values))
        if not 1 <= number <= made:  # the client may not have known the ledger
            raise ValueError(f"{REFUSED}`attempt` is {number}, and the call has {made}.")
        return {**values, LOOP: reopened(values), ANSWER: {"value": fork["answer"]}}
    # What was read of its text is read again: a step is not the place to begin from.
    following = loop_of(values)["next"]
    loop = {**loop_of(values), "next": "repair" if following == "validate" else following}
    return {**values, LOOP: loop}


def _made_from(root: str, saved: list[CheckpointTuple]) -> dict[str, dict[str, Any]]:
    """Return the newest states of the calls that were made from a checkpoint, by namespace."""
    newest: dict[str, CheckpointTuple] = {}
    for checkpoint in saved:
        configurable = checkpoint.config.get("configurable", {})
        newest.setdefault(str(configurable.get("checkpoint_ns", "")), checkpoint)
    return {
        namespace: checkpoint.checkpoint["channel_values"]
        for namespace, checkpoint in newest.items()
        if LOOP in checkpoint.checkpoint["channel_values"]
        and checkpoint.metadata.get("parents", {}).get("") == root
    }


def _made_in(values: Mapping[str, Any], task: str, name: str) -> Saved | None:
    """Return the call with this state, if it has this name and was made in such a task."""
    attempts = records_in(values)
    if not attempts or attempts[-1].get("name", name) != name:
        return None
    return saved_call(values, "params") if loop_of(values)["task_path"] == task else None


def continued(past: Mapping[str, Any], attempts_key: str) -> dict[str, Any]:
    """Return the update that makes a past state the present one."""
    kept = {key: value for key, value in past.items() if ":" not in key and key != START}
    return {**kept, attempts_key: Overwrite(past.get(attempts_key))}
