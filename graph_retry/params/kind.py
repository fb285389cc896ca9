"""What a params type looks like from outside: its validator, its known fields, its schema."""

import dataclasses
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Any, Literal, NamedTuple, NotRequired, cast, get_origin, get_type_hints

from pydantic import (
    BaseModel,
    PydanticUndefinedAnnotation,
    PydanticUserError,
    RootModel,
    TypeAdapter,
)
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from typing_extensions import TypedDict, is_typeddict

from graph_retry.params.invalid import aliases_of
from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.leaves import class_label, is_refused
from graph_retry.params.pointer import spelled
from graph_retry.validate.issues import pointer

Form = Literal["object", "bare", "empty"]


class Kind(NamedTuple):
    """One params type: `form` is how its view is laid out, `fields` its closed list of names.

    Without an `adapter` nothing is known but the form. `instance` is the class to expect,
    `schema` the JSON Schema of the view, `aliases` the field names by alias, nested ones too.
    """

    form: Form
    adapter: TypeAdapter[Any] | None = None
    fields: tuple[str, ...] | None = None
    instance: type = object
    label: str = "value"
    schema: dict[str, Any] | None = None
    aliases: dict[str, str] = {}  # noqa: RUF012 (a NamedTuple default, never written to)


EMPTY = Kind("empty", None, (), type(None), "None", {"type": "object", "properties": {}})
UNTYPED_DICT = Kind("object", None, None, dict, "dict")
UNTYPED_BARE = Kind("bare", None, ("value",))


def kind_of(params_type: Any) -> Kind:
    """Classify a params type.

    Raises:
        TypeError: Pydantic cannot build the type from JSON.
        ValueError: The type declares a secret field.
    """
    if params_type is None or params_type is type(None):
        return EMPTY
    if params_type is dict:
        return UNTYPED_DICT
    if isinstance(params_type, type):
        # A class cannot change what it is; working it out takes a millisecond.
        return _cached(cast("Hashable", params_type))
    if is_refused(params_type.__class__):
        raise TypeError(
            f"`params_type` is the {class_label(params_type.__class__)} {params_type!r}: pass the "
            "class of the params"
        )
    return _described(params_type)


def _described(params_type: Any) -> Kind:
    try:
        adapter = _adapter(params_type)
        kind = _typed(params_type, adapter)
        schema = _schema(kind.form, adapter)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        reason = error.message.partition("\n")[0]
        raise TypeError(
            f"`params_type` {params_type!r} cannot be built from JSON ({reason}): declare "
            "plain fields and capture the rest in the function"
        ) from error
    secret = next(_secret_fields(schema), None)
    if secret is not None:
        raise ValueError(
            f"`{spelled(secret)}` of `{kind.label}` is declared as a secret, and graph state is no "
            "place for one: capture it in the function instead"
        )
    return kind._replace(schema=schema, aliases=aliases_of(params_type))


_cached = lru_cache(maxsize=256)(_described)


def _typed(params_type: Any, adapter: TypeAdapter[Any]) -> Kind:
    if is_typeddict(params_type):
        fields = tuple(get_type_hints(params_type))
        return Kind("object", adapter, fields, dict, params_type.__name__)
    if get_origin(params_type) is dict:
        return Kind("object", adapter, None, dict, repr(params_type))
    if not isinstance(params_type, type):
        return Kind("bare", adapter, ("value",), object, repr(params_type))
    cls: type[Any] = params_type
    label = class_label(cls)
    if issubclass(cls, BaseModel) and not issubclass(cls, RootModel):
        names = None if cls.model_config.get("extra") == "allow" else tuple(cls.model_fields)
        return Kind("object", adapter, names, cls, label)
    if dataclasses.is_dataclass(params_type):
        names = tuple(field.name for field in dataclasses.fields(params_type) if field.init)
        return Kind("object", adapter, names, cls, label)
    return Kind("bare", adapter, ("value",), object, label)


def _adapter(params_type: Any) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(params_type)
    except PydanticUserError as error:
        # Pydantic refuses `typing.TypedDict` before Python 3.12.
        if error.code != "typed-dict-version" or not is_typeddict(params_type):
            raise
    hints = get_type_hints(params_type, include_extras=True)
    optional = params_type.__optional_keys__
    fields = {name: NotRequired[hint] if name in optional else hint for name, hint in hints.items()}
    return TypeAdapter(TypedDict(params_type.__name__, fields))  # type: ignore[operator]


class _LenientSchema(GenerateJsonSchema):
    """A field whose type has no JSON Schema may be anything, and its validator still judges it."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        del schema, error_info
        return {}


def _schema(form: Form, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    schema = adapter.json_schema(by_alias=False, schema_generator=_LenientSchema)
    definitions = schema.pop("$defs", {})
    if form == "bare":
        schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    elif "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]]}
    return {**schema, "$defs": definitions} if definitions else schema


def inferred_schema(json: Any) -> dict[str, Any]:
    """Describe JSON by example."""
    if is_object(json):
        inner = {name: inferred_schema(item) for name, item in json.items()}
        return {"type": "object", "properties": inner}
    if is_array(json):
        found = [inferred_schema(item) for item in json]
        same = bool(found) and all(item == found[0] for item in found)
        return {"type": "array", "items": found[0]} if same else {"type": "array"}
    names: dict[object, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}
    name = names.get(cast("object", type(json)))
    return {"type": name} if name else {}


def _secret_fields(schema: Any, at: str = "") -> Iterator[str]:
    if is_array(schema):
        for item in schema:
            yield from _secret_fields(item, at)
    if not is_object(schema):
        return
    if schema.get("format") == "password" and schema.get("writeOnly") is True:
        yield at
    for name, item in schema.items():
        if name in ("properties", "$defs") and is_object(item):
            for field, inner in item.items():
                yield from _secret_fields(inner, at + pointer((field,)))
        else:
            yield from _secret_fields(item, at)
