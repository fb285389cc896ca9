"""The validator for a JSON Schema. It is imported on demand, because `jsonschema` loads slowly."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta
from difflib import get_close_matches
from functools import cache, partial
from ipaddress import IPv4Address, IPv6Address
from typing import Any, Literal
from uuid import UUID

import jsonschema
import jsonschema_specifications  # type: ignore[import-untyped]
from pydantic import AnyUrl, TypeAdapter
from pydantic_core import to_jsonable_python
from referencing.exceptions import Unresolvable
from referencing.jsonschema import specification_with

from graph_retry._core.ground.issues import (
    MAX_ISSUES,
    attempt,
    cut,
    issue,
    json_problem,
    literal,
    schema_issues,
)
from graph_retry._core.ground.json import is_array, is_object, pointer, with_texts
from graph_retry._core.ground.schemas import REFERENCES
from graph_retry._core.output.json_schema.bounded_work import (
    DYNAMIC,
    TooMuchWorkError,
    errors_of,
    with_bounded_work,
)
from graph_retry._core.output.json_schema.linear_patterns import matcher, with_linear_patterns
from graph_retry._core.output.partial.settled import Judge, PlacedError
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import error_text
from graph_retry.records import Issue

_LOG = logging.getLogger("graph_retry")

DEFAULT_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REGISTRY: Any = jsonschema_specifications.REGISTRY
_lib: Any = jsonschema  # The type stubs of `jsonschema` leave much untyped.
_KEYWORDS = frozenset(
    {"$id", "id", "$anchor", "$comment", "$defs", "$vocabulary", "definitions", "then", "else"}
    | {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"}
    | {"format", "contentEncoding", "contentMediaType", "contentSchema", "$recursiveRef"}
).union(_lib.Draft4Validator.VALIDATORS, _lib.Draft202012Validator.VALIDATORS)
"""The keywords of all drafts. A schema without any of these accepts every value."""
_JUDGING = {
    word.lower(): word
    for word in {**_lib.Draft4Validator.VALIDATORS, **_lib.Draft202012Validator.VALIDATORS}
}
_FORMATS = frozenset(
    {"date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"}
    | {"ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template"}
    | {"json-pointer", "relative-json-pointer", "regex"}
)
"""The formats of all drafts. Other formats are not standard, and are not checked."""
_TYPES: dict[str, Any] = {
    "date": date,
    "date-time": datetime,
    "time": time,
    "duration": timedelta,
    "uuid": UUID,
    "ipv4": IPv4Address,
    "ipv6": IPv6Address,
    "uri": AnyUrl,
}


class SchemaValidator(Validator):
    """Validate plain JSON by a JSON Schema of draft 4 or later, without conversions.

    `$schema` names the draft; the default is 2020-12. A reference may lead to a place in the schema
    or to a draft. Nothing is fetched from the network.

    `format` is checked only with `check_formats`. `check_formats="types"` checks only the formats
    that pydantic writes for Python types, such as `date`. A text then fits if the Python type
    accepts it.

    Patterns are matched in linear time. A pattern is refused if it needs look-around,
    back-references, or more than some thousand repeats.
    """

    def __init__(
        self, schema: dict[str, Any], *, check_formats: bool | Literal["types"] = False
    ) -> None:
        if problem := json_problem(schema):
            of_types = any(isinstance(each, type) for each in schema.values())
            how = ": name the fields in a TypedDict or a pydantic model" if of_types else ""
            where = literal(problem["path"])
            raise _faulty(f"is not plain JSON at {where}: {problem['message']}{how}")
        own: dict[str, Any] = with_texts(schema, str)  # No two places share a dict.
        self.schema = own
        self.name = cut(str(schema.get("title") or "JSON value"), 80)
        uri = schema.get("$schema", DEFAULT_DRAFT)
        draft = _lib.validators.validator_for({"$schema": str(uri)}, default=_lib.Draft3Validator)
        if draft is _lib.Draft3Validator:
            raise _faulty(f"has `$schema` {literal(uri)}; name a draft from 4 on, or leave it out")
        # With `$schema`, `jsonschema` would choose its own class for the draft, and not ours.
        document = {key: value for key, value in own.items() if key != "$schema"}
        try:
            draft.check_schema(document, format_checker=_lib.FormatChecker(formats=()))
        except jsonschema.SchemaError as error:
            place = literal(pointer(error.absolute_path))
            raise _faulty(f"is not valid at {place}: {cut(error.message, 300)}") from error
        except RecursionError:
            raise _faulty("is nested too deeply: name its parts under `$defs`") from None
        if document and not any(key in _KEYWORDS or key.startswith("x-") for key in document):
            raise _faulty(
                f"has no keyword of JSON Schema, only {literal([*document])}, and would accept "
                'anything: give a type such as `dict[str, str]`, or `{"properties": …}`'
            )
        words = _check_parts(document, specification_with(draft.META_SCHEMA["$schema"]))
        self._counts_elements = not words.isdisjoint({"maxItems", "prefixItems", "additionalItems"})
        remembers = words.isdisjoint(DYNAMIC)
        bounded = with_bounded_work(with_linear_patterns(draft), remembers=remembers)
        checker = _format_checker(document, draft) if check_formats is True else None
        checker = _types_as_formats() if check_formats == "types" else checker
        self._validator = bounded(document, registry=_REGISTRY, format_checker=checker)

    @property
    def judge(self) -> Judge | None:
        """The check for incomplete values."""
        return Judge(self._errors_so_far, counts_elements=self._counts_elements)

    def _errors_so_far(self, value: Any) -> list[PlacedError]:
        found, failed = attempt(errors_of, self._validator, value, MAX_ISSUES)
        local: Iterator[Any] = iter(()) if failed else _local(found)
        return [PlacedError((*e.absolute_path,), e.validator, schema_issues(e)[0]) for e in local]

    def has_place(self, value: Any) -> bool:
        """Return whether a value is valid."""
        return self.check(value).ok

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        """Convert a value to JSON, and return it with its issues."""
        value, unreadable = attempt(to_jsonable_python, value)
        problem = None if unreadable else json_problem(value)
        if problem:
            return value, [problem]
        issues, broken = attempt(self._issues, value)
        return value, unreadable or broken or issues

    def _issues(self, value: Any) -> list[Issue]:
        try:
            found = errors_of(self._validator, value, MAX_ISSUES + 1)
            return [one for error in found for one in schema_issues(error)]
        except TooMuchWorkError:
            again = "this cannot be judged in bounded time: the schema judges its parts repeatedly"
            return [issue("", again, "too_much_work")]
        except RecursionError:
            endless = "this is nested too deeply to be judged, or a reference leads back to itself"
            return [issue("", endless, "too_deep")]


_LOCAL = frozenset({"items", "prefixItems", "additionalItems", "additionalProperties", "allOf"})


def _local(errors: Iterable[Any]) -> Iterator[Any]:
    """Yield the errors that depend only on the value at the error's own path.

    For example, an error under `then` is left out, because it depends on other members. If only one
    branch of a union allows the value's type, its errors replace the error of the union.
    """
    for error in errors:
        if not _leads_only_down(error):
            continue
        branches: dict[Any, list[Any]] = {}
        for one in error.context if error.validator in ("anyOf", "oneOf") else ():
            branches.setdefault(one.relative_schema_path[0], []).append(one)
        possible = [branch for branch in branches.values() if not any(map(_refuses_type, branch))]
        yield from _local(possible[0]) if len(possible) == 1 else [error]


def _refuses_type(error: Any) -> bool:
    is_whole = not error.relative_path
    return is_whole and error.validator == "type" and _leads_only_down(error)


def _leads_only_down(error: Any) -> bool:
    """Return whether all keywords before the last only choose a schema by a key or an index."""
    keywords = iter([*error.relative_schema_path][:-1])
    for keyword in keywords:
        if keyword in ("properties", "patternProperties"):
            next(keywords, None)  # The next item is the name of a member.
        elif isinstance(keyword, str) and keyword not in _LOCAL:
            return False
    return True


def _faulty(what: str) -> ValueError:
    return ValueError(f"`output` JSON Schema {what}")


def _format_checker(document: dict[str, Any], draft: Any) -> Any:
    """Return the checker for `format`; refuse standard formats that need a missing package."""
    checker = draft.FORMAT_CHECKER
    for contents in _contents(document, specification_with(draft.META_SCHEMA["$schema"])):
        name = contents.get("format")
        if name in _FORMATS and name not in checker.checkers:
            raise _faulty(
                f"has the format {literal(name)}, which cannot be checked with what is installed: "
                "`pip install 'jsonschema[format-nongpl]'`, or leave `check_formats` out"
            )
    return checker


@cache
def _types_as_formats() -> Any:
    """Return a checker that validates each format with pydantic's Python type for this format."""
    checker = _lib.FormatChecker(formats=())

    def judge(kind: TypeAdapter[Any], value: object) -> bool:
        return not isinstance(value, str) or kind.validate_python(value) is not None

    for name, kind in _TYPES.items():
        checker.checks(name, raises=ValueError)(partial(judge, TypeAdapter[Any](kind)))
    return checker


def _check_parts(document: dict[str, Any], specification: Any) -> set[str]:
    """Return all keywords of a schema. Warn if a keyword looks like a misspelled check.

    Raises:
        ValueError: If a reference has no target, or a pattern is not linear.
    """
    words: set[str] = set()
    for contents in _contents(document, specification):
        _check_patterns(contents)
        words.update(contents, ["prefixItems"] if is_array(contents.get("items")) else [])
    for word in sorted(word for word in words - _KEYWORDS if not word.startswith("x-")):
        for near in get_close_matches(word.lower(), _JUDGING, 1, 0.83):
            _LOG.warning(
                "`output` JSON Schema has the unknown keyword `%s`, which checks nothing. "
                "Did you mean `%s`?",
                *(cut(word, 80), _JUDGING[near]),
            )
    if {"unevaluatedProperties", "patternProperties"} <= words:
        both = "has both `unevaluatedProperties` and `patternProperties`"
        raise _faulty(f"{both}, which would match by backtracking: use `additionalProperties`")
    return words


def _contents(document: dict[str, Any], specification: Any) -> Iterator[dict[str, Any]]:
    """Yield each inner schema once; raise `ValueError` if a reference has no target."""
    root = specification.create_resource(document)
    pending = [(root, _REGISTRY.resolver_with_root(root))]
    seen: dict[int, dict[str, Any]] = {}
    while pending:
        resource, resolver = pending.pop()
        if not is_object(contents := resource.contents) or id(contents) in seen:
            continue
        seen[id(contents)] = contents
        yield contents
        pending += [(part, resolver.in_subresource(part)) for part in resource.subresources()]
        references = map(contents.get, REFERENCES)
        for reference in (name for name in references if isinstance(name, str)):
            try:
                target = resolver.lookup(reference)
            except (Unresolvable, ValueError) as error:
                where = "is not in it; nothing is fetched: put the definition under `$defs`"
                raise _faulty(f"refers to {literal(reference)}, which {where}") from error
            pending.append((specification.create_resource(target.contents), target.resolver))


def _check_patterns(contents: dict[str, Any]) -> None:
    pattern, named = contents.get("pattern"), contents.get("patternProperties")
    for one in ([pattern] if isinstance(pattern, str) else []) + [*(named or ())]:
        try:
            matcher(one)
        except ValueError as error:
            how = "use several patterns in `allOf`, `maxLength`, or a validator function"
            what = f"has the pattern {literal(one, 80)}, which cannot be matched in linear"
            raise _faulty(f"{what} time ({cut(error_text(error), 120)}): {how}") from None
