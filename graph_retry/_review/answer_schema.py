"""The JSON Schema of a valid answer to one question.

Clients get it as a plain dict. LangGraph does not validate with it, because then an invalid answer
would raise, and the error would hide the review.
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

from graph_retry._review.decisions import ROWS, offered
from graph_retry._review.question import Question

MAX_SCHEMA = 100_000
"""Maximum characters of the schema of params or output. A longer one is replaced by `{}`."""

_REASON = {"type": ["string", "null"]}


def response_schema(question: Question) -> dict[str, Any]:
    """Return a schema of the answers in canonical form, with one branch for each offered decision.

    All params of an edit are optional, because edits are partial. Locked params are left out.

    Example:
        >>> from graph_retry._params.codec import ParamsCodec
        >>> schema = response_schema(Question(
        ...     function_name="extract", attempt=1, review_id="r", params={"n": 1},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "30 s"},
        ...     allowed=("approve", "edit"), codec=ParamsCodec(dict),
        ... ))
        >>> [branch["properties"]["type"]["const"] for branch in schema["oneOf"]]
        ['approve', 'edit']
    """
    can, definitions = offered(question), dict[str, Any]()
    if "edit" in can:
        definitions["params"] = _params_schema(question)
    if "respond" in can:
        definitions["output"] = _placed(question.schema_of_output or {}, "output")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": question.title,
        "oneOf": [_branch(question, kind) for kind in can],
        **({"$defs": definitions} if definitions else {}),
    }


def _branch(question: Question, kind: str) -> dict[str, Any]:
    row, text = ROWS[kind], {"type": "string", "minLength": 1}
    data = [row.data] if row.data else []
    schemas = {name: {"$ref": f"#/$defs/{name}"} for name in ("params", "output")}
    offered_parts = ((name, part.schema(question)) for name, part in row.parts.items())
    parts = {name: schema for name, schema in offered_parts if schema is not None}
    either = [{"required": data}, {"anyOf": [{"required": [name]} for name in parts]}]
    return {
        "title": kind.capitalize(),
        "type": "object",
        "properties": {
            "type": {"const": kind},
            **{name: schemas.get(name, text) for name in data},
            **parts,
            "message": text if row.message == "needed" else _REASON,
            "attempt": {"const": question.attempt},
            "review_id": {"const": question.review_id},
            "decision_id": {"type": "string"},
            "by": {"type": "string"},
            "channel": {"type": "string"},
        },
        "required": [
            *("type", *(data if not parts else [])),
            *(["message"] if row.message == "needed" else []),
        ],
        **({"oneOf": either} if data and parts else {}),
        "additionalProperties": False,
    }


def _params_schema(question: Question) -> dict[str, Any]:
    whole = _placed(question.codec.schema(question.shown), "params")
    fields: dict[str, Any] = whole.get("properties") or {}
    others = whole.get("additionalProperties", True) if question.codec.fields is None else False
    partial: dict[str, Any] = {
        "type": "object",
        "properties": {name: node for name, node in fields.items() if name not in question.locked},
        "additionalProperties": others,
    }
    if question.locked:
        partial["propertyNames"] = {"not": {"enum": list(question.locked)}}
    return {key: whole[key] for key in ("title", "description", "$defs") if key in whole} | partial


def _placed(schema: dict[str, Any], name: str) -> dict[str, Any]:
    """Copy a schema for the place `#/$defs/{name}`, and adapt its local references to the place."""
    text = json.dumps({key: part for key, part in schema.items() if key != "$schema"}, default=str)
    if len(text) > MAX_SCHEMA:
        return {}
    if "$id" not in schema:  # References in a schema with an `$id` do not depend on its place.
        text = re.sub(r'("\$ref": "#)(?=[/"])', rf"\1/$defs/{name}", text)
    return cast("dict[str, Any]", json.loads(text))
