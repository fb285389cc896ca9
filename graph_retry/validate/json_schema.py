"""A validator for JSON Schema. Importing this module imports `jsonschema`."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

import jsonschema
import jsonschema_specifications  # type: ignore[import-untyped]
from pydantic_core import to_jsonable_python
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from graph_retry.params.jsonlike import is_object
from graph_retry.records import Issue
from graph_retry.validate.issues import attempt, cut, literal, pointer, schema_issue
from graph_retry.validate.validator import MAX_ISSUES, Validator, json_problem

DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
PATTERN_CHARS = 10_000
_REGISTRY: Any = jsonschema_specifications.REGISTRY
_lib: Any = jsonschema  # Its stubs leave much untyped.


class SchemaValidator(Validator):
    """Validate plain JSON against a JSON Schema of any draft from 4 on; nothing is converted.

    The draft is the one `$schema` names, 2020-12 by default. References inside the schema and to
    the drafts themselves work; nothing is fetched. `format` is an annotation and not checked. A
    `pattern` is tried by `re` on up to 10,000 characters, so nested quantifiers can take for ever.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        if problem := json_problem(schema):
            raise _faulty(f"is not plain JSON at {literal(problem['path'])}: {problem['message']}")
        self.schema = copy.deepcopy(schema)
        self.name = cut(str(schema.get("title") or "JSON value"), 80)
        uri = schema.get("$schema", DEFAULT_DRAFT)
        draft = _lib.validators.validator_for({"$schema": str(uri)}, default=_lib.Draft3Validator)
        if draft is _lib.Draft3Validator:
            raise _faulty(f"has `$schema` {literal(uri)}; name a draft from 4 on, or leave it out")
        # The draft is settled; left in, `$schema` would bring the unextended draft class back.
        document = {key: value for key, value in self.schema.items() if key != "$schema"}
        try:
            draft.check_schema(document)
        except jsonschema.SchemaError as error:
            place = literal(pointer(error.absolute_path))
            raise _faulty(f"is not valid at {place}: {cut(error.message, 300)}") from error
        _check_references(document, specification_with(draft.META_SCHEMA["$schema"]))
        extended = _lib.validators.extend(draft, {"pattern": _pattern, "required": _required})
        self._validator = extended(document, registry=_REGISTRY)

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        """Find the issues; a model instance or the like is taken as the JSON it dumps to."""
        value, unreadable = attempt(to_jsonable_python, value)
        errors = islice(self._validator.iter_errors(value), MAX_ISSUES + 1)
        found, broken = attempt(lambda: [schema_issue(error) for error in errors])
        return value, unreadable or broken or found


def _faulty(what: str) -> ValueError:
    return ValueError(f"`output` JSON Schema {what}")


def _check_references(document: dict[str, Any], specification: Any) -> None:
    """Raise `ValueError` for a reference that leads to nothing in the document or the drafts."""
    root = specification.create_resource(document)
    pending = [(root, _REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    while pending:
        resource, resolver = pending.pop()
        if not is_object(contents := resource.contents) or id(contents) in seen:
            continue
        seen.add(id(contents))
        pending += [(each, resolver.in_subresource(each)) for each in resource.subresources()]
        references = map(contents.get, ("$ref", "$dynamicRef"))
        for reference in [each for each in references if isinstance(each, str)]:
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError) as error:
                where = "is not in it; nothing is fetched: put the definition under `$defs`"
                raise _faulty(f"refers to {literal(reference)}, which {where}") from error
            pending.append((specification.create_resource(target.contents), target.resolver))


def _pattern(validator: Any, pattern: str, text: Any, _: Any) -> Iterator[Any]:
    is_text = validator.is_type(text, "string")
    if is_text and len(text) > PATTERN_CHARS:
        yield _lib.ValidationError(
            f"over {PATTERN_CHARS:,} characters are not tried on {pattern!r}"
        )
    elif is_text and not re.search(pattern, text):
        yield _lib.ValidationError(f"{text!r} does not match {pattern!r}")


def _required(validator: Any, names: Any, value: Any, _: Any) -> Iterator[Any]:
    """Report a missing property at its own path, where the stock rule names its parent."""
    for name in names if validator.is_type(value, "object") else ():
        if name not in value:
            yield _lib.ValidationError(f"{name!r} is a required property", path=[name])
