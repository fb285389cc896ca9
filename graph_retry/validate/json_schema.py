"""A validator for JSON Schema. Importing this module imports `jsonschema`."""

import copy
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema import Draft3Validator, SchemaError, ValidationError
from jsonschema import validators as _typed_validators
from jsonschema_specifications import (  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]
    REGISTRY,
)
from pydantic_core import to_jsonable_python
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from graph_retry.records import Issue
from graph_retry.validate.caught import attempt
from graph_retry.validate.issues import MAX_ISSUES, cut, literal, pointer
from graph_retry.validate.patterns import match_pattern
from graph_retry.validate.plain import NOT_JSON, is_dict, json_problem
from graph_retry.validate.schema_issues import schema_issue
from graph_retry.validate.validator import Checked

DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_validators: Any = _typed_validators  # Its stubs leave much untyped.


class SchemaValidator:
    """Validate plain JSON against a JSON Schema of any draft from 4 on; nothing is converted.

    The draft is the one `$schema` names, 2020-12 by default. References inside the schema and to
    the drafts themselves work; nothing is fetched. `format` is an annotation and not checked.

    A `pattern` is matched in linear time where it allows that (no look-around, no back-reference);
    the others are tried on strings of up to 10,000 characters and can still be slow, as can
    `patternProperties`.
    """

    wants_text = False

    def __init__(self, schema: dict[str, Any], name: str | None = None) -> None:
        """Refuse a schema that is not valid or has a reference that leads nowhere."""
        if problem := json_problem(schema):
            raise ValueError(
                f"`output` JSON Schema is not plain JSON at {literal(problem['path'])}: "
                f"{problem['message']} ({problem['received']})"
            )
        self.schema: dict[str, Any] | None = copy.deepcopy(schema)
        self.name = cut(name or str(schema.get("title") or "JSON value"), 80)
        draft = _draft(schema.get("$schema", DEFAULT_DRAFT))
        # The draft is settled; left in, `$schema` would bring the unextended draft class back.
        document = {key: value for key, value in self.schema.items() if key != "$schema"}
        _refuse_faults(draft, document)
        keywords = {"pattern": match_pattern, "required": _required}
        self._validator = _validators.extend(draft, keywords)(document, registry=REGISTRY)

    def check(self, value: Any) -> Checked:
        """Validate `value`; a model instance or the like is taken as the JSON it dumps to."""
        problem = json_problem(value)
        if problem and problem["code"] == NOT_JSON:
            value, issues = attempt(to_jsonable_python, value)
            if issues:
                return Checked.refused(issues)
            problem = json_problem(value)
        if problem:
            return Checked.refused([problem])
        found, issues = attempt(self._issues, value)
        issues = issues or found
        return Checked.refused(issues) if issues else Checked(value=value, jsonable=value)

    def rebuild(self, jsonable: Any) -> Any:
        """Return `jsonable`: it is the value."""
        return jsonable

    def _issues(self, value: Any) -> list[Issue]:
        errors = islice(self._validator.iter_errors(value), MAX_ISSUES + 1)
        return [schema_issue(error) for error in errors]


def _draft(uri: Any) -> Any:
    given = {"$schema": uri} if isinstance(uri, str) else True
    draft = _validators.validator_for(given, default=None)
    if draft is None or draft is Draft3Validator:
        raise ValueError(
            f"`output` JSON Schema has `$schema` {literal(uri)}; drafts 4, 6, 7, 2019-09 and "
            f"2020-12 are known: leave it out, or write for example {DEFAULT_DRAFT!r}"
        )
    return draft


def _refuse_faults(draft: Any, document: dict[str, Any]) -> None:
    """Raise `ValueError` for an invalid schema or a reference that leads to none."""
    specification: Any = specification_with(draft.META_SCHEMA["$schema"])
    _check_schema(draft, document)
    root = specification.create_resource(document)
    pending = [(root, REGISTRY.resolver_with_root(root))]
    seen: set[int] = set()
    while pending:
        resource, resolver = pending.pop()
        contents = resource.contents
        if not is_dict(contents) or id(contents) in seen:
            continue
        seen.add(id(contents))
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if not isinstance(reference := contents.get(keyword), str):
                continue
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError) as error:
                raise ValueError(
                    f"`output` JSON Schema has a `{keyword}` to {literal(reference)}, which is not "
                    "in the schema; nothing is fetched: put the definition under `$defs`"
                ) from error
            # It may lie where no keyword of the draft looks for schemas.
            _check_schema(draft, target.contents)
            pending.append((specification.create_resource(target.contents), target.resolver))
        pending += [(sub, resolver.in_subresource(sub)) for sub in resource.subresources()]


def _check_schema(draft: Any, contents: Any) -> None:
    try:
        draft.check_schema(contents)
    except SchemaError as error:
        raise ValueError(
            f"`output` JSON Schema is not valid at {literal(pointer(error.absolute_path))}: "
            f"{cut(error.message, 300)}"
        ) from error


def _required(validator: Any, names: Any, value: Any, _: Any) -> Iterator[ValidationError]:
    """Report a missing property at its own path, where the stock rule names its parent."""
    if validator.is_type(value, "object"):
        for name in names:
            if name not in value:
                yield ValidationError(f"{name!r} is a required property", path=[name])
