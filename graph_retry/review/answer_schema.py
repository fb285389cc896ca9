"""The JSON Schema of a good answer to one question.

It is a plain dict shown to clients; LangGraph would let a type's validation error hide the review.
"""

from collections.abc import Callable
from typing import Any

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.review.decision import DecisionType
from graph_retry.review.question import Question

_TEXT = {"type": "string"}
_DATA_KEYWORDS = frozenset({"const", "default", "enum", "example", "examples"})
_NAME_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})


def response_schema(question: Question) -> dict[str, Any]:
    """Return a schema of the canonical answers: one branch for each decision that is offered.

    The params of an edit are all optional, since edits are partial, and locked ones are left out.

    Example:
        >>> from graph_retry.params.codec import ParamsCodec
        >>> schema = response_schema(Question(
        ...     name="extract", attempt=1, review_id="r", params={"n": 1}, codec=ParamsCodec(dict),
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     allowed=("approve", "edit"),
        ... ))
        >>> [branch["properties"]["type"]["const"] for branch in schema["oneOf"]]
        ['approve', 'edit']
    """
    makers: dict[DecisionType, Callable[[], dict[str, Any]]] = {
        "approve": lambda: _branch(question, "approve"),
        "edit": lambda: _branch(question, "edit", params={"$ref": "#/$defs/params"}),
        "reject": lambda: _branch(question, "reject"),
        "respond": lambda: _branch(question, "respond", output={"$ref": "#/$defs/output"}),
    }
    definitions: dict[str, Any] = {}
    if "edit" in question.offered:
        definitions["params"] = _params_schema(question)
    if "respond" in question.offered:
        definitions["output"] = _placed(question.output_schema or {}, "output")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": question.title,
        "oneOf": [makers[kind]() for kind in question.offered],
        **({"$defs": definitions} if definitions else {}),
    }


def _branch(question: Question, kind: DecisionType, **data: dict[str, Any]) -> dict[str, Any]:
    return {
        "title": kind.capitalize(),
        "type": "object",
        "properties": {
            "type": {"const": kind},
            **data,
            "message": {"type": ["string", "null"]},
            "attempt": {"const": question.attempt},
            "review_id": {"const": question.review_id},
            "decision_id": _TEXT,
            "by": _TEXT,
        },
        "required": ["type", *data],
        "additionalProperties": False,
    }


def _params_schema(question: Question) -> dict[str, Any]:
    whole = _placed(question.codec.schema(question.shown), "params")
    fields: dict[str, Any] = whole.get("properties") or {}
    others = whole.get("additionalProperties", True) if question.codec.fields is None else False
    partial: dict[str, Any] = {
        "type": "object",
        "properties": {k: each for k, each in fields.items() if k not in question.locked},
        "additionalProperties": others,
    }
    if others and question.locked:
        partial["propertyNames"] = {"not": {"enum": list(question.locked)}}
    kept = ("title", "description", "$defs")
    return {**{key: whole[key] for key in kept if key in whole}, **partial}


def _placed(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Copy a schema to stand at `#/$defs/{name}`, with its local references pointing there."""

    def copy(node: Any) -> Any:
        if is_array(node):
            return [copy(each) for each in node]
        if not is_object(node):
            return node
        found = node
        if isinstance(found.get("$id"), str):  # a document of its own resolves its own references
            return found
        return {key: entry(key, each) for key, each in found.items()}

    def entry(key: str, value: Any) -> Any:
        if key == "$ref" and isinstance(value, str):
            local = value == "#" or value.startswith("#/")
            return f"#/$defs/{name}{value[1:]}" if local else value
        if key in _NAME_MAPS and is_object(value):
            return {k: copy(each) for k, each in value.items()}
        return value if key in _DATA_KEYWORDS else copy(value)

    placed: dict[str, Any] = copy(schema)
    return {key: each for key, each in placed.items() if key != "$schema"}
