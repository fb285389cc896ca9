"""The door through which every text of others goes to a log.

A key of the params, an error of a provider or a name may hold control characters, which would
control the terminal that shows the text, or a line break, which would forge a line of a log.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from graph_retry.lossless._ground import escaped

LOGGERS = ("graph_retry", "graph_retry.params", "graph_retry.reviews")
"""The loggers of this library."""


def guard_logs() -> None:
    """Escape the arguments of all messages of this library's loggers."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_escape)


@lru_cache(maxsize=1_000)
def warn_once(log: logging.Logger, message: str, *told: str) -> None:
    """Log a warning, once in this process."""
    log.warning(message, *told)


def _escape(record: logging.LogRecord) -> bool:
    r"""Escape the arguments of a message. A message that shows a trace ends with `\n%s`."""
    if isinstance(record.args, tuple):
        lines = str(record.msg).endswith("\n%s")
        record.args = tuple(
            each if isinstance(each, int | float | None) else escaped(str(each), lines=lines)
            for each in record.args
        )
    return True
