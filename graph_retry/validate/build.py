"""Make the validator for whatever the caller gives as `output`."""

from collections.abc import Sequence
from typing import Any

from graph_retry.validate.function import FunctionValidator
from graph_retry.validate.issues import describe
from graph_retry.validate.plain import is_dict
from graph_retry.validate.typed import TypedValidator
from graph_retry.validate.validator import Validator

TYPING_MODULES = ("typing", "typing_extensions", "types")
JSON_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")


def build_validator(output: Any, *, strict: bool = False) -> Validator:
    """Make a validator from a type, a JSON Schema, a function, or another validator.

    - A class or a typing construct (`Person`, `list[Person]`, `int | None`, `Literal["a", "b"]`) is
      validated by pydantic. `strict` refuses what would have to be converted, such as `"30"` for an
      `int`; a date is still read from its JSON string.
    - A `dict` is a JSON Schema. It never converts. Nothing is fetched.
    - Another callable takes the value and returns what it should be, `True` or `False`, `None`, a
      list of issues, or raises. See `FunctionValidator` for the exact rules.
    - To run a function on a typed value, or on plain text, annotate the type:
      `Annotated[str, AfterValidator(check)]`. Validators inside a type may run several times for
      one value: keep them pure.

    Raises:
        TypeError: If `output` is none of these, or pydantic cannot validate the type.
        ValueError: If a JSON Schema is not valid or refers to something outside of it.

    Example:
        >>> validator = build_validator(dict[str, int])
        >>> validator.check({"age": "30"}).value
        {'age': 30}
        >>> validator.check({"age": "30"}).repairs[0]["detail"]
        '/age: "30" (str) → 30 (int)'
        >>> validator.check({"age": "x"}).issues[0]["path"]
        '/age'
    """
    # `list[int]` and `NewType` objects can be called too, hence types first.
    if isinstance(output, type) or type(output).__module__ in TYPING_MODULES:
        return TypedValidator(output, strict=strict)
    if is_dict(output):
        return _schema_validator(output)
    if isinstance(output, Validator):
        return output
    if callable(output):
        return FunctionValidator(output)
    raise TypeError(
        f"`output` is {describe(output)}; it must be a type that pydantic can validate, a JSON "
        "Schema dict, a function that takes the value, or a validator such as `heuristic()`"
    )


def heuristic(type: str | None = None, required: Sequence[str] = ()) -> Validator:
    """Make a small validator: any JSON, JSON of one type, or an object with some keys.

    `type` is a JSON Schema type name; `required` keys imply `"object"`.

    Raises:
        TypeError: If `required` is one string.
        ValueError: If `type` is unknown, or is not `"object"` although keys are required.

    Example:
        >>> heuristic(required=["id"]).check({"title": "x"}).issues[0]["path"]
        '/id'
        >>> heuristic("array").check([1, 2]).ok
        True
    """
    if isinstance(required, str):
        raise TypeError(f"`required` is the string {required!r}; pass a list of keys")
    wanted = type or ("object" if required else None)
    if wanted not in (None, *JSON_TYPES):
        raise ValueError(f"`type` is {wanted!r}; it must be one of {', '.join(JSON_TYPES)}")
    if required and wanted != "object":
        raise ValueError(f"`type` is {wanted!r}, which has no keys; `required` needs 'object'")
    schema: dict[str, Any] = {"type": wanted} if wanted else {}
    if required:
        schema["required"] = list(required)
    return _schema_validator(schema, f"JSON {wanted or 'value'}")


def _schema_validator(schema: dict[str, Any], name: str | None = None) -> Validator:
    # Imported on first use: `jsonschema` costs tens of milliseconds.
    from graph_retry.validate.json_schema import SchemaValidator  # noqa: PLC0415

    return SchemaValidator(schema, name)
