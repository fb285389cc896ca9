"""A validator for any type that pydantic can validate: models, dataclasses, unions, plain types."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from pydantic import (
    PydanticInvalidForJsonSchema,
    PydanticUserError,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import SchemaError, SchemaValidator

from graph_retry._core.ground.issues import attempt, cut, issue, json_problem, pydantic_issues
from graph_retry._core.ground.json import ABSENT, is_object, pointer
from graph_retry._core.output.partial.settled import Judge, PlacedError
from graph_retry._core.output.types.conversions import (
    children_of,
    conversions,
    unknown_object,
    with_digits,
)
from graph_retry._core.output.types.core_schema import (
    CoreSchema,
    Schema,
    counts_elements,
    has_class_unions,
    has_recursive_unions,
    may_be_defaults,
    may_merge_keys,
    unsure_keys,
)
from graph_retry._core.output.validator import Checked, Validator
from graph_retry.lossless._ground import error_text, identical
from graph_retry.records import Issue, Repair

if TYPE_CHECKING:
    from graph_retry._core.output.types.union_work import UnionWork

_TOO_MUCH = (
    "this cannot be judged in bounded time: the type's recursive union tries its branches again at "
    "each level; give the union a discriminator"
)


class TypedValidator(Validator):
    """Validate with pydantic, and keep accepted values in graph state as JSON.

    A value that JSON can express is validated in pydantic's JSON mode, because this mode reads a
    date from a string even if it is strict. Other values, such as a model instance, are validated
    in Python mode. Validating the JSON in graph state again gives an equal value.
    """

    def __init__(self, output: Any, *, strict: bool) -> None:
        self.name = _name_of(output)
        self._strict = strict or None
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(output)
            self._adapter.rebuild()
            with suppress(PydanticInvalidForJsonSchema):
                self.schema = self._adapter.json_schema()
        except (PydanticUserError, SchemaError, NameError, TypeError) as error:
            reason = cut(" ".join(error_text(error).split()), 300)
            message = f"`output` type `{self.name}` cannot be validated by pydantic: {reason}"
            raise TypeError(message) from error
        schema = self._adapter.core_schema
        self._keys = MappingKeys(schema) if may_merge_keys(schema) else None
        self._may_be_defaults = may_be_defaults(schema)
        self._work: UnionWork | None = None
        if has_recursive_unions(schema):  # Few types have them, so only these load the module.
            from graph_retry._core.output.types import union_work  # noqa: PLC0415

            self._work = union_work.UnionWork(schema)
        other_text = {"format", "enum", "const", "anyOf", "contentMediaType"}
        self.wants_text = (
            self.kinds == frozenset({"string"}) and not other_text & (self.schema or {}).keys()
        )

    @property
    def judge(self) -> Judge | None:
        """The check for incomplete values; None if only whole values are checked."""
        schema = self._adapter.core_schema
        unsure = unsure_keys(schema)
        if None in unsure:
            return None
        return Judge(self._errors_so_far, unsure, counts_elements(schema))

    @cached_property
    def _has_unions(self) -> bool:
        return has_class_unions(self._adapter.core_schema)

    def written(self, value: Any) -> Any:
        """Return a valid object as JSON if the type has a union of classes, otherwise unchanged."""
        if not json_problem(value) or not self._has_unions:
            return value
        checked = self.check(value)
        return checked.jsonable if checked.ok else value

    def has_place(self, value: Any) -> bool:
        """Return whether a value is valid as it is."""
        return not attempt(self._read, value, self._strict)[1]

    def _with_digits(self, checked: Checked, exact: Any) -> Checked:
        """Validate `Decimal` and `int` fields again, with all digits of their numbers."""
        value = with_digits(exact, self._placed(checked.value, exact))
        again = self.check(value)
        # A field of several types may read a text as a `str`, and a user's validator may refuse it.
        is_same = again.ok and with_digits(exact, self._placed(again.value, exact)) == value
        return replace(again, judged=value) if is_same else checked

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        if self._work and self._work.is_too_much(value):
            return value, [issue("", _TOO_MUCH, "too_much_work")]
        accepted, issues = attempt(self._read, value, self._strict, root=value)
        lost = None if issues else self._lost(self._judged(value), accepted)
        return (accepted, issues) if lost is None else (value, [lost])

    def _lost(self, value: Any, accepted: Any) -> Issue | None:
        """Describe data that validation dropped: two keys became one, or no key was known."""
        path = self._keys.merged(value, accepted) if self._keys else None
        if path is not None:
            message = "two keys of this object are one and the same key of its type"
            return issue(path, message, "merged_keys")
        return unknown_object(value, accepted) if self._may_be_defaults else None

    def _errors_so_far(self, value: Any) -> list[PlacedError]:
        if self._work and self._work.is_too_much(value):  # The complete value is refused.
            return []
        try:
            self._read(value, self._strict)
        except ValidationError as error:
            told = zip(error.errors(include_url=False), pydantic_issues(error, value), strict=False)
            return [PlacedError(one["loc"], one["type"], issue) for one, issue in told]
        except Exception:  # noqa: BLE001 - a user's validator; the complete value raises again
            return []
        return []

    def _read(self, value: Any, strict: bool | None) -> Any:
        return read_with(self._adapter, value, strict)

    def _judged(self, value: Any) -> Any:
        """Return the part of a value that the type describes: here, the whole value."""
        return value

    def _placed(self, accepted: Any, value: Any) -> Any:  # noqa: ARG002
        """Return a validated value in the form of the given value: here, unchanged."""
        return accepted

    def _forms(self, accepted: Any, given: Any, dumped: Any) -> list[Any]:  # noqa: ARG002
        """List possible JSON forms of a value, the best form first."""
        return [dumped, given]

    def _kept(self, accepted: Any, given: Any) -> tuple[Any, list[Repair], list[Issue]]:
        """Return the JSON form for graph state, the conversions, and issues for guesses.

        The JSON form is pydantic's dump. If only the input validates back to an equal value, it is
        the input.
        """
        dumped, judged = attempt(self._dump, accepted, "json")[0], self._judged(given)
        forms = self._forms(accepted, given, dumped)
        for form in forms:
            if json_problem(form):
                continue
            again, failed = attempt(self._read, form, self._strict)
            if not failed and type(again) is type(accepted) and again == accepted:
                # Validation that gives the input back has converted nothing.
                is_input = attempt(identical, dumped, judged)[0] is True
                return (form, [], []) if is_input else (form, *self._conversions(judged, accepted))
        return next(filter(json_problem, forms), ABSENT), [], []

    def _dump(self, accepted: Any, mode: Literal["json", "python"]) -> Any:
        dump = self._adapter.dump_python
        return dump(accepted, mode=mode, by_alias=True, round_trip=True, warnings="none")

    def _conversions(self, given: Any, accepted: Any) -> tuple[list[Repair], list[Issue]]:
        def refused(value: Any) -> list[Issue]:
            return attempt(self._read, value, True, root=value)[1]

        dumped = attempt(self._dump, accepted, "python")[0]
        return conversions(given, accepted, dumped, refused, is_strict=bool(self._strict))


def read_with(adapter: TypeAdapter[Any], value: Any, strict: bool | None) -> Any:
    """Validate a value in pydantic's JSON mode, or in Python mode if JSON cannot express it.

    Raises:
        ValidationError: If the value is not valid.
    """
    try:
        text = json.dumps(value)
    except TypeError:
        return adapter.validate_python(value, strict=strict)
    return adapter.validate_json(text, strict=strict)


def _name_of(output: Any) -> str:
    """Return a short name of a type for messages, such as `str` for `Annotated[str, …]`."""
    with suppress(NameError, TypeError):  # Pydantic refuses an undefined name afterwards.
        output = get_type_hints(SimpleNamespace(__annotations__={"output": output}))["output"]
    return cut(_spelled(output), 80)


def _spelled(kind: Any) -> str:
    """Write a type without the modules of its classes, as in `list[Person] | None`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " | ".join(map(_spelled, inner))
    if inner and origin is not Literal:
        return f"{_spelled(origin)}[{', '.join(map(_spelled, inner))}]"
    if kind is NoneType or kind is ...:
        return "None" if kind is NoneType else "..."
    return kind.__name__ if isinstance(kind, type) else repr(kind).replace("typing.", "")


class MappingKeys:
    """Converts keys as the mappings of one type do, for example to lower case or to numbers.

    Args:
        schema: The core schema that pydantic made of the type.
    """

    def __init__(self, schema: Schema) -> None:
        whole = CoreSchema(schema)
        dicts = {id(node.schema): node for node in whole.nodes() if node.kind == "dict"}
        self._readers = [
            *(
                _reader(node.schema["keys_schema"], node.config, whole)
                for node in dicts.values()
                if "keys_schema" in node.schema
            )
        ]

    def merged(self, given: Any, accepted: Any, path: str = "") -> str | None:
        """Return the path of the first object in which two keys became one, or None."""
        if is_object(given) and is_object(accepted) and len(accepted) < len(given):
            # A missing key may have been left out on purpose, by a `TypedDict` or a validator. Keys
            # have merged only if validation also changed the spelling of a key.
            missing = given.keys() - accepted.keys()
            is_renamed = not accepted.keys() <= given.keys()
            if is_renamed or any(self._as_read(key, accepted) is not ABSENT for key in missing):
                return path
        for name, child, after in self._children(given, accepted):
            merged = self.merged(child, after, path + pointer([name]))
            if merged is not None:
                return merged
        return None

    def _children(self, given: Any, accepted: Any) -> Iterator[tuple[Any, Any, Any]]:
        yield from children_of(given, accepted)
        if is_object(given) and is_object(accepted):
            for key in given.keys() - accepted.keys():
                if (after := self._as_read(key, accepted)) is not ABSENT:
                    yield key, given[key], after

    def _as_read(self, key: str, accepted: Mapping[Any, Any]) -> Any:
        """Return the value that a validated mapping has for the given key, or `ABSENT`."""
        for reader in self._readers:
            try:
                after = accepted.get(reader.validate_python(key), ABSENT)
            except Exception:  # noqa: BLE001, S112 - a validator is anybody's code: it refused
                continue
            if after is not ABSENT:
                return after
        return ABSENT


def _reader(keys: Schema, config: Schema, whole: CoreSchema) -> SchemaValidator:
    definitions = [*whole.definitions.values()]
    all_of_it = {"type": "definitions", "schema": keys, "definitions": definitions}
    return SchemaValidator(cast("Any", all_of_it if definitions else keys), cast("Any", config))
