"""What the forms of graphical clients are given to show: whole fields, with two exceptions.

A top-level null is shown as `"null"`, because Agent Inbox crashes on null. A field too long for
any text box is shown shortened, because each client reads its own copy of the form. Both are
recognised when they come back.
"""

import json
from typing import Any

from graph_retry.forms.excerpt import excerpt

MAX_FIELD = 100_000
"""Characters of a field's JSON above which a form shows it shortened."""

CUT_MARK = " characters cut]…"
"""Stands in every shortened text, so that an edit of one is noticed."""


def form_args(shown: dict[str, Any]) -> dict[str, Any]:
    """Return params as the clients' forms get them; values are shared, not copied.

    Example:
        >>> form_args({"prompt": "x", "seed": None})
        {'prompt': 'x', 'seed': 'null'}
    """
    return {name: _form_value(value) for name, value in shown.items()}


def _form_value(value: Any) -> Any:
    if value is None:
        return "null"
    if isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return excerpt(text, 2_000) if len(text) > MAX_FIELD else value
