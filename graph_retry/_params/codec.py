"""The one form of params outside the call: a plain-JSON view, and a small map of types beside it.

A view is always a JSON object: the fields by name, `{"value": v}` for a bare value, `{}` for
`None`. The types map (`{JSON Pointer: type}`) is empty when the params type alone rebuilds the
value from its JSON, as it does for most params.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar, cast

from jsonpointer import resolve_pointer
from pydantic import BaseModel, ValidationError

from graph_retry._issues import issue, pydantic_issues
from graph_retry._json import is_object
from graph_retry._params import typed_json
from graph_retry._params.invalid import ParamsInvalid, spelled
from graph_retry._params.params_type import inferred_schema, kind_of
from graph_retry._params.patch import changes, diff_views
from graph_retry.records import Issue

ParamsT = TypeVar("ParamsT")

__all__ = ["Encoded", "ParamsCodec", "ParamsInvalid"]


class Encoded(NamedTuple):
    """Params as graph state keeps them: plain JSON, and the types that JSON cannot say."""

    view: dict[str, Any]
    types: dict[str, str]


class ParamsCodec(Generic[ParamsT]):
    """Turns params into a JSON view and back, without loss or with an error that names the field.

    What comes back equals what went in, strictly by type; all fields of a model count as given.

    Example:
        >>> codec = ParamsCodec(dict)
        >>> codec.encode({"limit": 5, "ids": {7}})
        Encoded(view={'limit': 5, 'ids': [7]}, types={'/ids': 'set'})
        >>> codec.decode({"limit": 9, "ids": [7]}, {"/ids": "set"})
        {'limit': 9, 'ids': {7}}
    """

    def __init__(self, params_type: type[ParamsT] | Any) -> None:
        """Prepare for a model, dataclass or TypedDict, `dict`, or any type pydantic validates.

        `None` stands for a call without params.

        Raises:
            TypeError: The type cannot be built from JSON.
            ValueError: The type declares a secret field.
        """
        self._kind = kind_of(params_type)

    @classmethod
    def for_value(cls, value: ParamsT) -> ParamsCodec[ParamsT]:
        """Prepare for one value: a model or dataclass is typed by its class, others by their form.

        Example:
            >>> ParamsCodec.for_value("a prompt").fields
            ('value',)
        """
        known: Any = value
        if isinstance(known, type):
            raise TypeError(f"`params` is the class `{known.__name__}`: pass an object of it")
        typed = isinstance(known, BaseModel) or dataclasses.is_dataclass(known)
        if typed or known is None or type(known) is dict:
            return cls(value.__class__)
        codec = cls(Any)
        codec._kind = codec._kind._replace(schema=None)
        return codec

    @property
    def fields(self) -> tuple[str, ...] | None:
        """Names of the top-level fields; `None` when any name may be added."""
        return self._kind.fields

    @property
    def is_empty(self) -> bool:
        """Whether the call takes no params, so that nothing can be edited."""
        return self._kind.form == "empty"

    @property
    def is_bare(self) -> bool:
        """Whether the params are one value, shown as `{"value": …}`."""
        return self._kind.form == "bare"

    def schema(self, view: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON Schema of the view; untyped params are described by the given `view`.

        Example:
            >>> ParamsCodec(dict).schema({"limit": 5})
            {'type': 'object', 'properties': {'limit': {'type': 'integer'}}}
        """
        schema = self._kind.schema
        return inferred_schema(view or {}) if schema is None else copy.deepcopy(schema)

    def encode(self, value: ParamsT, *, owner: str = "params") -> Encoded:
        """Write params as a view; `owner` says in errors who made them.

        Raises:
            TypeError: The value has another type, or a part of it cannot be stored.
            ValueError: A part is a secret, or would come back changed.
        """
        kind = self._kind
        if not isinstance(value, kind.instance):
            want, came = map(typed_json.class_label, (kind.instance, value.__class__))
            raise TypeError(f"{owner} must be a `{want}`, not a `{came}`")
        shown = self._laid_out(value)
        view, entries = _written(shown, owner)
        if kind.schema is None and not entries:
            return Encoded(view, {})
        whole = _written(shown, owner, deep=True)
        own = "" if kind.schema is not None and type(value) is kind.instance else None
        error, wrong = None, [""]
        # The declared type alone, then entries, then entries inside the classes' own fields.
        for tags in ({}, entries, whole[1]):
            types = {p: t for p, t in tags.items() if p != own and not typed_json.is_reason(t)}
            try:
                again = self.decode(view, types)
            except ParamsInvalid as caught:
                error, wrong = caught, [each["path"] for each in caught.issues]
                continue
            found = _differences(whole, _written(self._laid_out(again), owner, deep=True))
            if not found:
                return Encoded(view, types)
            if all(type(a) is int and type(b) is float and a == b for _, a, b in found):
                # A whole number in a `float` field is that float (PEP 484).
                return self.encode(again, owner=owner)
            error, wrong = None, [path for path, _, _ in found]
        reasons = {p: t for p, t in whole[1].items() if p != own and typed_json.is_reason(t)}
        raise _refusal(reasons, wrong, error, owner)

    def decode(self, view: dict[str, Any], types: dict[str, str]) -> ParamsT:
        """Build the params a view stands for: a fresh value each time, sharing nothing.

        Entries of `types` that an edit outdated are passed over when the params type still makes
        sense of the JSON.

        Raises:
            ParamsInvalid: The view does not fit the params type.
        """
        params: ParamsT = self._built(view, types)[0]
        return params

    def load(self, value: Any, types: dict[str, str]) -> Encoded:
        """Encode what stands in a state channel: an instance, a view, or a bare value.

        A view may come from outside: it is validated, and its defaults are filled in.

        Raises:
            ParamsInvalid: The value does not fit the params type, or holds an unknown field.
            TypeError: A part cannot be stored.
            ValueError: A part is a secret, or would come back changed.

        Example:
            >>> ParamsCodec(int).load("5", {})
            Encoded(view={'value': 5}, types={})
        """
        kind = self._kind
        if kind.instance not in (dict, object) and isinstance(value, kind.instance):
            return self.encode(cast("ParamsT", value))
        if kind.form == "bare" and not (is_object(value) and value.keys() == {"value"}):
            value = {"value": value}
        elif is_object(value):  # a form may be filled in by alias
            value = {kind.aliases.get(name, name): item for name, item in value.items()}
        view, foreign = _written(value, "params")
        if kind.form == "object" and not is_object(view):
            found = f"is a `{typed_json.class_label(value.__class__)}`"
            if value is None:
                found = "is not in the state (under this name or its own in `keys`)"
            want = typed_json.class_label(kind.instance)
            raise ParamsInvalid([issue("", f"{found}: give a `{want}` or its JSON", "type")])
        try:
            # Python values may stand among the JSON: then it cannot be judged by JSON's rules.
            params, problems = self._built(value, types, plain=not foreign)
        except ParamsInvalid as error:
            if not is_object(view) or kind.fields is None:
                raise
            known = {name: view[name] for name in kind.fields if name in view}
            more = _unknown_fields(view, known, kind.fields)
            raise ParamsInvalid([*error.issues, *more]) from error.__cause__
        kept = _written(self._laid_out(params), "params", deep=True)[0]
        lost = [*_unknown_fields(view, kept, kind.fields)]
        if lost:
            raise ParamsInvalid(problems or lost)
        return self.encode(params)

    def changed_in_place(self, before: Encoded, value: ParamsT) -> bool:
        """Tell whether a copy handed out by `decode(*before)` was changed since.

        Example:
            >>> codec = ParamsCodec(dict)
            >>> before = codec.encode({"tries": []})
            >>> copy = codec.decode(*before)
            >>> copy["tries"].append(1)
            >>> codec.changed_in_place(before, copy)
            True
        """
        fresh = typed_json.write(self._laid_out(self.decode(*before)))
        try:
            return bool(_differences(fresh, typed_json.write(self._laid_out(value))))
        except RecursionError:
            return True

    def _laid_out(self, value: Any) -> Any:
        return {"object": value, "bare": {"value": value}, "empty": {}}[self._kind.form]

    def _built(
        self, view: Any, types: dict[str, str], *, plain: bool = True
    ) -> tuple[Any, list[Issue]]:
        """Build params, and list the entries of `types` that were passed over."""
        kind, problems = self._kind, list[Issue]()
        data = typed_json.restore(view, types, problems)
        if problems and kind.schema is None:
            raise ParamsInvalid(problems)
        try:
            built = typed_json.validate(kind.adapter, data, plain=plain and not types)
        except ValidationError as error:
            raise ParamsInvalid(pydantic_issues(error, data)) from None
        except typed_json.VALIDATOR_ERRORS as error:
            message = f"its validation failed with {type(error).__name__}: {error}"
            raise ParamsInvalid([issue("", message, "validator_error")]) from error
        return built if kind.form == "object" else built.get("value"), problems


def _written(shown: Any, owner: str, *, deep: bool = False) -> typed_json.Written:
    try:
        written = typed_json.write(shown, deep=deep)
    except RecursionError:
        message = "nested deeper than 100 levels, or contains itself: make it a flat tree"
        raise ValueError(f"a part of {owner} is {message}") from None
    for path, tag in written[1].items():
        if tag.startswith(typed_json.NEVER):
            raise ValueError(f"{_place(path, owner)} {tag[1:]}")
    return written


def _differences(one: typed_json.Written, other: typed_json.Written) -> list[tuple[str, Any, Any]]:
    retyped = [p for p in {**one[1], **other[1]} if one[1].get(p) != other[1].get(p)]
    return [*changes(one[0], other[0]), *((path, None, None) for path in retyped)]


def _unknown_fields(view: Any, kept: Any, fields: tuple[str, ...] | None) -> Iterator[Issue]:
    """Yield the keys of a view that the value built from it did not keep."""
    for path in [each["path"] for each in diff_views(view, kept) if each["op"] == "remove"]:
        home = resolve_pointer(kept, path.rpartition("/")[0])
        if is_object(home):
            known = fields if home is kept and fields is not None else home
            names = ", ".join(f"`{name}`" for name in known if not name.startswith("_"))
            there = f"the known ones are {names}" if names else "there are none"
            yield issue(path, f"is not a known field; {there}", "unknown_field", names or None)


def _refusal(
    reasons: dict[str, str], wrong: list[str], error: ParamsInvalid | None, owner: str
) -> Exception:
    for near, why in reasons.items():
        pairs = [(f"{near}/", f"{path}/") for path in wrong]
        if any(one.startswith(other) or other.startswith(one) for one, other in pairs):
            return TypeError(f"{_place(near, owner)} {why[1:]}")
    if error is not None:
        return ParamsInvalid(error.issues, f"{owner} do not fit their own type")
    return ValueError(
        f"{_place(wrong[0], owner)} would come back changed from graph state: make it a declared "
        "field that validation leaves as it is, or capture it in the function"
    )


def _place(path: str, owner: str) -> str:
    suffix = "" if owner == "params" else f" in {owner}"
    return f"`{spelled(path)}`{suffix}"
