"""The rules of the loop, as pure functions of data."""

from typing import Literal

Automatic = Literal["retry", "ask", "give_up"]


def after_failure(
    *,
    attempt: int,
    changed: bool,
    automatic: int,
    max_attempts: int,
    auto_retries: int,
    review: bool,
) -> Automatic:
    """Decide what follows a failed attempt.

    A retry needs changed params, an allowance left and an attempt left; otherwise a reviewer is
    asked, or the call gives up where nobody may be asked.

    Example:
        >>> rules = dict(max_attempts=10, auto_retries=1, review=True)
        >>> after_failure(attempt=1, changed=True, automatic=0, **rules)
        'retry'
        >>> after_failure(attempt=2, changed=True, automatic=1, **rules)
        'ask'
    """
    if changed and automatic < auto_retries and attempt < max_attempts:
        return "retry"
    return "ask" if review else "give_up"


FOLLOWERS: dict[str, tuple[str, ...]] = {
    "call": ("repair", "revise", "end"),
    "repair": ("validate",),
    "validate": ("revise", "end"),
    "revise": ("call", "review", "end", "give_up"),
    "review": ("call", "review", "end", "give_up"),
}
"""Which steps may follow which; the graph is drawn from it."""
