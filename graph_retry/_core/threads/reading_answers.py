"""Read an answer from any client before it is sent to its review."""

from typing import Any

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.review.judge import interpret
from graph_retry._core.review.review import Decision

__all__ = ["read_answer"]


@checked
def read_answer(given: Any) -> Decision:
    """Read the decision in an answer, in any form that a client may send; it is not applied.

    Raises:
        ValueError: If it is no decision; the message tells a person what to send.

    Example:
        >>> from graph_retry.threads import read_answer
        >>> read_answer("yes"), read_answer({"action": "cancel", "reason": "too dear"})
        ({'type': 'approve'}, {'type': 'reject', 'message': 'too dear'})
    """
    return interpret(given).decision
