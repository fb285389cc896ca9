"""Studio, terminals and programs: a decision as JSON, in words, or as params to retry with."""

from __future__ import annotations

from typing import Any

from graph_retry._review.clients.client import Client, Content, Form

_BOTH = ("approve", "edit")


def _draw(form: Form) -> dict[str, Any]:
    return {"description": form.description}


TEXT = Client("text", lambda answer: isinstance(answer, str))
PLAIN_JSON = Client(
    "api",
    lambda _: True,
    _draw,
    dict.fromkeys(("params", "revised_params", "revisedParams"), (_BOTH, Content)),
)
