"""Notice code around a call that catches LangGraph's pause as if it were a failure."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.errors import GraphInterrupt

from graph_retry.errors import PauseSwallowed

_paused: ContextVar[str | None] = ContextVar("graph_retry_paused", default=None)


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let a pause through, and refuse the next call of a node that caught it.

    A question that `llm_call` itself asks is in the pauses of two steps, and is shown once.

    A node runs in a context of its own, so a note there is gone when the node runs again.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node had paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        raise PauseSwallowed(
            f"`{name}` was reached although the pause of `{earlier}`, which waits for a person, "
            "was caught by code around it, such as `except Exception` or a retry decorator: put "
            "`except GraphBubbleUp: raise` before it (from langgraph.errors), and run the thread "
            "on."
        )
    try:
        yield
    except GraphInterrupt as pause:
        _paused.set(name)
        asked = {question.id: question for question in pause.args[0]}
        raise GraphInterrupt(tuple(asked.values())) from None
