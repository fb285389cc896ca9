"""Find mappings in which validation turned two keys into one, so that a value was lost.

For example, a `dict[int, str]` reads the keys `"1"` and `"01"` as the same number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from pydantic_core import SchemaValidator

from graph_retry._core.ground.json import ABSENT, is_object, pointer
from graph_retry._core.output.types.conversions import children_of
from graph_retry._core.output.types.core_schema import CoreSchema, Schema


class MappingKeys:
    """The validation of keys in all mappings of one type, such as to lower case or to numbers.

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
        """Return the path of the first object where two keys became one, or None."""
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
    """Return pydantic's validator for the keys of a mapping."""
    definitions = [*whole.definitions.values()]
    all_of_it = {"type": "definitions", "schema": keys, "definitions": definitions}
    return SchemaValidator(cast("Any", all_of_it if definitions else keys), cast("Any", config))
