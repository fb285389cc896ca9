"""Describe the declared type of params: its validator, its field names and its JSON Schema."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator
from functools import lru_cache
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Literal, NamedTuple, NotRequired, cast, get_origin, get_type_hints

from pydantic import BaseModel, PydanticUserError, RootModel, TypeAdapter
from pydantic.errors import PydanticUndefinedAnnotation
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import TypedDict, is_typeddict

from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.params.fields import class_label, spelled
from graph_retry.lossless._ground import as_repr

Form = Literal["object", "bare", "empty"]

_UNTYPED: tuple[Any, ...] = (dict, Any, dict[str, Any])


class TypeDescription(NamedTuple):
    """The facts about one declared type.

    form: The layout of the view: `object` (fields by name), `bare` (`{"value": …}`) or `empty`.
    fields: The names of all fields; None if the params may have any field.
    instance: The class of the params; `object` if they may have any class.
    adapter: Pydantic's validator of the view.
    schema: The JSON Schema of the view; None if the params have no declared type.
    aliases: The names of a pydantic model's fields, by alias.
    """

    form: Form
    fields: tuple[str, ...] | None
    instance: type
    adapter: TypeAdapter[Any]
    schema: dict[str, Any] | None
    aliases: dict[str, str]


def describe_type(params_type: Any) -> TypeDescription:
    """Describe a declared type. `None` and `NoneType` mean a call without params.

    Raises:
        TypeError: If pydantic cannot build the type from JSON.
        ValueError: If the type declares a secret field.
    """
    callables = FunctionType | BuiltinFunctionType | MethodType | ModuleType
    if isinstance(params_type, callables | BaseModel | dict | list):
        raise TypeError(
            f"`params_type`, the second argument, is {as_repr(params_type, 200)}: pass the "
            "class of the params"
        )
    params_type = type(None) if params_type is None else params_type
    # The description of a class is cached, because it takes a millisecond and never changes.
    described = _cached if isinstance(params_type, type) else _described
    return described(cast("Hashable", params_type))


def _described(params_type: Any) -> TypeDescription:
    form, fields, instance = _layout(params_type)
    try:
        adapter = _adapter(params_type, form)
        schema = adapter.json_schema(by_alias=False, schema_generator=_LenientSchema)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        raise TypeError(
            f"`params_type` {as_repr(params_type, 200)} cannot be built from JSON: declare "
            "plain fields "
            f"and capture the rest in the function ({error.message.partition(chr(10))[0]})"
        ) from error
    # Pydantic puts a recursive model into `$defs`, and refers to the model. The top level needs
    # the schema itself.
    if "$ref" in schema:
        schema = {**schema["$defs"][schema["$ref"].rpartition("/")[2]], "$defs": schema["$defs"]}
    for secret in _secrets(schema):
        label = class_label(params_type) if isinstance(params_type, type) else repr(params_type)
        raise ValueError(
            f"`{spelled(secret)}` of `{label}` is declared as a secret, and graph state is no "
            "place for one: capture it in the function instead"
        )
    declared = None if params_type in _UNTYPED else schema
    return TypeDescription(form, fields, instance, adapter, declared, _aliases(instance))


_cached = lru_cache(maxsize=256)(_described)


def _layout(params_type: Any) -> tuple[Form, tuple[str, ...] | None, type]:
    cls: type[Any] = params_type if isinstance(params_type, type) else object
    if cls is dict or get_origin(params_type) is dict:
        return "object", None, dict
    if is_typeddict(cls):
        return "object", tuple(get_type_hints(cls)), dict
    if dataclasses.is_dataclass(cls):
        return "object", tuple(field.name for field in dataclasses.fields(cls) if field.init), cls
    if issubclass(cls, BaseModel) and not issubclass(cls, RootModel):
        extra = cls.model_config.get("extra") == "allow"
        return "object", None if extra else tuple(cls.model_fields), cls
    empty = params_type is type(None)
    return ("empty", (), type(None)) if empty else ("bare", ("value",), object)


def _aliases(cls: type[Any]) -> dict[str, str]:
    declared = cls.model_fields if issubclass(cls, BaseModel) else {}
    return {f.alias: name for name, f in declared.items() if f.alias and f.alias not in declared}


def _adapter(params_type: Any, form: Form) -> TypeAdapter[Any]:
    if form != "object":
        fields = {"value": params_type} if form == "bare" else {}
        return TypeAdapter(TypedDict("Value", fields))  # type: ignore[operator]
    try:
        return TypeAdapter(dict[str, Any] if params_type is dict else params_type)
    except PydanticUserError as error:
        # Pydantic refuses `typing.TypedDict` before Python 3.12, so it is rebuilt below.
        if error.code != "typed-dict-version" or not is_typeddict(params_type):
            raise
    fields = get_type_hints(params_type, include_extras=True)
    optional: frozenset[str] = vars(params_type)["__optional_keys__"]
    fields |= {name: NotRequired[fields[name]] for name in optional}
    return TypeAdapter(TypedDict("Params", fields))  # type: ignore[operator]


class _LenientSchema(GenerateJsonSchema):
    """Allows any JSON for a field whose type has no JSON Schema. The validator checks the field."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        del schema, error_info
        return {}


def inferred_schema(json: Any) -> dict[str, Any]:
    """Return a JSON Schema that fits an example value."""
    if is_object(json):
        inner = {name: inferred_schema(item) for name, item in json.items()}
        return {"type": "object", "properties": inner}
    names = {"bool": "boolean", "int": "integer", "float": "number", "str": "string"}
    name = {**names, "list": "array"}.get(type(json).__name__)
    return {"type": name} if name else {}


def _secrets(node: Any, at: str = "", named: bool = False) -> Iterator[str]:
    """Yield the paths at which a JSON Schema declares a secret, such as pydantic's `SecretStr`.

    `named` tells that the keys of `node` are names of fields, not keywords of JSON Schema.
    """
    if is_object(node):
        if node.get("format") == "password" and node.get("writeOnly") is True:
            yield at
        for word, item in node.items():
            table = not named and word in ("properties", "$defs")
            yield from _secrets(item, f"{at}/{word}" if named else at, table)
    elif is_array(node):
        for item in node:
            yield from _secrets(item, at)
