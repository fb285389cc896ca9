"""Detect that a node's code has caught the pause of a call.

A call pauses by LangGraph's interrupt, which is an exception. If the node's code lets this
exception pass, the node writes nothing. A node that writes a result after such a pause has caught
the exception, and nobody is asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from graph_retry._core.ground.held.captured import Captured
from graph_retry.errors import PauseSwallowed

_LOG = logging.getLogger("graph_retry")

_REMEDY = (
    "In place of `asyncio.gather(…, return_exceptions=True)`, use `gather_calls`. Before other "
    "code that catches it, put `except GraphBubbleUp: raise` (from langgraph.errors)"
)


def reached_after(name: str, earlier: str, where: str) -> PauseSwallowed:
    """Return the error for a call that begins after another call of its node has paused."""
    return _logged(
        f"`{name}` was called although `{earlier}` waits for a person: user code caught its "
        "pause (as `except Exception` or a retry decorator does), or a `finally:` made this "
        f"call. {_REMEDY}, make no call in a `finally:`, and continue the thread.",
        where,
    )


def _logged(told: str, where: str) -> PauseSwallowed:
    """Log an error and return it, because the user's code may catch this error too."""
    _LOG.error("%s: %s", where, told)
    return PauseSwallowed(told)


@dataclass
class Pauses:
    """The paused calls of one execution of a task.

    calls: The calls' names and functions, by the namespace that calls with equal params share.
    has_ended: Returns whether the task has ended with a result after a call has paused.
    """

    calls: dict[str, list[tuple[str, Captured | None]]] = field(default_factory=dict[str, Any])
    has_ended: Callable[[], bool] = lambda: False

    def add(
        self, shared: str, name: str, function: Captured | None, has_ended: Callable[[], bool]
    ) -> None:
        """Record that a call has paused, just before the user's code gets the interrupt."""
        self.calls.setdefault(shared, []).append((name, function))
        self.has_ended = has_ended

    def check_equal(self, shared: str, name: str, function: Captured | None, where: str) -> None:
        """Refuse a call that begins after an equal call of the same execution has paused.

        Raises:
            PauseSwallowed: If an equal call has paused. A retry decorator makes such a second call.
        """
        for earlier, other in self.calls.get(shared, ()):
            if function is None or other is None or function.like(other) != "other":
                raise reached_after(name, earlier, where)

    def check_ended(self, where: str) -> None:
        """Raise if the task has ended with a result although a call has paused.

        Raises:
            PauseSwallowed: If the task's code has caught a pause. A second check raises nothing.
        """
        if self.calls and self.has_ended():
            ((earlier, _), *_), self.calls = next(iter(self.calls.values())), {}
            raise _logged(
                f"a node around `{earlier}` ended with a result although the call waits for a "
                "person, so nobody is asked: user code, such as `except Exception`, a retry or "
                f"a middleware, has caught its pause. {_REMEDY}, and run the thread again from "
                "this node.",
                where,
            )
