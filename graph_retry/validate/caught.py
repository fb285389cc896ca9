"""Exceptions that a check met, as issues; control flow is let through."""

import json
import sys
from collections.abc import Callable
from typing import Any

from langgraph.errors import GraphBubbleUp
from pydantic import ValidationError

from graph_retry.records import Issue
from graph_retry.validate.issues import REFUSED, issue
from graph_retry.validate.plain import ABSENT, TOO_DEEP
from graph_retry.validate.pydantic_issues import pydantic_issues


def let_control_flow_through(error: Exception) -> None:
    """Raise `error` again if it is LangGraph's control flow and not an error at all."""
    if isinstance(error, GraphBubbleUp):
        raise error


def attempt(call: Callable[..., Any], *args: Any, root: Any = ABSENT) -> tuple[Any, list[Issue]]:
    """Call somebody's code; what it raises becomes issues, with `ABSENT` for the result.

    `root` is the value that was checked, if the whole of it was.
    """
    try:
        return call(*args), []
    except ValidationError as error:
        return ABSENT, pydantic_issues(error, root)
    except Exception as error:  # noqa: BLE001  validators are users' code and may raise anything
        let_control_flow_through(error)
        return ABSENT, wrap_error(error)


def wrap_error(error: Exception) -> list[Issue]:
    """Turn a caught exception into issues.

    A pydantic or jsonschema `ValidationError` gives its own issues, any other `ValueError` or
    `AssertionError` one with its text, and every other class one with the code `unexpected_error`.

    Example:
        >>> wrap_error(ValueError("too short"))[0]["message"]
        'too short'
        >>> wrap_error(KeyError("age"))[0]["code"]
        'unexpected_error'
    """
    if isinstance(error, ValidationError):
        return pydantic_issues(error)
    if "jsonschema" in sys.modules:
        # Imported only where someone else has: it costs tens of milliseconds.
        from jsonschema import ValidationError as SchemaViolation  # noqa: PLC0415

        from graph_retry.validate.schema_issues import schema_issue  # noqa: PLC0415

        if isinstance(error, SchemaViolation):
            return [schema_issue(error)]
    text = str(error)
    if isinstance(error, RecursionError):
        return [issue("", "the value is nested too deep to be checked", TOO_DEEP)]
    if isinstance(error, json.JSONDecodeError):
        return [issue("", text, "invalid_json")]
    if isinstance(error, ValueError | AssertionError):
        code = "value_error" if isinstance(error, ValueError) else "assertion_error"
        return [issue("", text or REFUSED, code)]
    return [issue("", f"{type(error).__name__}: {text}", "unexpected_error")]
