"""Escape control characters and line breaks in the messages that this library logs.

A control character in a name or an error could control the terminal that shows the log. A line
break would forge a line of the log.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from graph_retry.lossless._ground import escaped

LOGGERS = ("graph_retry", "graph_retry.params", "graph_retry.reviews")
"""The loggers of this library."""


def guard_logs() -> None:
    """Make this library's loggers escape the arguments of each message."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_escape)


@lru_cache(maxsize=1_000)
def warn_once(log: logging.Logger, message: str, *told: str) -> None:
    """Log a warning once in this process. The same warning is not logged again."""
    log.warning(message, *told)


def _escape(record: logging.LogRecord) -> bool:
    r"""Escape the arguments of a message. Line breaks stay if the message ends with `\n%s`."""
    if isinstance(record.args, tuple):
        lines = str(record.msg).endswith("\n%s")
        record.args = tuple(
            each if isinstance(each, int | float | None) else escaped(str(each), lines=lines)
            for each in record.args
        )
    return True
