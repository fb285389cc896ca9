"""Run code whose only purpose is to tell somebody something, by a warning, an event or a message.

If such code fails, the call must go on as if it had worked. Therefore all such code runs in a `with
informing(…)` block, which logs a failure as a WARNING.
"""

from __future__ import annotations

import logging
import traceback
from types import TracebackType

from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.awaiting import is_async_only
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import Redact, redacted_in_logs
from graph_retry.lossless._ground import error_text

_LOG = logging.getLogger("graph_retry")


class informing:  # noqa: N801 - it is read as a verb: `with informing("…"):`
    """Log an exception from the `with` block, and continue after the block.

    Two kinds of exceptions are raised nevertheless: LangGraph's control flow, such as an interrupt,
    and the error of an async-only saver in a sync run.

    Args:
        what: What the block does, for the log.
        redact: A function that removes from the error's text what the log must not show.
    """

    def __init__(self, what: str, redact: Redact | None = None) -> None:
        self._what, self._redact = what, redact

    def __enter__(self) -> None:
        """Begin the block."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Log the exception of the block, if there is one. Return whether it is handled."""
        if not isinstance(error, Exception) or isinstance(error, GraphBubbleUp):
            return False
        if is_async_only(error):
            return False
        if isinstance(error, NotImplementedError):
            # The saver will never be able to do this, so one warning is enough.
            why = error_text(error) or type(error).__name__
            warn_once(_LOG, "%s is not possible here: %s", self._what, why)
            return True
        # `chain=False` leaves out earlier exceptions, such as an interrupt with its question.
        text = "".join(traceback.format_exception(error, chain=False))
        told = redacted_in_logs(without_keys(text), self._redact)
        goes_on = "the run goes on as if it had not been tried"
        _LOG.warning("%s failed; %s:\n%s", self._what, goes_on, told)
        return True
