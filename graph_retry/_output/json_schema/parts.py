"""The rules for the parts of a growing value, from a JSON Schema.

The parts of an object or list have rules only if exactly one branch of its schema allows a
container, of one kind. In any other union, only the complete value can be validated.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

from graph_retry._issues import MAX_ISSUES, schema_issue
from graph_retry._output.json_schema.bounded_work import errors_of
from graph_retry._output.partial.part import Forbidden, Key, Part
from graph_retry._schemas import alternatives, element, has_own_base, kinds, member
from graph_retry.records import Issue

_CONTAINERS = {"object": dict[str, Any], "array": list[Any]}


class SchemaPart(Part):
    """The rules from one node of a JSON Schema.

    Args:
        node: The node, which is the schema for one place of the value.
        judge: A `jsonschema` validator for the whole schema.
        root: The whole schema, with its `$schema`.
    """

    def __init__(self, node: Any, judge: Any, root: Any) -> None:
        self._node, self._judge, self._root = node, judge, root

    @cached_property
    def _open(self) -> dict[str, Any]:
        """The only branch that allows a container here; `{}` if there is no such branch."""
        found = [
            one for one in alternatives(self._node, self._root) if kinds(one) & {"object", "array"}
        ]
        is_plain = len(found) == 1 and not kinds(found[0]) >= {"object", "array"}
        return found[0] if is_plain else {}

    @property
    def container(self) -> type[Any] | None:  # type: ignore[override]
        """`dict` or `list`, if the schema allows only this container; otherwise None."""
        if not self._open:
            return None
        return dict if "object" in kinds(self._open) else list

    @property
    def most(self) -> int | None:  # type: ignore[override]
        """The schema's `maxItems`."""
        return self._open.get("maxItems")

    def inner(self, key: Key) -> Part:
        """Return the rules for the member or element at `key`."""
        node = (
            element(self._open, key, self._root)
            if isinstance(key, int)
            else member(self._open, key)
        )
        if node is False:
            return Forbidden("this member or element is not allowed", "additionalProperties")
        if node is None or has_own_base(node):
            return Part()
        return SchemaPart(node, self._judge, self._root)

    def errors(self, value: Any) -> list[Issue]:
        """Validate a value by this node, and return the errors."""
        try:
            judge = self._judge.evolve(schema=self._node)
            return [schema_issue(error) for error in errors_of(judge, value, MAX_ISSUES)]
        except Exception:  # noqa: BLE001 - the validation of the whole reports schema errors
            return []
