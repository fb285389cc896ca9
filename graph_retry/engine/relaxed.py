"""Settle for a looser output where the caller asked for that, and say so."""

from __future__ import annotations

from typing import Any

from graph_retry.engine.plan import Plan
from graph_retry.engine.state import LOOP, Loop
from graph_retry.ledger import parsed_value
from graph_retry.records import Attempt


def settle_for_less(plan: Plan[Any], loop: Loop, record: Attempt) -> dict[str, Any] | None:
    """Return the state of a call that ends with its last, degraded output, if that will do.

    The attempt stays failed; its record is flagged `degraded`.
    """
    if (
        plan.relaxed is None
        or not record["failure"]
        or record["failure"]["kind"] != "invalid_schema"
    ):
        return None
    value = parsed_value(record, as_text=plan.relaxed.wants_text)
    checked = plan.relaxed.check(record["parsed"]["value"] if record["parsed"] else value)
    if not checked.ok:
        return None
    keys = plan.settings.keys
    return {
        LOOP: {**loop, "next": "end"},
        keys["attempts"]: [{"number": record["number"], "degraded": True}],
        keys["output"]: checked.jsonable,
        keys["status"]: "succeeded",
    }
