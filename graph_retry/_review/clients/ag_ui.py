"""AG-UI clients: they show `message` and a form of `response_schema`, and may close a question."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from graph_retry._json import is_object
from graph_retry._review.clients.client import Client, Entry, Form
from graph_retry._review.description import one_line, shown_output

INTERVENTION = "llm_intervention"
CANCELLED = "__agui_cancelled__"


def _draw(form: Form) -> dict[str, Any]:
    question = form.question
    summary = shown_output(question) if question.failure is None else question.failure["message"]
    told = form.title if question.problem else f"{form.title}: {one_line(summary, 300)}"
    return {"reason": INTERVENTION, "message": told, "response_schema": form.schema}


def _translate(entry: Entry, _offered: Collection[str]) -> Entry:
    if entry.get(CANCELLED) is not True:
        return entry
    return {"type": "reject"} | {key: part for key, part in entry.items() if key != CANCELLED}


AG_UI = Client(
    "ag-ui", lambda answer: is_object(answer) and CANCELLED in answer, _draw, {}, _translate
)
