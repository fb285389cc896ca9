"""Tell by an answer's shape which client it came through."""

from __future__ import annotations

from typing import Any

from graph_retry.params.jsonlike import is_array, is_object


def channel_of(answer: Any) -> str:
    """Name the client whose shape an answer has; `api` for the canonical form.

    Example:
        >>> channel_of([{"type": "accept", "args": None}]), channel_of("approve")
        ('agent-inbox', 'text')
    """
    while is_object(answer) and "resume" in answer:
        answer = answer["resume"]
    if isinstance(answer, str):
        return "text"
    if is_array(answer):
        return "agent-inbox"
    if is_object(answer) and "decisions" in answer:
        return "agent-chat-ui"
    if is_object(answer) and "__agui_cancelled__" in answer:
        return "ag-ui"
    return "api"
