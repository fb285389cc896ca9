"""Detect user code that catches LangGraph's pause (`GraphInterrupt`) as if it were a failure."""

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
"""The name of the call that has paused in this node.

A context variable holds exactly one node's call, because LangGraph runs each node in its own
context.
"""


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let the pause of a call pass; if user code runs on after it, refuse the node's next call.

    The refusal is an `Exception`. The same user code may catch it, so it is also logged. A
    `BaseException` would not be caught, but LangGraph's server never ends a run that raises one.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node has paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        refused = PauseSwallowed(
            f"`{name}` was reached although the pause of `{earlier}`, which waits for a person, "
            "was caught by code around it, such as `except Exception` or a retry decorator, or is "
            "passing a `finally:` that makes this call. Put `except GraphBubbleUp: raise` (from "
            "langgraph.errors) before the code that catches it, make no call in a `finally:`, and "
            "continue the thread."
        )
        _LOG.error("%s: %s", thread_in_logs(), refused.message)
        raise refused
    try:
        yield
    except GraphInterrupt as pause:
        _paused.set(name)
        # If `llm_call` itself calls `interrupt`, LangGraph reports its question in the pauses of
        # two steps. Without this, clients would show it twice.
        asked = {question.id: question for question in pause.args[0]}
        raise GraphInterrupt(tuple(asked.values())) from None
