"""Notice code around a call that catches LangGraph's pause as if it were a failure."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from langgraph.errors import GraphInterrupt

from graph_retry.errors import PauseSwallowed

_paused: ContextVar[_Pause | None] = ContextVar("graph_retry_paused", default=None)


@contextmanager
def watched_pause(name: str) -> Generator[None, None, None]:
    """Let a pause through, and tell if it does not get out of the node.

    A node runs in a context of its own, so what is noted there is gone when it runs again.

    Raises:
        PauseSwallowed: If an earlier call of this run of the node had paused already.
    """
    earlier = _paused.get()
    if earlier is not None:
        raise PauseSwallowed(f"`{name}` was reached although {swallowed_text(earlier.name)}")
    try:
        yield
        return
    except GraphInterrupt as error:
        # A new one, which only the code around the call can hold: LangGraph's own is kept alive
        # by the frames it came through.
        pause = GraphInterrupt(*error.args)
    _paused.set(_Pause(name, pause))
    try:
        raise pause
    finally:
        del pause


class _Pause:
    """A pause on its way out; where it is dropped in the context of its node, it was swallowed."""

    def __init__(self, name: str, pause: GraphInterrupt) -> None:
        self.name = name
        self._alive = weakref.ref(pause, self._dropped)

    def _dropped(self, _: object) -> None:
        if _paused.get() is self:
            text = swallowed_text(self.name)
            warnings.warn(text[0].upper() + text[1:], RuntimeWarning, stacklevel=2)


def swallowed_text(name: str) -> str:
    """Say what became of a call's pause, and what to do."""
    return (
        f"the pause of `{name}`, which waits for a person, was caught by code around it, such as "
        "`except Exception` or a retry decorator: put `except GraphBubbleUp: raise` before it "
        "(from langgraph.errors), and run the thread on."
    )
