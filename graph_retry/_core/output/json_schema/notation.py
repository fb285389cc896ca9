"""Write a JSON Schema as a short notation of the type.

A small model with a JSON Schema in its prompt often answers with this schema. A type in the short
notation is seldom copied.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.issues import size_in_words
from graph_retry._core.ground.json import is_array, is_object
from graph_retry._core.ground.pattern_examples import example_of
from graph_retry._core.ground.schemas import REFERENCES, has_prefix_items, kind_of, kinds

_SILENT = {"title", "default", "description", "examples", "discriminator"}
_AT_ROOT = {"$schema", "$defs", "definitions", "$comment"}
"""Keywords that demand nothing of a value by themselves."""
_PLAIN = {
    "string": "string",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}
_NUMBERS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
}
_SIZES = {
    "minLength": "character",
    "maxLength": "character",
    "minItems": "item",
    "maxItems": "item",
}
_LIMITS: dict[str, tuple[str, ...]] = {
    "string": ("minLength", "maxLength", "pattern", "format"),
    "integer": (*_NUMBERS,),
    "number": (*_NUMBERS,),
    "array": ("minItems", "maxItems"),
}


class _UnsayableError(Exception):
    """The notation cannot say this schema."""


@checked
def describe_type(schema: dict[str, Any]) -> str:
    """Write a JSON Schema as a short notation of the type, for the prompt of a model.

    Types that the notation refers to by name follow at the end, as `name: type`. A part of the
    schema that the notation cannot express is written as JSON Schema. Feedback uses the same
    notation. If the provider has constrained decoding, use it from the first request.

    Args:
        schema: A JSON Schema, such as `MyModel.model_json_schema()`.

    Example:
        >>> print(describe_type({"type": "object", "required": ["n"], "properties": {
        ...     "n": {"type": "integer", "minimum": 1}, "s": {"enum": ["a", None]}}}))
        {
          n: int (at least 1),
          s?: "a" or null,
        }
    """
    try:
        return _Notation(schema).document()
    except (_UnsayableError, RecursionError):
        return _as_schema(schema)


def _as_schema(node: Any) -> str:
    return f"JSON Schema {json.dumps(node, ensure_ascii=False)}"


class _Notation:
    def __init__(self, schema: dict[str, Any]) -> None:
        self._root, self._named = schema, dict[str, Any]()
        self._uses = Counter(_references(schema))
        self._has_tuples = has_prefix_items(schema)

    def document(self) -> str:
        """Return the type, and the definitions that it refers to by name."""
        root = {word: value for word, value in self._root.items() if word not in _AT_ROOT}
        lines = [self.type(root, "")]
        told = list[str]()
        while len(told) < len(self._named):
            name = [*self._named][len(told)]
            told.append(name)
            lines.append(f"{name}: {self.type(self._named[name], '')}")
        return "\n".join(lines)

    def type(self, node: Any, indent: str) -> str:
        """Return the type of one schema. The later lines of an object begin with `indent`."""
        if node is True or node == {}:
            return "any"
        try:
            if not is_object(node):
                raise _UnsayableError
            said = {word: value for word, value in node.items() if word not in _SILENT}
            text = self._said(said, indent) if said else "any"
        except _UnsayableError:
            if any(_references(node)):
                raise  # Outside of the whole schema, a reference leads nowhere.
            return _as_schema(node)
        notes = [" ".join(str(node["description"]).split())] if node.get("description") else []
        if is_array(node.get("examples")):
            notes += [f"such as {json.dumps(one, ensure_ascii=False)}" for one in node["examples"]]
        return _noted(text, notes)

    def _said(self, said: dict[str, Any], indent: str) -> str:
        match said:
            case {"$ref": str(target), **rest} if not rest:
                return self._reference(target, indent)
            case {"const": value, **rest} if _is_told_by([value], rest):
                return json.dumps(value, ensure_ascii=False)
            case {"enum": [*values], **rest} if values and _is_told_by(values, rest):
                return " or ".join(json.dumps(value, ensure_ascii=False) for value in values)
            case {"anyOf": [*parts], **rest} | {"oneOf": [*parts], **rest} if parts and not rest:
                return " or ".join(dict.fromkeys(self.type(part, indent) for part in parts))
            case {"type": [*names], **rest} if names and rest.keys() <= _limits(names):
                return " or ".join(self.type(_of_type(str(n), rest), indent) for n in names)
            case {"type": "array", **rest}:
                return self._list(rest, indent)
            case {"type": "object", **rest}:
                return self._object(rest, indent)
            case {"type": str(name), **rest} if name in _PLAIN and rest.keys() <= _limits([name]):
                return _noted(_PLAIN[name], map(_limit, rest, rest.values()))
            case _:
                raise _UnsayableError

    def _reference(self, target: str, indent: str) -> str:
        """Return the name of a definition, or its type if the definition is used only once."""
        place, _, name = target.rpartition("/")
        definitions = self._root.get(place.removeprefix("#/"))
        if not (is_object(definitions) and name in definitions and _is_name(name)):
            raise _UnsayableError
        if self._uses[target] == 1:
            return self.type(definitions[name], indent)
        if self._named.setdefault(name, definitions[name]) is not definitions[name]:
            raise _UnsayableError
        return name

    def _list(self, rest: dict[str, Any], indent: str) -> str:
        limits = {word: rest.pop(word) for word in _LIMITS["array"] if word in rest}
        first, items = rest.pop("prefixItems", None), rest.pop("items", True)
        notes = ["all different"] if rest.pop("uniqueItems", False) else []
        if rest or is_array(items):
            raise _UnsayableError
        if first is not None:
            exact = {"minItems": len(first), "maxItems": len(first)}
            if not self._has_tuples or limits != exact or notes:
                raise _UnsayableError
            return f"[{', '.join(self.type(part, indent) for part in first)}]"
        text = self.type(items, indent)
        is_one = text.replace("[]", "").isidentifier() or (
            text.startswith("{") and text.find(f"\n{indent}}}") == len(text) - len(indent) - 2
        )
        notes += map(_limit, limits, limits.values())
        return _noted(f"{text if is_one else f'({text})'}[]", notes)

    def _object(self, rest: dict[str, Any], indent: str) -> str:
        fields, required = rest.pop("properties", {}), rest.pop("required", [])
        others = rest.pop("additionalProperties", None)
        if rest:
            raise _UnsayableError
        more = True if others is None else others
        fields = {**fields, **{key: more for key in required if key not in fields}}
        inner = f"{indent}  "
        lines = [
            f"{key if _is_name(key) else json.dumps(key, ensure_ascii=False)}"
            f"{'' if key in required else '?'}: {self.type(of, inner)},"
            for key, of in fields.items()
        ]
        if more is not False and (others is not None or not fields):
            lines.append(f"[key: string]: {self.type(more, inner)},")
        return "\n".join(["{", *(inner + line for line in lines), f"{indent}}}"])


def _references(node: Any) -> Iterator[str]:
    """Yield what all references in a schema refer to."""
    if is_object(node):
        yield from (node[word] for word in REFERENCES if isinstance(node.get(word), str))
    for child in node.values() if is_object(node) else node if is_array(node) else ():
        yield from _references(child)


def _is_name(text: str) -> bool:
    return text.isascii() and text.isidentifier()


def _is_told_by(values: list[Any], rest: dict[str, Any]) -> bool:
    """Return whether the values show all that the other keywords of a schema demand."""
    return not rest or (
        rest.keys() == {"type"}
        and isinstance(rest["type"], str)
        and {kind_of(value) for value in values} <= kinds(rest)
    )


def _limits(names: list[Any]) -> set[str]:
    return {word for name in names for word in _LIMITS.get(str(name), ())}


def _of_type(name: str, rest: dict[str, Any]) -> dict[str, Any]:
    allowed = _limits([name])
    return {"type": name, **{word: limit for word, limit in rest.items() if word in allowed}}


def _limit(word: str, limit: Any) -> str:
    if word == "format":
        return "date as YYYY-MM-DD" if limit == "date" else f"format {limit}"
    if word == "pattern":
        example = example_of(limit)
        return f"matches {limit}" + (f", such as {example}" if example else "")
    if word in _SIZES:
        return size_in_words(word, limit, _SIZES[word])
    return _NUMBERS[word].format(limit)


def _noted(text: str, notes: Iterable[str]) -> str:
    told = ", ".join(notes)
    return f"{text} ({told})" if told else text
