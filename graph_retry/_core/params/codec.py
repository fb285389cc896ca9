"""Convert params to JSON for graph state, and back.

Encoded params have two parts, the view and the types map. The view is a JSON object that people
read and edit. Its keys are the fields of the params. The view of a bare value, such as a text, is
`{"value": …}`, and the view of `None` is `{}`. The types map is a dict `{JSON Pointer: type}`. It
is usually empty. It names a Python type that JSON lacks, such as `set`, where the params do not
declare this type.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from enum import Enum
from inspect import get_annotations
from typing import Any, Generic, NamedTuple, Self, TypeVar, cast

from jsonpointer import resolve_pointer
from pydantic import BaseModel, ValidationError

from graph_retry._core.ground.issues import issue, pydantic_issues
from graph_retry._core.ground.json import ABSENT, is_object
from graph_retry._core.ground.redact import property_names
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry._core.params.fields import class_label, hidden_fields, spelled
from graph_retry._core.params.params_type import Form, describe_type, inferred_schema
from graph_retry._core.params.patch import Encoded, changes
from graph_retry._core.params.tagged_json import (
    NO_BASE64,
    VALIDATOR_ERRORS,
    Writer,
    differences,
    part_of,
    restore,
    validate,
)
from graph_retry.lossless._ground import EscapedText, text_of
from graph_retry.records import Issue

ParamsT = TypeVar("ParamsT")

_SHOWN_ISSUES = 5


class ParamsInvalid(EscapedText, ValueError):
    """A view does not fit the declared type of the params. `issues` has the places and reasons."""

    def __init__(self, issues: list[Issue], subject: str = "params do not fit") -> None:
        """Keep the issues. `subject` begins the message."""
        super().__init__(issues, subject)
        self.issues = issues
        self.subject = subject

    def as_told(self) -> str:
        """Return the message: the subject, and the first issues."""
        shown = [f"`{spelled(i['path'])}` {i['message']}" for i in self.issues[:_SHOWN_ISSUES]]
        more = len(self.issues) - _SHOWN_ISSUES
        return f"{self.subject}: {'; '.join([*shown, f'and {more} more'] if more > 0 else shown)}"


class Verified(NamedTuple):
    """Encoded params, and the value that was decoded from them to check that nothing is lost.

    `copy` shares no object with the original params, so `decode` may return it once. Without such a
    value, `copy` is `ABSENT`.
    """

    encoded: Encoded
    copy: Any = ABSENT


class ParamsCodec(Generic[ParamsT]):
    """Converts params to JSON and back. If a field would lose data, an error names the field.

    The JSON has two parts. The view is an object with the params' fields, which people edit. The
    types map, such as `{"/ids": "set"}`, names Python types that JSON lacks. Decoded params equal
    the original params and have the same types. Models, dataclasses and enums need a declared type.
    In a decoded pydantic model, all fields count as set.

    Example:
        >>> codec = ParamsCodec(dict)
        >>> codec.encode({"limit": 5, "ids": {7}})
        Encoded(view={'limit': 5, 'ids': [7]}, types={'/ids': 'set'})
        >>> codec.decode({"limit": 9, "ids": [7]}, {"/ids": "set"})
        {'limit': 9, 'ids': {7}}
    """

    of_model: bool = False
    """Whether a model chose the params, as it chooses the arguments of a tool."""

    why_no_comment: str | None = None
    """The reason why these params can hold no comment for the model, or None."""

    def __init__(self, params_type: type[ParamsT] | Any) -> None:
        """Create a codec for a model, dataclass, TypedDict, `dict` or another type for pydantic.

        `None` means that the call has no params.

        Raises:
            TypeError: The type cannot be built from JSON.
            ValueError: The type declares a secret field.
        """
        self._type = describe_type(params_type)
        self._known: Verified | None = None

    def for_one_run(self) -> Self:
        """Return a copy of the codec for one run, which trusts the view that it made last.

        The copy recognises the view that it made last by its identity as a Python object. A view
        from a checkpoint or an edit is another object, and is always validated.
        """
        own = object.__new__(type(self))
        vars(own).update(vars(self), _known=Verified(Encoded({}, {})))
        return own

    @classmethod
    def for_value(cls, value: ParamsT) -> ParamsCodec[ParamsT]:
        """Create a codec for a value. If its class declares fields, this class is the params' type.

        Models, dataclasses, enums and annotated named tuples declare fields.

        Example:
            >>> ParamsCodec.for_value("a prompt").fields
            ('value',)
        """
        known: Any = value
        if isinstance(known, type):
            raise TypeError(f"`params` is the class `{known.__name__}`: pass an instance of it")
        if callable(known) and hasattr(known, "__code__"):
            what = "`params`, the second argument, is a function"
            raise TypeError(f"{what}: pass the value for `llm_call`, and a hook as `on_retry=`")
        own: Any = known.__class__
        is_model = isinstance(known, BaseModel | Enum) or dataclasses.is_dataclass(known)
        declares = is_model or (isinstance(known, tuple) and bool(get_annotations(own)))
        return cls(own if declares or known is None or own is dict else Any)

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The names of the fields at the top level; None if the params may have any field."""
        return self._type.fields

    @property
    def params_class(self) -> type[Any]:
        """The class of the params; `object` if they may have any class."""
        return self._type.instance

    def fits(self, declared: type[Any]) -> bool:
        """Return whether a function whose parameter has the type `declared` can take the params.

        `declared` is a pydantic model or a dataclass. Another class fits if it has all fields of
        `declared`. A dict never fits. Params without fields, such as a text, count as fitting.

        Example:
            >>> ParamsCodec(dict).fits(BaseModel), ParamsCodec(str).fits(BaseModel)
            (False, True)
        """
        kind = self._type
        if kind.form != "object" or issubclass(kind.instance, declared):
            return True
        is_model = issubclass(declared, BaseModel)
        wanted = (
            declared.model_fields if is_model else {f.name for f in dataclasses.fields(declared)}
        )
        return kind.instance is not dict and set(wanted) <= set(kind.fields or wanted)

    @property
    def names(self) -> frozenset[str]:
        """The names of all fields that the type of the params declares, at any depth."""
        schema = self._type.schema
        return property_names(schema) | frozenset(self.fields or ())

    @property
    def form(self) -> Form:
        """The form of the params: an `object` with fields, a `bare` value, or `empty` for None."""
        return self._type.form

    def schema(self, view: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the view. Without a declared type, infer it from `view`.

        Example:
            >>> ParamsCodec(dict).schema({"limit": 5})
            {'type': 'object', 'properties': {'limit': {'type': 'integer'}}}
        """
        schema = self._type.schema
        return inferred_schema(view or {}) if schema is None else copy.deepcopy(schema)

    def encode(self, value: ParamsT, *, owner: str = "params") -> Encoded:
        """Convert params to JSON. Errors name the params by the words in `owner`.

        Raises:
            TypeError: If the value has a wrong type, or if a part of it cannot be stored.
            ValueError: If a part is a secret, or would come back changed.
        """
        return self._remembered(self._verified(value, owner)).encoded

    def _verified(self, value: ParamsT, owner: str = "params") -> Verified:
        if not isinstance(value, self._type.instance):
            want, came = map(_class_named, (self._type.instance, value.__class__))
            raise TypeError(f"{owner} must be {want}, not {came}")
        typed = self._type.schema is not None
        given = self._laid_out(value)
        view, tags = Writer(owner, typed=typed).write(given)
        if not typed and not tags:
            return Verified(Encoded(view, {}))
        problem: ValueError | None = None
        # Most declared types rebuild the value without tags. Only `Any` fields need tags.
        for types in ({}, tags) if typed else (tags,):
            try:
                again = self.decode(view, types)
            except ParamsInvalid as error:
                problem = ParamsInvalid(error.issues, f"{owner} do not fit their own type")
                continue
            changed = differences(given, self._laid_out(again))
            if not changed:
                return Verified(Encoded(view, types), again)
            if all(type(a) is int and type(b) is float and a == b for _, a, b in changed):
                # An `int` in a `float` field is allowed (PEP 484), and becomes a `float`.
                return self._verified(again, owner)
            path = changed[0][0].removesuffix("/-")  # A path ending with `-` means the whole list.
            why = (
                "would come back changed from graph state: declare the type that it really has, "
                "with a validation that leaves it as it is, pass plain values, or capture it in "
                "the function"
            )
            if (first := path[1:].partition("/")[0]) in hidden_fields(value):
                path, why = f"/{first}", "is not saved, because nobody can give it: make it a field"
            problem = ValueError(f"{part_of(path, owner)} {why}")
        raise cast("ValueError", problem)

    def decode(self, view: dict[str, Any], types: dict[str, str]) -> ParamsT:
        """Build new params from a view and its types map.

        After an edit, the entry of a value in `types` may no longer fit. A declared type then reads
        the JSON alone, and params without a declared type are refused. A text that should be base64
        is always refused, because a declared type would take its characters as the bytes.

        Raises:
            ParamsInvalid: If the view does not fit the declared type.
        """
        known = self._known
        if known is not None and known.copy is not ABSENT and self._is_known(view, types):
            # Encoding has already built this copy. The copy is returned only once, because the
            # caller may change it.
            self._known = Verified(known.encoded)
            return cast("ParamsT", known.copy)
        problems: list[Issue] = []
        data = restore(view, types, problems)
        untyped = self._type.schema is None
        if refused := [one for one in problems if untyped or one["code"] == NO_BASE64]:
            raise ParamsInvalid(refused)
        try:
            built = validate(self._type.adapter, data, plain=not types)
        except ValidationError as error:
            raise ParamsInvalid(pydantic_issues(error, data)) from None
        except VALIDATOR_ERRORS as error:
            message = f"its validation failed with {type(error).__name__}: {text_of(error)}"
            raise ParamsInvalid([issue("", message, "validator_error")]) from error
        return cast("ParamsT", built if self._type.form == "object" else built.get("value"))

    def load(self, value: Any, types: dict[str, str]) -> Encoded:
        """Encode a value of the graph state: an instance of the params' type, or JSON.

        JSON may come from a client, so it is validated. Missing fields get their defaults.

        Raises:
            ParamsInvalid: If the value does not fit the declared type, or has an unknown field.
            TypeError: If a part cannot be stored.
            ValueError: If a part is a secret, or would come back changed.

        Example:
            >>> ParamsCodec(int).load("5", {})
            Encoded(view={'value': 5}, types={})
        """
        if self._known is not None and self._is_known(value, types):
            return self._known.encoded
        return self._remembered(self._loaded(value, types)).encoded

    def _loaded(self, value: Any, types: dict[str, str]) -> Verified:
        kind, value = self._type, self._as_view(value)
        if not is_object(value):
            return self._verified(cast("ParamsT", value))
        # A dict from user code may contain Python objects, so it is written as JSON first.
        typed = kind.schema is not None
        view, tags = Writer("params", typed=typed).write(value)
        try:
            params = self.decode(view, {**types, **tags})
        except ParamsInvalid as error:
            known = {name: view[name] for name in kind.fields or view if name in view}
            raise ParamsInvalid([*error.issues, *self._unknown_fields(view, known)]) from error
        again = Writer("params", typed=typed).write(self._laid_out(params))[0]
        if not (types or tags or any(changes(view, again))):
            # Decoding and encoding gave the same JSON, so no field was lost, and all are known.
            return Verified(Encoded(again, {}), params)
        complete = Writer("params", typed=True, complete=True).write(self._laid_out(params))[0]
        if unknown := list(self._unknown_fields(view, complete)):
            raise ParamsInvalid(unknown)
        return self._verified(params)

    def given(self, value: Any, types: dict[str, str]) -> Encoded:
        """Encode only the fields that a value of the graph state sets, without defaults.

        So equal JSON gives an equal result, even if a default of the type changes. If the value is
        an instance of the type, all of its fields are encoded.

        Example:
            >>> ParamsCodec(BaseModel).given({}, {})
            Encoded(view={}, types={})
        """
        value = self._as_view(value)
        if not is_object(value):
            return self.load(value, types)
        typed = self._type.schema is not None
        view, tags = Writer("params", typed=typed).write(value)
        params = self._laid_out(self.decode(view, {**types, **tags}))
        return Encoded(*Writer("params", typed=typed, given=True).write(params))

    def changed_in_place(self, before: Encoded, value: ParamsT) -> bool:
        """Return whether user code has changed a value that `decode(*before)` returned.

        Example:
            >>> codec = ParamsCodec(dict)
            >>> before = codec.encode({"tries": []})
            >>> copy = codec.decode(*before)
            >>> copy["tries"].append(1)
            >>> codec.changed_in_place(before, copy)
            True
        """
        try:
            if self._type.schema is None:  # Without a declared type, the tags name every type.
                view, types = Writer("params").write(self._laid_out(value))
                return types != before.types or any(changes(before.view, view))
            return bool(differences(self.decode(*before), value))
        except (TypeError, ValueError):  # A value without a JSON form was added by user code.
            return True

    def _remembered(self, made: Verified) -> Verified:
        if self._known is not None:
            self._known = made
        return made

    def _is_known(self, view: Any, types: dict[str, str]) -> bool:
        known = self._known
        return known is not None and known.encoded.view is view and known.encoded.types == types

    def _as_view(self, value: Any) -> Any:
        """Return a value of the graph state as a view; leave an instance unchanged."""
        kind = self._type
        if kind.instance not in (dict, object) and isinstance(value, kind.instance):
            return value
        if kind.form == "bare" and not (is_object(value) and value.keys() == {"value"}):
            return {"value": value}
        if is_object(value):  # A client's form may name a field by its pydantic alias.
            return {kind.aliases.get(name, name): item for name, item in value.items()}
        if kind.form == "object":
            came = f"is {_class_named(value.__class__)}"
            if value is None:
                came = "is not in the state, and `keys=` names no other key"
            want = _class_named(kind.instance)
            raise ParamsInvalid([issue("", f"{came}: give {want} or its JSON", "type")])
        return value

    def _laid_out(self, value: Any) -> Any:
        return {"object": value, "bare": {"value": value}, "empty": {}}[self._type.form]

    def _unknown_fields(self, view: Any, known: Any) -> Iterator[Issue]:
        """Yield an issue for each key of `view` that `known`, the rebuilt view, lacks."""
        for path in [path for path, _, after in changes(view, known) if after is ABSENT]:
            parent = resolve_pointer(known, path.rpartition("/")[0])
            if is_object(parent):
                names = self.fields if parent is known and self.fields is not None else parent
                listed = ", ".join(f"`{name}`" for name in names if not name.startswith("_"))
                hint = f"the known ones are {listed}" if listed else "there are none"
                yield issue(path, f"is not a known field; {hint}", "unknown_field", listed or None)


def _class_named(cls: type[Any]) -> str:
    return quoted_with_article(class_label(cls))
