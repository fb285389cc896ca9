"""An output schema that is itself one of the params, so that a reviewer can change it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graph_retry._output.build import build_validator
from graph_retry._output.validator import Validator
from graph_retry.records import Issue


class SchemaOfParams(Validator):
    """Validate by the JSON Schema in the params' field `field`, as each attempt has it.

    Example:
        >>> from graph_retry import create_retry_node
        >>> output = SchemaOfParams("wanted")
        >>> node = create_retry_node(lambda params: "[1]", dict, output=output)
        >>> node.invoke({"params": {"wanted": {"type": "array"}}})["output"]
        [1]
    """

    def __init__(self, field: str, *, check_formats: bool = False) -> None:
        self.field, self._check_formats = field, check_formats
        self.name = f"value as `{field}` says"

    def fitted(self, params: Mapping[str, Any]) -> Validator:
        """Return the validator for these params."""
        return build_validator(params[self.field], check_formats=self._check_formats)

    def _judge(self, value: Any) -> tuple[Any, list[Issue]]:
        return value, []  # judged before, with the params at hand
