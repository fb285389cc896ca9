"""Find mistakes in the user's functions, and log them with their file and line.

Only the developer can correct such mistakes. Neither the model nor a reviewer can.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dis import get_instructions
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from langchain_core.runnables import Runnable

from graph_retry._core.ground.credentials import without_keys
from graph_retry._core.ground.functions.calling import OURS, code_of, is_library
from graph_retry._core.ground.logs import warn_once
from graph_retry._core.ground.redact import Redact, redacted_in_logs
from graph_retry.lossless._ground import text_of

_LOG = logging.getLogger("graph_retry")

BUGS = (NameError, AttributeError, TypeError, LookupError, ImportError, SyntaxError)
"""Python's exceptions for wrong code. They change only messages, and never the next step."""


class Place(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"line {self.line} of {Path(self.file).name}"


def place_of_bug(
    error: Exception,
    function: Callable[..., Any] | Runnable[Any, Any],
    bugs: tuple[type[Exception], ...] = BUGS,
) -> Place | None:
    """Return the line of the user's code that raised one of the errors in `bugs`, or None.

    The result is the deepest line of the traceback in the file of `function` or outside any
    library. If this line is a `raise` statement, the error was raised on purpose, and the result is
    None.
    """
    if not isinstance(error, bugs):
        return None
    code = code_of(function)
    own = None if code is None else code.co_filename
    of_user: TracebackType | None = None
    below = error.__traceback__
    while below is not None:
        file = below.tb_frame.f_code.co_filename
        of_user = below if file == own or not is_library(file) else of_user
        below = below.tb_next
    if of_user is None or (of_user.tb_next is None and _is_raise(of_user)):
        return None
    return Place(of_user.tb_frame.f_code.co_filename, of_user.tb_lineno)


def _is_raise(at: TracebackType) -> bool:
    steps = get_instructions(at.tb_frame.f_code)
    return any(s.offset == at.tb_lasti and s.opname == "RAISE_VARARGS" for s in steps)


def place_of(function: Callable[..., Any] | Runnable[Any, Any]) -> Place | None:
    """Return the file and line of a function; None for a runnable, C code, and this package."""
    code = code_of(function)
    if code is None or Path(code.co_filename).is_relative_to(OURS):
        return None
    return Place(code.co_filename, code.co_firstlineno)


def tell(what: str, place: Place | None, redact: Redact | None = None) -> None:
    at = "" if place is None else f' (file "{place.file}", line {place.line})'
    _LOG.warning("%s%s", redacted_in_logs(without_keys(what), redact), at)


def tell_bug(of: str, error: Exception, place: Place, redact: Redact | None = None) -> None:
    """Log an exception that a mistake in code has raised. `of` names the function."""
    tell(f"{of} has a mistake: {type(error).__name__}: {text_of(error)}", place, redact)


def bug_in_validator(name: str, error: Exception, function: Callable[..., Any]) -> Place | None:
    """Log an exception of a validator that may be a mistake. Return its line if it certainly is."""
    place = place_of_bug(error, function)
    if place is None:
        return None
    if isinstance(error, NameError | AttributeError | ImportError):
        tell_bug(f"the validator `{name}`", error, place)
        return place
    # A `KeyError` or `TypeError` may also refuse a value, whose words the log must not show.
    warn_once(
        _LOG,
        "the validator `%s` raised `%s`, and so it refused the value. Is this a mistake in its "
        'code? If not, raise a `ValueError` (file "%s", line %s)',
        *(name, type(error).__name__, place.file, str(place.line)),
    )
    return None
