"""Describe the attempts of a call on a page: the changes between them, and their results."""

from __future__ import annotations

from typing import Any

from graph_retry.desk.texts import said
from graph_retry.desk.web.forms.marks import compared
from graph_retry.ledger import Ledger, tokens_of
from graph_retry.plugins import excerpt


def attempts_told(ledger: Ledger) -> list[dict[str, Any]]:
    """Return the attempts of a call for a page, with changes and results, the newest first."""
    return [_told(ledger, record["number"]) for record in reversed(ledger.attempts)]


def _told(ledger: Ledger, number: int) -> dict[str, Any]:
    record = ledger.at(number)
    first = number == ledger.attempts[0]["number"]
    changed: list[tuple[str, list[tuple[str, str]]]] = []
    try:
        changed = [] if first else compared(ledger.params_at(number - 1), ledger.params_at(number))
    except ValueError:  # A checkpoint with the old or the new params was deleted.
        known = False
    else:
        known = True
    written = written_by(record["raw"])
    decision: dict[str, Any] = record["decision"] or {}
    is_supplied = decision.get("type") == "respond" and "output" in decision
    return {
        **record,
        "changed": changed,
        "is_known": known,
        "written": written and excerpt(written, 2_000),
        "decisions": [*decision.get("before", ()), decision] if decision else [],
        "supplied": excerpt(said(decision["output"]), 2_000) if is_supplied else "",
        "tokens": tokens_of(record)["total_tokens"],
    }


def written_by(raw: Any) -> str | None:
    """Return the model's output as text; None if there is none."""
    given = [raw[name] for name in ("text", "value", "received") if raw and name in raw]
    return said(given[0]) if given else None
