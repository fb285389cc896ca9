"""AG-UI clients: they show `message` and a form for `response_schema`, and may cancel a review."""

from __future__ import annotations

from typing import Any

from graph_retry._json import is_object
from graph_retry._review.answers import Reading
from graph_retry._review.clients.client import Client, Entry, Form, without
from graph_retry.records import INTERVENTION

CANCELLED = "__agui_cancelled__"


def _draw(form: Form) -> dict[str, Any]:
    return {"reason": INTERVENTION, "message": form.message, "response_schema": form.schema}


def _translate(entry: Entry, _: Reading) -> Entry:
    closed = {"type": "reject"} if entry.get(CANCELLED) is True else {}
    return closed | without(entry, CANCELLED)


AG_UI = Client("ag-ui", lambda answer: is_object(answer) and CANCELLED in answer, _draw, _translate)
