"""Find the types that a JSON Schema allows at one place of a value.

YAML and XML do not mark the type of a value, so their readers ask the schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

from graph_retry._core.ground.json import is_object
from graph_retry._core.ground.schemas import ANY_KIND, alternatives, element, kinds, member


class Place:
    """The schemas that may apply to one place of a value. Without schemas, any value is allowed."""

    def __init__(self, nodes: Iterable[Any], root: Any) -> None:
        self._root = root
        # If a branch of a union does not declare this place, it comes as None and allows any value.
        declared = filter(is_object, nodes)
        self._schemas = [one for node in declared for one in alternatives(node, root)]

    @classmethod
    def of(cls, schema: dict[str, Any] | None) -> Place:
        """Return the place of the whole value, to which the whole schema applies."""
        return cls([schema], schema)

    @property
    def kinds(self) -> AbstractSet[str]:
        """The JSON types that the schemas allow; empty if any type is allowed."""
        wanted = frozenset[str]().union(*map(kinds, self._schemas))
        return frozenset[str]() if wanted == ANY_KIND else wanted

    @property
    def fields(self) -> set[str]:
        """The names of the properties that the schemas declare."""
        named = [schema.get("properties") for schema in self._schemas]
        return {name for members in named if is_object(members) for name in members}

    @property
    def excludes_text(self) -> bool:
        return bool(self.kinds) and "string" not in self.kinds

    def wants_text_only(self, kind: str) -> bool:
        """Return whether the schema allows text here, but no value of the type `kind`."""
        return "string" in self.kinds and kind not in self.kinds

    def member(self, key: str) -> Place:
        return Place((member(schema, key) for schema in self._schemas), self._root)

    def element(self, index: int) -> Place:
        nodes = (element(schema, index, self._root) for schema in self._schemas)
        return Place(nodes, self._root)
