"""Judge an answer by its question alone, before the run judges it by the call's types.

A question carries JSON Schemas of the params and of the output. The types behind these schemas may
refuse more, and may convert a value that a schema refuses. An error found here is therefore a
warning, and only the run refuses the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph_retry._core.ground.issues import top_of
from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.schemas import kinds_of
from graph_retry._core.output.json_schema.validator import SchemaValidator
from graph_retry._core.review.forms.restore import Field, merged
from graph_retry._core.review.review import Review
from graph_retry.records import Issue


def schemas_of(review: Review, word: str) -> dict[str, Any]:
    """Return the JSON Schemas of a decision's keys, which the question offers."""
    for branch in review.value["response_schema"]["oneOf"]:
        if branch["properties"]["type"]["const"] == word:
            schemas: dict[str, Any] = branch["properties"]
            return schemas
    return {}


def with_edit(review: Review, params: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """Return the shown params as an edit will change them, and the fields that cannot be read."""
    issues: list[Issue] = []
    root, node = review.value["response_schema"], review.params_schema or {}
    is_open = bool(node.get("additionalProperties", True))
    field = Field("", node, root, review.shown, review.shown, is_open=is_open)
    return merged(dict(params), field, [node], issues), issues


def issues_in(review: Review, decision: Mapping[str, Any]) -> list[Issue]:
    """List the errors that the question's schemas find in the values of a decision.

    A text for a type without texts is not judged, because the run reads it as JSON.
    """
    told: list[Issue] = []
    for key, value in decision.items():
        schema = schemas_of(review, decision["type"]).get(key)
        if key == "params" and is_object(value):
            whole, unread = with_edit(review, value)
            wrong = [] if unread else _wrong(review, schema, whole)
            # A redacted text may break the schema, so only the changed fields are judged.
            told += unread or [one for one in wrong if top_of(one) in value]
        elif not isinstance(value, str) or "string" in kinds_of(schema, _root(review)):
            told += _wrong(review, schema, value)
    return told


def _wrong(review: Review, schema: Any, value: Any) -> list[Issue]:
    try:
        return (
            SchemaValidator({**_root(review), "allOf": [{} if schema is None else schema]})
            .check(value)
            .issues
        )
    except ValueError:  # The schema has a part that our validator does not support.
        return []


def _root(review: Review) -> dict[str, Any]:
    return {"$defs": review.value["response_schema"].get("$defs", {})}
