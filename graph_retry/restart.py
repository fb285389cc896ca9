"""Make an attempt again where only the state around the call can be reached, as on a server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from graph_retry.engine.fork import REWIND
from graph_retry.flow import Ask, Flow
from graph_retry.history import STATE, is_asked
from graph_retry.ledger import Ledger, open_attempt, records_in
from graph_retry.params.codec import Encoded
from graph_retry.params.jsonlike import is_object


def restart(
    graph: Any, config: RunnableConfig, ledger: Ledger, answer: Mapping[str, Any]
) -> Flow[Any]:
    """Fork the graph before the node and give it the attempts that stay, then run on.

    The last one given is still to be made: the node makes it, as its record says.
    """
    if answer["type"] not in ("approve", "edit"):
        raise ValueError(
            f"`decision` is a {answer['type']}, and of this call only its attempts are known: it "
            "can be made again (`params`, or an `edit`), not ended at an earlier review."
        )
    key, back = ledger.namespace.removeprefix(STATE), answer[REWIND]
    before = yield from _before(graph, config, ledger, key)
    view, given = ledger.params_at(back["attempt"]), answer.get("params")
    bare = not is_object(before.values["params"]) and "value" in view
    if given is not None:
        view = {**view, **given} if is_object(given) else {"value": given}
    kept = ledger.attempts[: back["attempt"] - (1 if back["again"] else 0)]
    record = open_attempt(
        kept,
        Encoded(view, ledger.at(back["attempt"])["params_types"]),
        author=REWIND,
        reason=answer.get("message") or f"went back from attempt {len(ledger.attempts)}",
        started_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        idempotency_key="",
    )
    update = {"params": view["value"] if bare else view, key: [*kept, record]}
    yield Ask(graph, "update_state", (before.config, update))
    return (yield Ask(graph, "invoke", (None, config)))


def _before(graph: Any, config: RunnableConfig, ledger: Ledger, key: str) -> Flow[StateSnapshot]:
    """Walk back to the checkpoint the call was made from."""
    here: StateSnapshot = yield Ask(graph, "get_state", (config,))
    known = records_in({key: here.values.get(key)})
    while here.parent_config and known and (known == ledger.attempts or is_asked(known)):
        here = yield Ask(graph, "get_state", (here.parent_config,))
        known = records_in({key: here.values.get(key)})
    if len(here.next) != 1 or "params" not in here.values:
        raise ValueError(
            f"the call behind `{key}` cannot be made again from here: its state has no `params`, "
            "or other nodes ran beside it. Fork the graph before the node (`get_state_history`, "
            "`update_state`)."
        )
    return here
