"""Put a value together again from its JSON view and its types map."""

import base64
import dataclasses
import json
import sys
from collections.abc import Callable, Hashable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.messages import messages_from_dict
from pydantic import BaseModel, PydanticUserError, TypeAdapter

from graph_retry.params.jsonlike import is_array, is_object
from graph_retry.params.node import Node
from graph_retry.records import Issue
from graph_retry.validate.issues import describe, issue, pointer

UNKNOWN_TYPE = "unknown_type"
"""Code of the one issue that no declared type can make good: the class is not there."""


VALIDATOR_ERRORS = (TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What a validator or `__post_init__` may raise on odd data, beside what pydantic wraps."""


class _NoSuchClass(Exception):
    pass


def restore(view: Any, node: Node | None, problems: list[Issue], at: tuple[str, ...] = ()) -> Any:
    """Build a fresh value; where an entry does not fit, add a problem and leave the JSON."""
    fresh: Any = view
    if is_object(view):
        fresh = {
            key: restore(item, node and node.child(key, False), problems, (*at, key))
            for key, item in view.items()
        }
    elif is_array(view):
        fresh = [
            restore(item, node and node.child(str(i), True), problems, (*at, str(i)))
            for i, item in enumerate(view)
        ]
    if node is None or node.tag is None:
        return fresh
    try:
        return _revive(node.tag, fresh, plain=not node.children)
    except _NoSuchClass as error:
        problems.append(issue(pointer(at), str(error), UNKNOWN_TYPE, node.tag))
    except (*VALIDATOR_ERRORS, PydanticUserError):
        message = f"does not read as a `{node.tag}`"
        problems.append(issue(pointer(at), message, "type_entry", node.tag, describe(view)))
    return fresh


def validate(
    adapter: TypeAdapter[Any], data: Any, *, plain: bool, by_alias: bool | None = False
) -> Any:
    """Validate by field name; `plain` data is judged as JSON, so that strict models take it."""
    if plain:
        return adapter.validate_json(json.dumps(data), by_alias=by_alias, by_name=True)
    return adapter.validate_python(data, by_alias=by_alias, by_name=True)


@lru_cache(maxsize=256)
def adapter_of(cls: Hashable) -> TypeAdapter[Any]:
    """Return the one adapter of a class."""
    return TypeAdapter(cast("Any", cls))


def has_class(tag: str) -> bool:
    """Tell whether a `module:qualname` can be found again."""
    try:
        return bool(_class(tag))
    except _NoSuchClass:
        return False


def _revive(tag: str, value: Any, *, plain: bool) -> Any:
    if tag in _WORDS:
        return _WORDS[tag](_only(str, value))
    if tag in _NUMBERS:
        return value if tag != "decimal" and type(value) in (int, float) else _number(tag, value)
    if tag in _LISTS:
        return _LISTS[tag](_only(list, value))
    if tag == "message":
        return _message(_only(dict, value))
    if tag.startswith("datetime["):
        zone = ZoneInfo(tag.removeprefix("datetime[").removesuffix("]"))
        moment = datetime.fromisoformat(_only(str, value))
        return moment.astimezone(zone) if moment.tzinfo else moment.replace(tzinfo=zone)
    cls = _class(tag)
    if issubclass(cls, Enum):
        try:
            return cls(value)
        except ValueError:
            return cls[value]
    return validate(adapter_of(cast("Hashable", cls)), value, plain=plain)


def _only(kind: type, value: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(kind.__name__)
    return value


def _number(tag: str, value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(tag)
    return _NUMBERS[tag](str(value))


def _message(fields: dict[str, Any]) -> Any:
    return messages_from_dict([{"type": fields["type"], "data": fields}])[0]


def _class(tag: str) -> type[Any]:
    """Find a class among the modules already imported; nothing is imported for a state's sake."""
    module, _, path = tag.partition(":")
    # `vars`, not `getattr`: a module-level `__getattr__` may import.
    found: object = sys.modules.get(module)
    for name in path.split("."):
        found = cast("dict[str, object]", getattr(found, "__dict__", {})).get(name)
    if not isinstance(found, type):
        raise _NoSuchClass(
            f"its class `{tag}` is not among the imported modules: import it in this process, "
            "and define it at the top level of a module"
        )
    cls: type[Any] = found
    if not (issubclass(cls, BaseModel | Enum) or dataclasses.is_dataclass(cls)):
        raise _NoSuchClass(f"`{tag}` is not a pydantic model, dataclass or enum")
    return cls


_DURATION = TypeAdapter(timedelta)
_WORDS: dict[str, Callable[[str], Any]] = {
    "bytes": str.encode,
    "base64": lambda text: base64.b64decode(text, validate=True),
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": _DURATION.validate_python,
    "uuid": UUID,
    "path": Path,
}
_NUMBERS: dict[str, Callable[[str], Any]] = {"int": int, "float": float, "decimal": Decimal}
_LISTS: dict[str, Callable[[list[Any]], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
