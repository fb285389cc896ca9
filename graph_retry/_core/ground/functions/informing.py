"""Run code that only informs, for example by a warning, an event, a span or a message.

A row of a list is also such information. If such code fails, a pause, a result or an answer must
not change. Therefore all such code runs in `informing`, which logs a failure as a WARNING.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager
from typing import cast

from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.awaiting import is_async_only
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import Redact, redacted_in_logs
from graph_retry.lossless._ground import error_text

_LOG = logging.getLogger("graph_retry")


def informing(what: str, redact: Redact | None = None) -> AbstractContextManager[None, bool]:
    """Log an error of the code in the `with` block, and go on after the block.

    Two kinds of exceptions are raised again. One is LangGraph's control flow, such as an interrupt.
    The other is the error of an async-only saver in a sync run, which cannot use such a saver.

    Args:
        what: What the block does, for the log.
        redact: A function that removes from the error's text what the log must not show.
    """
    # A type checker then knows that the block may end early.
    return cast("AbstractContextManager[None, bool]", _informing(what, redact))


@contextmanager
def _informing(what: str, redact: Redact | None) -> Generator[None, None, None]:
    try:
        yield
    except GraphBubbleUp:
        raise
    except Exception as error:
        if is_async_only(error):
            raise
        if isinstance(error, NotImplementedError):
            # What a saver cannot do, it will never be able to do.
            why = error_text(error) or type(error).__name__
            warn_once(_LOG, "%s is not possible here: %s", what, why)
            return
        # What was raised before, as an interrupt with its question, is none of the log's business.
        trace = "".join(traceback.format_exception(error, chain=False))
        told = redacted_in_logs(without_keys(trace), redact)
        _LOG.warning("%s failed; the run goes on as if it had not been tried:\n%s", what, told)
