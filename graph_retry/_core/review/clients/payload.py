"""Build the value of a review's LangGraph interrupt, from which every client shows the review.

The value has the fields of the review, shortened and redacted. Beside them, it has the keys that
chat clients need, and the JSON Schema of a valid answer. The schema is a plain dict, because
LangGraph would use any other schema to validate answers. LangGraph's error about an invalid answer
would hide the review.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any, cast

from pydantic_core import to_jsonable_python

from graph_retry._core.ground.issues import SHOWN_ISSUES, cut, excerpt, issue
from graph_retry._core.ground.json import as_text
from graph_retry._core.ground.quoting import one_line
from graph_retry._core.ground.redact import property_names, redacted, redacted_issue
from graph_retry._core.ground.schemas import storable
from graph_retry._core.ground.wording import counted
from graph_retry._core.review.clients.description import describe, shown_title
from graph_retry._core.review.clients.table import CLIENTS, Form
from graph_retry._core.review.decisions import ROWS, offered
from graph_retry._core.review.forms.originals import form_args
from graph_retry._core.review.review_record import SHOWN, Question, in_value
from graph_retry.lossless._ground import as_repr
from graph_retry.records import INTERVENTION

MAX_SCHEMA = 100_000
"""Maximum characters of the schema of params or output. A longer schema is replaced by `{}`."""

_REASON = {"type": ["string", "null"]}
MAX_ERROR = 1_000
SHOWN_FACT = 300
"""Maximum number of characters of one fact in a printed value."""


class Brief(dict[str, Any]):
    """The dict of an interrupt's value. Printing it shows only the first entries.

    A saved, copied or pickled `Brief` is a plain dict with all entries.

    Example:
        >>> Brief(type="llm_intervention", error="TimeoutError: no answer", params={"n": 1})
        {'type': 'llm_intervention', 'error': 'TimeoutError: no answer', … 1 more key}
    """

    def __repr__(self) -> str:
        """Write the entries up to `error`, and count the others."""
        names = list(self)
        shown = names[: names.index("error") + 1] if "error" in self else []
        facts = [f"{as_repr(name)}: {cut(repr(self[name]), SHOWN_FACT)}, " for name in shown]
        return f"{{{''.join(facts)}… {counted(len(names) - len(shown), 'more key')}}}"

    def __reduce__(self) -> tuple[type, tuple[dict[str, Any]]]:
        """Return the parts of a plain dict, so that copies and other processes get one."""
        return dict, (dict(self),)


def build_payload(question: Question) -> dict[str, Any]:
    """Return the value of the interrupt with which a question is asked.

    `params`, `suggested_params` and an `output` that a person may take are never shortened. Other
    long fields are shortened, such as the raw output. A question about a valid output has no
    `failure`.

    Example:
        >>> from graph_retry._core.params.codec import ParamsCodec
        >>> payload = build_payload(Question(
        ...     function_name="extract", attempt=2, review_id="r", params={"n": 1},
        ...     failure={"kind": "transient", "type": "TimeoutError", "message": "no answer"},
        ...     codec=ParamsCodec(dict),
        ... ))
        >>> payload["message"]
        'extract failed (attempt 2): TimeoutError: no answer'
    """
    question = _redacted(question)
    question = replace(question, issues=[issue(**one) for one in question.issues[:SHOWN_ISSUES]])
    title = shown_title(question)
    form = Form(
        title,
        title if question.problem else f"{question.headline}: {_summary(question)}",
        form_args(question.shown),
        describe(question),
        list(offered(question)),
        response_schema(question),
    )
    drawn = {key: part for client in CLIENTS for key, part in client.draw(form).items()}
    return {"type": INTERVENTION, **in_value(_bounded(question)), **drawn}


def _redacted(question: Question) -> Question:
    """Return the question with its params, outputs and texts redacted.

    The raw output, the issues, the failure and the diff are already redacted.
    """
    redact = question.redact
    if redact is None:
        return question
    names = {
        "params": question.codec.names,
        "output": property_names(question.schema_of_output),
        "text": frozenset[str](),
    }
    private = {
        name: redacted(getattr(question, name), redact, names[shown.private])
        for name, shown in SHOWN.items()
        if shown.private
    }
    declared = names["params"] | names["output"]  # An answer sends params or an output.
    answer_issues = [redacted_issue(one, redact, declared) for one in question.answer_issues]
    return replace(question, redacted=True, answer_issues=answer_issues, **private)


def _summary(question: Question) -> str:
    failure = question.failure
    return one_line(as_text(question.output, 2) if failure is None else failure["message"], 300)


def _bounded(question: Question) -> Question:
    failure, error = question.failure, ""
    if failure is not None:
        failure = {**failure, "message": cut(failure["message"], MAX_ERROR)}
        error = cut(f"{failure['type']}: {failure['message']}", MAX_ERROR)
    facts = {name: _at_most(shown.most, getattr(question, name)) for name, shown in SHOWN.items()}
    return replace(question, **{**facts, "failure": failure, "error": error})


def _at_most(most: int | None, fact: Any) -> Any:
    if most is None or not fact:
        return fact
    return excerpt(fact, most) if isinstance(fact, str) else fact[:most]


def response_schema(question: Question) -> dict[str, Any]:
    """Return the JSON Schema of valid answers, with one branch for each offered decision.

    All params of an edit are optional. Locked params are left out.

    Example:
        >>> from graph_retry._core.params.codec import ParamsCodec
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
    """Return a copy of a schema for the place `#/$defs/{name}`, with adapted references."""
    plain = storable(to_jsonable_python(schema, fallback=str, bytes_mode="base64"))
    text = json.dumps({key: part for key, part in plain.items() if key != "$schema"})
    if len(text) > MAX_SCHEMA:
        return {}
    if "$id" not in schema:  # References in a schema with an `$id` do not depend on its place.
        text = re.sub(r'("\$ref": "#)(?=[/"])', rf"\1/$defs/{name}", text)
    return cast("dict[str, Any]", json.loads(text))
