"""Make the validator for a call's `output` option: a type, a JSON Schema or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache
from importlib import import_module
from threading import Thread
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.issues import describe
from graph_retry._core.ground.json import is_object
from graph_retry._core.output.types.type_validator import TypedValidator
from graph_retry._core.output.validator import Validator
from graph_retry.lossless._ground import as_repr
from graph_retry.records import Issue

TYPING_MODULES = ("typing", "typing_extensions", "types")


def build_validator(output: Any, *, strict: bool = False, check_formats: bool = False) -> Validator:
    """Make a validator. See the public function `graph_retry.output.build_validator`."""
    # Types are checked first, because `list[int]` and `NewType` objects are callable as well.
    if isinstance(output, type):
        return _of_class(output, strict=strict)
    if type(output).__module__ in TYPING_MODULES:
        from graph_retry._core.output.types import named_calls  # noqa: PLC0415

        named = named_calls.named_classes(output)
        if named is None:
            return TypedValidator(output, strict=strict)
        return named_calls.CallsValidator(output, named, strict=strict)
    if is_object(output):
        return _of_schema()(output, check_formats=check_formats)
    if isinstance(output, Validator):
        return output
    if callable(output):
        # Most calls have a type or a schema, and need no code for functions.
        from graph_retry._core.output.function_validator import FunctionValidator  # noqa: PLC0415

        return FunctionValidator(output)
    raise TypeError(
        f"`output` is {describe(output)}; it must be a type that pydantic can validate, a JSON "
        f"Schema, a function of the value, or a validator such as `heuristic()`{_meant(output)}"
    )


def _meant(output: Any) -> str:
    """Suggest a type to a user who passed a model instance, or types in a list or tuple."""
    if isinstance(output, BaseModel):
        return f" (meant as the class `{type(output).__name__}`?)"
    kinds: list[Any] = [*output] if isinstance(output, list | tuple) else []
    if not kinds or not all(isinstance(kind, type) for kind in kinds):
        return ""
    union = " | ".join(kind.__name__ for kind in kinds)
    return f" (meant as `{f'list[{union}]' if isinstance(output, list) else union}`?)"


@lru_cache(maxsize=128)
def _of_class(output: type[Any], *, strict: bool) -> Validator:
    """Make the validator of a class once, because pydantic takes long to build it."""
    if issubclass(output, AIMessage):
        # Most calls have another type, and need no code for messages.
        from graph_retry._core.output.message import MessageValidator  # noqa: PLC0415

        return MessageValidator()
    return TypedValidator(output, strict=strict)


@cache
def _of_schema() -> Callable[..., Validator]:
    """Import `jsonschema` at first use, in a thread, because the import would block a loop."""
    loading = Thread(
        target=import_module, args=("graph_retry._core.output.json_schema.schema_validator",)
    )
    loading.start()
    loading.join()
    from graph_retry._core.output.json_schema.schema_validator import SchemaValidator  # noqa: PLC0415

    return SchemaValidator


@checked
def heuristic(type: str | None = None, required: Sequence[str] = ()) -> Validator:
    """Make a small validator for any JSON, for one JSON type, or for an object with some keys.

    Raises:
        ValueError: If `type` is not a JSON Schema type, or if `required` is given for a type other
            than `object`.

    Example:
        >>> heuristic(required=["id"]).check({"title": "x"}).issues[0]["path"]
        '/id'
    """
    wanted = type or ("object" if required else None)
    if required and wanted != "object":
        raise ValueError(
            f"`required` is {as_repr(required)} of {as_repr(wanted)}; give a list, of an 'object'"
        )
    kind = {"type": wanted} if wanted else {}
    return build_validator({"title": f"JSON {wanted or 'value'}", "required": [*required]} | kind)


class SchemaOfParams(Validator):
    """Validate by a JSON Schema that each call gives in its params, under the key `field`.

    Example:
        >>> from graph_retry import create_retry_node
        >>> node = create_retry_node(lambda params: "[1]", dict, output=SchemaOfParams("wanted"))
        >>> node.invoke({"params": {"wanted": {"type": "array"}}})["output"]
        [1]
    """

    @checked
    def __init__(self, field: str, *, check_formats: bool = False) -> None:
        self.field, self._check_formats = field, check_formats
        self.name = f"value as `{field}` says"

    def fitted(self, params: Mapping[str, Any]) -> Validator:
        """Return the validator for the schema in these params."""
        return build_validator(params[self.field], check_formats=self._check_formats)

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        return value, []  # The validator that `fitted` made has already judged the value.
