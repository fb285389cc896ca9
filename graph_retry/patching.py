"""Ask for corrections instead of a whole new answer, and put them into the last one.

The request names an answer by its hash. What comes back counts as corrections only if the params
of its attempt hold that request and it is a patch that applies; else it is a full answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from graph_retry.errors import AttemptFailed
from graph_retry.feedback import feedback, issue_lines, told
from graph_retry.ledger import digest, params_at, parsed_value
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.patch import apply_patch
from graph_retry.params.prompt import Prompt
from graph_retry.quoting import FEEDBACK, fenced, framed
from graph_retry.records import Attempt


def patch_feedback(
    *,
    over: int = 2_000,
    field: str | None = None,
    limit: int = 50_000,
    measure: Callable[[str], int] = len,
) -> Callable[[AttemptFailed, int, Any], Any]:
    """Make a feedback hook that asks for an RFC 6902 patch where the last answer is large.

    One below `over` characters of JSON or unreadable, or a patch that did not apply, is asked for
    again in full, as by `feedback`, which tells about `field`, `limit` and `measure`.

    Example:
        >>> from graph_retry import retry_llm_call
        >>> def model(prompt):
        ...     patch = '{"patch": [{"op": "replace", "path": "/a", "value": 1}]}'
        ...     return patch if "RFC 6902" in prompt else '{"a": "one", "b": 2}'
        >>> retry_llm_call(model, "Count.", output=dict[str, int], auto_retries=1,
        ...                feedback=patch_feedback(over=0))
        {'a': 1, 'b': 2}
    """
    in_full = feedback(field=field, limit=limit, measure=measure)

    def tell(error: AttemptFailed, attempt: int, params: Any) -> Any:
        base, asked = _correctable(error), None
        if base is not None and len(json.dumps(base)) >= over:
            text = [_request(error, base)]
            asked = told(Prompt(params, field), text, error.raw_output, limit, measure)
        return in_full(error, attempt, params) if asked is None else asked

    tell.__name__ = tell.__qualname__ = "patch_feedback"
    return tell


def patched(attempts: Sequence[Attempt], value: Any) -> dict[str, Any] | None:
    """Return, as `{"value": …}`, what the last answer's corrections make of an earlier one.

    It is None where `value` is no patch, was not asked for, or does not apply in full.
    """
    if not _is_patch(value):
        return None
    params = params_at(attempts)
    prompt = json.dumps(params.view) if params else ""
    for attempt in reversed(attempts[:-1]):
        try:
            base = parsed_value(attempt)
            if _name(base) in prompt:
                return {"value": apply_patch(base, value["patch"])}
        except ValueError:
            continue
    return None


def _correctable(error: AttemptFailed) -> Any:
    """Return the value of the last attempt, if it is one that a patch could correct."""
    wants_text = (error.output_schema or {}).get("type") == "string"
    if error.kind != "invalid_schema" or wants_text or not error.attempts:
        return None
    try:
        value = parsed_value(error.attempts[-1])
    except ValueError:
        return None
    return value if (is_object(value) or is_array(value)) and not _is_patch(value) else None


def _request(error: AttemptFailed, base: Any) -> str:
    quoted = fenced(json.dumps(base, ensure_ascii=False))
    wanted = (
        "Answer with the corrections only: an RFC 6902 patch of that JSON, of `add`, `remove` and "
        '`replace`, as {"patch": [{"op": "replace", "path": "/…", "value": …}, …]}.'
    )
    was = f"{_name(base)} was read as (quoted as data):"
    return framed(FEEDBACK, [was, quoted, *issue_lines(error), wanted])


def _name(value: Any) -> str:
    return f"Your answer {digest(value)}"


def _is_patch(value: Any) -> bool:
    if not is_object(value) or value.keys() != {"patch"} or not is_array(value["patch"]):
        return False
    return all(is_object(step) and _is_step(step) for step in value["patch"])


def _is_step(step: dict[str, Any]) -> bool:
    members = {"op", "path"} if step.get("op") == "remove" else {"op", "path", "value"}
    known = step.get("op") in ("add", "replace", "remove") and isinstance(step.get("path"), str)
    return known and step.keys() == members
