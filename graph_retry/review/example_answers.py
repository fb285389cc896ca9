"""Answers a person can copy, one for each decision that is offered."""

import json
from typing import Any

from graph_retry.forms.field_kinds import resolved
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.review.decision import DecisionType
from graph_retry.review.guarded import guarded
from graph_retry.review.question import Question, UnusableAnswerError

_MAX_VALUE = 120
_MAX_ANSWER = 400
_MAX_DEPTH = 6
_PLAIN: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "null": None,
    "array": [],
    "object": {},
}


def example_answers(question: Question) -> dict[DecisionType, str]:
    """Return one JSON text for each offered decision, all of them valid answers as they stand.

    The one exception is an output nothing is known about: it is written as `…`.

    Example:
        >>> from graph_retry.params.codec import ParamsCodec
        >>> example_answers(Question(
        ...     name="extract", attempt=1, review_id="r", params={"n": 1}, codec=ParamsCodec(dict),
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     allowed=("approve", "edit"),
        ... ))
        {'approve': '{"type": "approve"}', 'edit': '{"type": "edit", "params": {"n": 1}}'}
    """
    answers: dict[DecisionType, str] = {
        "approve": _text({"type": "approve"}),
        "edit": _text({"type": "edit", "params": _small_field(question)}),
        "reject": _text({"type": "reject", "message": "why to stop"}),
        "respond": _respond(question),
    }
    return {kind: answers[kind] for kind in question.offered}


def _small_field(question: Question) -> dict[str, Any]:
    for name, value in question.shown.items():
        if name not in question.locked and len(_text({name: value})) <= _MAX_VALUE:
            return {name: value}
    return {}


def _respond(question: Question) -> str:
    unknown = '{"type": "respond", "output": …}'
    schema = question.output_schema
    if schema is None:
        return unknown
    sample = _sample(schema, schema)
    try:
        issues = guarded(lambda: question.check_output(sample), "The example")
    except UnusableAnswerError:
        return unknown
    answer = _text({"type": "respond", "output": sample})
    return unknown if issues or len(answer) > _MAX_ANSWER else answer


def _sample(node: Any, root: dict[str, Any], depth: int = 0) -> Any:
    """Make a value that probably fits a schema node."""
    if not is_object(node) or depth > _MAX_DEPTH:
        return "text"
    for key in ("const", "default"):
        if key in node:
            return node[key]
    for key in ("examples", "enum", "anyOf", "oneOf", "allOf"):
        options: list[Any] = node.get(key) or []
        if options:
            first = options[0]
            return first if key in ("examples", "enum") else _sample(first, root, depth + 1)
    if "$ref" in node:
        return _sample(resolved(node, root), root, depth + 1)
    kind = node.get("type", "object" if "properties" in node else "string")
    if is_array(kind):
        kind = kind[0]
    if kind == "object":
        fields: dict[str, Any] = node.get("properties") or {}
        required: list[str] = node.get("required") or []
        return {name: _sample(fields.get(name), root, depth + 1) for name in required}
    if kind == "array" and node.get("minItems"):
        return [_sample(node.get("items"), root, depth + 1)]
    return _PLAIN.get(str(kind))


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
