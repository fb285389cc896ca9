"""Find the model's answer in an exception.

If a parser cannot read an answer, its exception (or the cause of the exception) often holds the
answer. For example, the answer is in `doc` of `JSONDecodeError`, in `llm_output` of LangChain's
parsers, or in the HTTP response that `ChatOpenAI` attaches. This module reads attributes and knows
no classes, so the clients need not be installed.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from functools import lru_cache
from types import TracebackType
from typing import Any

from langchain_core.exceptions import OutputParserException
from langchain_core.runnables import Runnable

from graph_retry._core.ground.functions.calling import YIELDING, code_of, is_library
from graph_retry._core.ground.issues import attempt
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.output.providers.anthropic import unparsed_arguments
from graph_retry._core.output.providers.objects import message_of
from graph_retry.lossless._ground import text_of

_MAX_CAUSES = 10
_OF_REQUEST = ("prompt", "input", "query", "messages")
"""An attribute with one of these words in its name holds the request."""
_Place = tuple[int | None, int | None, int | None, int | None]
"""The first and last line of an expression, and its first and last column."""


def said_in(error: BaseException) -> Any:
    """Return the model's answer that an exception or one of its causes holds, or None."""
    for cause in _chain(error):
        found, failed = attempt(_said_by, cause)  # An unknown exception's attributes may raise.
        if found is not None and not failed:
            return found
    return None


def is_reading_error(error: BaseException, name: str) -> bool:
    """Return whether an exception says that an answer could not be read as the type `name`.

    If the exception has an error of another schema, a check in the user's code has failed. Reading
    the answer again would bypass this check, so the result is False.
    """
    listed = [_pydantic_errors(cause) for cause in _chain(error)]
    schemas = [
        getattr(cause, "title", name)
        for cause, errors in zip(_chain(error), listed, strict=True)
        if errors and errors[0].get("type") != "json_invalid"
    ]
    if any(schema != name for schema in schemas):
        return False
    return any(
        errors
        or isinstance(cause, OutputParserException)
        or _is_json_error(cause)
        or unparsed_arguments(cause)
        for cause, errors in zip(_chain(error), listed, strict=True)
    )


def is_returned(error: BaseException, function: Callable[..., Any] | Runnable[Any, Any]) -> bool:
    """Return whether `function` returns the result of the failed call unchanged.

    Only an unchanged result may be replaced by the model's answer in an exception. The source code
    must show that the failed call is in a `return`, or that its result is assigned to a name that
    is only returned. A runnable always returns its result unchanged. So does a function that
    yielded or returned a stream.
    """
    code, at, frames = code_of(function), error.__traceback__, list[TracebackType]()
    while at is not None:
        frames.append(at)
        at = at.tb_next
    own = next((n for n, each in enumerate(frames) if each.tb_frame.f_code is code), None)
    if own is None or frames[own].tb_frame.f_code.co_flags & YIELDING:
        return True
    for each in frames[own:]:
        file = each.tb_frame.f_code.co_filename
        if is_library(file):
            break
        places = list(each.tb_frame.f_code.co_positions())
        if places[each.tb_lasti // 2] not in _returned_in(file):
            return False
    return True


@lru_cache(maxsize=64)
def _returned_in(file: str) -> frozenset[_Place]:
    """Return the places of all expressions that the functions in a file return unchanged."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return frozenset()
    values: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda):
            values.append(node.body)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            values += _returned_by(node)
    values += [value.value for value in values if isinstance(value, ast.Await)]
    return frozenset(
        (value.lineno, value.end_lineno, value.col_offset, value.end_col_offset) for value in values
    )


def _returned_by(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.expr]:
    """Yield the expressions after `return`, and those assigned to a name that is only returned."""
    nodes = [*ast.walk(function)]
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value]
    yield from returned
    for node in nodes:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if len(targets) == 1 and isinstance(target := targets[0], ast.Name):
                uses = [use for use in nodes if isinstance(use, ast.Name) and use.id == target.id]
                loads = [use for use in uses if isinstance(use.ctx, ast.Load)]
                if loads and all(use in returned for use in loads):
                    yield node.value


def _chain(error: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = error
    for _ in range(_MAX_CAUSES):
        if at is None:
            return
        yield at
        at = at.__cause__ or at.__context__


def _said_by(error: BaseException) -> Any:
    read = getattr(getattr(error, "response", None), "json", None)
    body, failed = attempt(read) if callable(read) else (None, True)
    if not failed and is_object(body) and message_of(body) is not None:
        return body
    if isinstance(text := getattr(error, "llm_output", None), str):
        return text
    if _is_json_error(error):
        return getattr(error, "doc", None)
    if errors := _pydantic_errors(error):
        # The input of these errors is the whole answer. Other errors have a part of the answer.
        whole = (one for one in errors if len(one["loc"]) == (one["type"] == "missing"))
        return next((one["input"] for one in whole), None)
    for value in vars(error).values():
        message, failed = attempt(message_of, value)
        if message is not None and not failed:
            return value
    return unparsed_arguments(error) or _longest_text(error)


def _is_json_error(error: BaseException) -> bool:
    """Return whether an exception has `doc` and `pos`, as `JSONDecodeError` has."""
    has_text = isinstance(getattr(error, "doc", None), str)
    return has_text and isinstance(getattr(error, "pos", None), int)


def _pydantic_errors(error: BaseException) -> list[dict[str, Any]]:
    """List the errors of an exception like pydantic's `ValidationError`; empty for others."""
    listing = getattr(error, "errors", None)
    if not callable(listing) or not isinstance(getattr(error, "title", None), str):
        return []
    found, failed = attempt(listing)
    return found if not failed and is_array(found) and all(map(is_object, found)) else []


def _longest_text(error: BaseException) -> str | None:
    """Return the longest text with a bracket in an exception's attributes, or None.

    The exception of an HTTP client gives None, because its text is not the model's answer.
    """
    if any(hasattr(error, name) for name in ("status_code", "response", "request")):
        return None
    told = text_of(error)
    texts = [
        text
        for name, text in vars(error).items()
        if isinstance(text, str) and not any(word in name for word in _OF_REQUEST)
    ]
    texts = [
        text
        for text in texts
        if text and not told.startswith(text) and ("{" in text or "[" in text)
    ]
    return max(texts, key=len, default=None)
