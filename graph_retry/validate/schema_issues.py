"""Errors of `jsonschema` as issues. Importing this module imports `jsonschema`."""

from typing import Any

from jsonschema import ValidationError as SchemaViolation
from jsonschema import exceptions

from graph_retry.records import Issue
from graph_retry.validate.issues import describe, issue, literal, pointer

_exceptions: Any = exceptions  # Its stubs leave much untyped.


def schema_issue(error: SchemaViolation) -> Issue:
    """Make an issue of one error; its code is the schema keyword."""
    message = _message(error)
    closest: SchemaViolation = _exceptions.best_match([error])
    if closest is not error:
        place = pointer(closest.absolute_path) or "the value"
        message = f"{message}; closest is, at {place}: {_message(closest)}"
    keyword: Any = error.validator
    if not isinstance(keyword, str):  # A `false` schema, or an error that somebody else made.
        return issue(error.absolute_path, message, "schema")
    missing = keyword == "required"
    received = None if missing else describe(error.instance)
    expected = "a value" if missing else f"{keyword} {literal(error.validator_value)}"
    return issue(error.absolute_path, message, keyword, expected, received)


def _message(error: SchemaViolation) -> str:
    """Take the message without the whole value, which it spells out however long it is."""
    return error.message.replace(repr(error.instance), literal(error.instance, 80), 1)
