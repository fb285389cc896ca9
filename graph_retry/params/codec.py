"""The one form of params outside the call: a plain-JSON view, and a small map of types beside it.

A view is always a JSON object: the fields by name, `{"value": v}` for a bare value, `{}` for
`None`. The types map (`{JSON Pointer: type}`) says only what neither JSON nor the params type can;
it is empty for most params.
"""

import copy
import dataclasses
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from graph_retry.params.decode import build, lost_keys
from graph_retry.params.encode import Encoded, apart, encode
from graph_retry.params.invalid import ParamsInvalid
from graph_retry.params.kind import UNTYPED_BARE, UNTYPED_DICT, inferred_schema, kind_of
from graph_retry.params.node import differences
from graph_retry.records import Issue

ParamsT = TypeVar("ParamsT")

__all__ = ["Encoded", "ParamsCodec", "ParamsInvalid"]


class ParamsCodec(Generic[ParamsT]):
    """Turns params into a JSON view and back, without loss or with an error that names the field.

    What comes back equals what went in, strictly by type. One thing is not kept: which fields of
    a model were given explicitly; afterwards all count as given.

    Example:
        >>> codec = ParamsCodec(dict)
        >>> codec.encode({"limit": 5, "ids": {7}})
        Encoded(view={'limit': 5, 'ids': [7]}, types={'/ids': 'set'})
        >>> codec.decode({"limit": 9, "ids": [7]}, {"/ids": "set"})
        {'limit': 9, 'ids': {7}}
    """

    def __init__(self, params_type: type[ParamsT] | Any) -> None:
        """Prepare for one params type.

        Args:
            params_type: A pydantic model, dataclass or TypedDict class, `dict`, any other type
                pydantic can validate, or `None` for a call without params.

        Raises:
            TypeError: The type cannot be built from JSON.
            ValueError: The type declares a secret field.
        """
        self._kind = kind_of(params_type)

    @classmethod
    def for_value(cls, value: ParamsT) -> "ParamsCodec[ParamsT]":
        """Prepare for params known only by one value.

        A model or dataclass is typed by its class; any other value only by its form.

        Example:
            >>> ParamsCodec.for_value("a prompt").fields
            ('value',)
        """
        known: Any = value
        typed = isinstance(known, BaseModel) or dataclasses.is_dataclass(known)
        if known is None or typed or type(known) is dict:
            return cls(value.__class__)
        codec = cls(None)
        codec._kind = UNTYPED_BARE
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
            >>> ParamsCodec(str).schema()["properties"]
            {'value': {'type': 'string'}}
        """
        schema = self._kind.schema
        return inferred_schema(view or {}) if schema is None else copy.deepcopy(schema)

    def encode(self, value: ParamsT, *, owner: str = "params") -> Encoded:
        """Write params as a view; the value itself is left alone.

        Args:
            value: An instance of the params type.
            owner: Who made the value, for the error: ``the params returned by hook `bump` ``.

        Raises:
            TypeError: The value has another type, or a part of it cannot be stored.
            ValueError: A part is a secret, or would come back changed.

        Example:
            >>> ParamsCodec(str).encode("Summarise this.")
            Encoded(view={'value': 'Summarise this.'}, types={})
        """
        return encode(self._kind, value, owner)

    def decode(self, view: dict[str, Any], types: dict[str, str]) -> ParamsT:
        """Build the params a view stands for: a fresh value each time, sharing nothing.

        Entries of `types` that an edit outdated are passed over when the params type still makes
        sense of the JSON.

        Raises:
            ParamsInvalid: The view does not fit the params type, or holds an unknown field.

        Example:
            >>> ParamsCodec(float).decode({"value": 0.2}, {})
            0.2
        """
        problems: list[Issue] = []
        value = build(self._kind, view, types, problems=problems)
        lost = lost_keys(self._kind, view, apart(self._kind, value))
        if lost:
            raise ParamsInvalid(problems or lost)
        return cast("ParamsT", value)

    def load(self, value: Any, types: dict[str, str]) -> Encoded:
        """Encode what stands in a state channel: an instance, a view, or a bare value.

        A view may come from outside: it is validated, its defaults are filled in, and aliases
        are understood beside field names.

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
            return encode(kind, value, "params")
        if kind.form != "bare":
            return self._adopt(value, types)
        if isinstance(value, dict) and set(cast("dict[str, Any]", value)) == {"value"}:
            try:
                return self._adopt(value, types)
            except ParamsInvalid:
                if kind.adapter is None:
                    raise
        return self._adopt({"value": value}, types)

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
        fresh = apart(self._kind, build(self._kind, *before))
        try:
            now = apart(self._kind, value)
        except (TypeError, ValueError):
            return True
        return any(differences(fresh, now, hidden=False))

    def _adopt(self, view: Any, types: dict[str, str]) -> Encoded:
        kind = self._kind
        # Python values may stand among the JSON; `apart` refuses the ones that can never be stored.
        plain = apart(UNTYPED_DICT, view).node is None
        errors: list[ParamsInvalid] = []
        for by_alias in (False, True) if kind.aliases else (False,):
            problems: list[Issue] = []
            try:
                value = build(kind, view, types, plain=plain, by_alias=by_alias, problems=problems)
            except ParamsInvalid as error:
                errors.insert(0, error)
                continue
            lost = lost_keys(kind, view, apart(kind, value), by_alias=by_alias)
            if not lost:
                return encode(kind, value, "params")
            errors.insert(0, ParamsInvalid(problems or lost))
        raise min(errors, key=lambda error: len(error.issues))
