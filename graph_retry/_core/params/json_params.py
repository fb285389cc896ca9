"""Params that are a JSON object with a JSON Schema of the caller, such as a tool's arguments."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from graph_retry._core.params.codec import ParamsCodec, ParamsInvalid
from graph_retry._core.params.patch import Encoded
from graph_retry.records import Issue


class JsonParams(ParamsCodec[dict[str, Any]]):
    """Params that are a JSON object, with a JSON Schema and a check for a person's edits.

    Args:
        given: The first params. They are not checked.
        schema: The JSON Schema of edited params. Without it, any object is allowed.
        check: A function that returns the issues of edited params.
        why_no_comment: The reason why these params can hold no comment for the model, or None.
        of_model: Whether a model chose these params, as it chooses the arguments of a tool.

    Example:
        >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
        >>> JsonParams({"n": 1}, schema).fields
        ('n',)
    """

    def __init__(
        self,
        given: dict[str, Any],
        schema: dict[str, Any] | None = None,
        check: Callable[[dict[str, Any]], list[Issue]] | None = None,
        *,
        why_no_comment: str | None = None,
        of_model: bool = False,
    ) -> None:
        """Keep the schema and the check."""
        super().__init__(dict)
        self._given, self._schema, self._check = given, schema or {}, check
        self.why_no_comment, self.of_model = why_no_comment, of_model

    @property
    def fields(self) -> tuple[str, ...] | None:
        """The names of the fields; None if the params may have any field."""
        if not self._schema.get("properties") or self._schema.get("additionalProperties"):
            return None
        return tuple({**self._schema["properties"], **self._given})

    def schema(self, view: dict[str, Any] | None = None) -> dict[str, Any]:
        """Return the JSON Schema. If the params may have any field, infer it from `view`."""
        return deepcopy(self._schema) if self.fields else super().schema(view)

    def load(self, value: Any, types: dict[str, str]) -> Encoded:
        """Encode params. If they differ from `given`, they are an edit, which `check` must accept.

        Raises:
            ParamsInvalid: If an edit does not pass the check.
        """
        encoded = super().load(value, types)
        is_edit = self._check is not None and encoded.view != self._given
        if self._check is not None and is_edit and (issues := self._check(encoded.view)):
            raise ParamsInvalid(issues)
        return encoded
