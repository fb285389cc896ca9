"""Find the answer inside a wrapper, which is a key, a tool call or a schema around the answer.

For example, the answer in `{"arguments": {…}}` is `{…}`. An answer is unwrapped only if no other
data is lost. Therefore a wrapper has only one key, or only the keys of one row in `WRAPPERS`.
Exactly one value inside the wrapper must be valid.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from jsonpointer import resolve_pointer, set_pointer

from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.ground.issues import describe, issue
from graph_retry._core.ground.json import (
    ABSENT,
    is_array,
    is_object,
    pointer,
    read_digits,
)
from graph_retry._core.output.misplaced import has_fields, is_schema_of, retold, under
from graph_retry._core.output.validator import Checked, Validator
from graph_retry.lossless._ground import lazy
from graph_retry.lossless.parse import read_output
from graph_retry.records import Issue, Repair

Check = Callable[[Any], Awaitable[Checked]]
_DEPTH = 3
"""The maximum number of wrappers around one value."""
_PLAIN = {"code_fence", "white_space", "raw_control"}
"""The kinds of repairs that are allowed for JSON inside a text."""
_LEAK = lazy(  # a closing mark at the beginning or the end, or an opening one at the end
    r"\A\s*(?P<first></(?:antml[: ])?(?:parameter|invoke|arg_key|arg_value|tool_call)>)"
    r"|(?P<last></?(?:antml[: ])?(?P<name>parameter|invoke|arg_key|arg_value|tool_call)\b[^<>]*>)"
    r"\s*\Z"
)


class Wrapper(NamedTuple):
    """One kind of wrapper. One key of `inside` holds the answer; all other keys are in `beside`."""

    inside: frozenset[str]
    beside: frozenset[str]


def _keys(words: str) -> frozenset[str]:
    return frozenset(words.split())


WRAPPERS = (
    Wrapper(  # a tool call
        _keys("arguments parameters input args params kwargs tool_input action_input"),
        _keys("name function tool tool_name function_name action recipient_name type id call_id")
        | _keys("tool_call_id index"),
    ),
    Wrapper(_keys("function function_call tool_call"), _keys("type id call_id index")),
    Wrapper(  # the schema, with values in place of the schemas of its fields
        _keys("properties"),
        _keys("type title description required additionalProperties $schema $id $defs definitions")
        | _keys("name strict"),
    ),
)


async def acheck_unwrapped(
    validator: Validator, value: Any, whole: Checked, check: Check
) -> Checked:
    """Check the values inside the wrappers of `value`, and return the check of the only valid one.

    A repair in the result names the wrapper. If not exactly one inner value is valid, the result is
    `whole`, the check of `value` itself, perhaps with clearer issues. A user's function never
    judges inner values, because it may call a model.
    """
    if validator.schema is None:
        return whole
    fitting, refused = list[_Inner](), list[_Inner]()
    for path, inner in _insides(value, [], _DEPTH, validator.call_names):
        found = _Inner(path, inner, await check(inner))
        if not found.checked.ok:
            refused.append(found)
        elif not found.checked.ignores:
            fitting.append(found)
    if len(fitting) == 1:
        ((path, inner, checked),) = fitting
        return _told(checked, inner, [f"unwrapped {pointer(path)}"])
    if whole.ok:
        return whole
    tried = [_Inner([], value, whole), *refused]
    read = [one for each in tried if (one := await _with_texts_read(each, check))]
    return read[0] if len(read) == 1 else _explained(value, validator.schema, whole, refused)


def check_inside(validator: Validator, value: Any) -> Checked:
    """Check a value, or the only valid value inside its wrappers, without async code.

    Raises:
        TypeError: If `Validator.check` raises this error.

    Example:
        >>> from graph_retry.output import build_validator
        >>> check_inside(build_validator(dict[str, int]), {"arguments": {"n": 1}}).jsonable
        {'n': 1}
    """
    whole = validator.check(value)
    if whole.ok and not whole.ignores:
        return whole

    async def check(inner: Any) -> Checked:
        return validator.check(inner)

    return run_sync(acheck_unwrapped(validator, value, whole, check))


class _Inner(NamedTuple):
    """A value inside wrappers, with its path and its check."""

    path: list[str]
    value: Any
    checked: Checked


def _explained(
    value: Any, schema: dict[str, Any], whole: Checked, refused: list[_Inner]
) -> Checked:
    """Explain a refusal. If a wrapper surrounds the right fields, add an issue that names it."""
    if not is_schema_of(value, schema) and not has_fields(value, schema):
        framed = [inner for inner in refused if has_fields(inner.value, schema)]
        if len(framed) == 1:
            ((path, inner, checked),) = framed
            message = f"the answer is inside a frame: write the value of {pointer(path)} alone"
            issues = under(path, retold(inner, schema, checked.issues))
            return replace(whole, issues=[issue(path, message, "framed"), *issues])
    return replace(whole, issues=retold(value, schema, whole.issues))


async def _with_texts_read(refused: _Inner, check: Check) -> Checked | None:
    """Parse the refused texts that are JSON, and check again; return None if this does not help."""
    changed, told = refused.value, list[str]()
    for path in dict.fromkeys(one["path"] for one in refused.checked.issues):
        text = resolve_pointer(changed, path, None)
        found = _document(text) if isinstance(text, str) else ABSENT
        if found is not ABSENT:
            changed = set_pointer(changed, path, found, inplace=False)
            told.append(f"{path}: JSON inside a JSON string")
    checked = await check(changed) if told else refused.checked
    if not checked.ok or (refused.path and checked.ignores):
        return None
    outside = [f"unwrapped {pointer(refused.path)}"] if refused.path else []
    return _told(checked, changed, [*outside, *told])


def _told(checked: Checked, judged: Any, details: list[str]) -> Checked:
    made = [
        Repair(kind="unwrapped", position=None, grade="format", detail=detail) for detail in details
    ]
    return replace(checked, repairs=[*made, *checked.repairs], judged=judged)


def _insides(
    value: Any, path: list[str], depth: int, names: frozenset[str]
) -> Iterator[tuple[list[str], Any]]:
    """Yield each value inside the wrappers of an object, with its path.

    If a wrapper names one of several output classes, yield `{"name": …, "arguments": …}`.
    """
    if depth and is_object(value):
        for key, inner in value.items():
            if len(value) == 1 or any(_holds(row, value, key) for row in WRAPPERS):
                found = _document(inner)
                texts = [one for one in (key, *value.values()) if isinstance(one, str)]
                said = names.intersection(texts)
                if found is not ABSENT and said:
                    yield [*path, key], {"name": min(said), "arguments": found}
                elif found is not ABSENT:
                    yield [*path, key], found
                    yield from _insides(found, [*path, key], depth - 1, names)


def _holds(row: Wrapper, value: dict[str, Any], key: str) -> bool:
    return key in row.inside and row.beside.issuperset(value.keys() - {key})


def _document(value: Any) -> Any:
    """Return a non-empty object or list, perhaps from a JSON text; `ABSENT` for other values."""
    if is_object(value) or is_array(value):
        return value or ABSENT  # An empty one does not show that it is the answer.
    if isinstance(value, str) and value.lstrip()[:1] in {"{", "[", "`", "~"}:
        found = read_output(value)
        if found.ok and all(each["kind"] in _PLAIN for each in found.repairs):
            return read_digits(found.text)
    return ABSENT


def leaked_mark(value: Any, path: str = "") -> Issue | None:
    """Find a text that begins or ends with a mark of a tool call's syntax, such as `</parameter>`.

    Such a mark means that the provider cut the model's answer at the wrong place. A text with both
    the opening and the closing mark is ordinary markup.
    """
    if isinstance(value, str):
        found = _LEAK.search(value[:200]) or _LEAK.search(value, max(0, len(value) - 200))
        name = found["name"] if found else None
        if found is None or (name and found["last"][1] == "/" and f"<{name}" in value):
            return None
        mark = found["first"] or found["last"]
        message = f"the text has a mark of a call protocol, {mark}, so a part may be elsewhere"
        return issue(path, message, "protocol_mark", None, describe(value))
    inner = value.items() if is_object(value) else enumerate(value) if is_array(value) else ()
    leaks = (leaked_mark(child, path + pointer([key])) for key, child in inner)
    return next(filter(None, leaks), None)
