"""Notice code around a call that catches LangGraph's pause as if it were a failure."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.errors import GraphInterrupt

from graph_retry._langgraph.run_config import thread_in_logs
from graph_retry.errors import PauseSwallowed

_LOG = logging.getLogger("graph_retry")
_paused: ContextVar[str | None] = ContextVar("graph_retry_paused", default=None)
"""The call of this node that has paused. LangGraph runs each node in a context of its own."""


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let a call's pause through, and refuse the next call of a node that caught it.

    The refusal is an `Exception`, which the same code may catch again, so it is logged as well. A
    `BaseException` would pass that code, and LangGraph; but LangGraph's server never ends a run
    that raises one.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node has paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        refused = PauseSwallowed(
            f"`{name}` was reached although the pause of `{earlier}`, which waits for a person, "
            "was caught by code around it, such as `except Exception` or a retry decorator: put "
            "`except GraphBubbleUp: raise` before it (from langgraph.errors), and run the thread "
            "on."
        )
        _LOG.error("%s: %s", thread_in_logs(), refused.message)
        raise refused
    try:
        yield
    except GraphInterrupt as pause:
        _paused.set(name)
        # A question that `llm_call` itself asks is in the pauses of two steps; it is shown once.
        asked = {question.id: question for question in pause.args[0]}
        raise GraphInterrupt(tuple(asked.values())) from None
