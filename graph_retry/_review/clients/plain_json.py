"""The client of Studio, terminals and programs.

They send a decision as JSON or as text. They may also send only the revised params.
"""

from __future__ import annotations

from typing import Any

from graph_retry._review.answers import Reading
from graph_retry._review.clients.client import Client, Entry, Form, with_params


def _draw(form: Form) -> dict[str, Any]:
    return {"description": form.description}


def _translate(entry: Entry, _: Reading) -> Entry:
    for key in ("revised_params", "revisedParams"):
        if key in entry:
            entry = with_params(entry, key, entry[key])
    return entry


TEXT = Client("text", lambda answer: isinstance(answer, str))
PLAIN_JSON = Client("api", lambda _: True, _draw, _translate)
