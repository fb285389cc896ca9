"""Tell a provider's response that came as JSON, and make it the object that its clients make.

`requests.post(…).json()`, a client's `model_dump()` and botocore's `converse` give such dicts.
"""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from graph_retry._json import is_array, is_object

_DATA = frozenset({"args", "arguments", "input", "parsed", "output_parsed"})
"""Keys of what the model wrote, which stays as it is."""
_CAPITAL = re.compile(r"(?<=[a-z])([A-Z])")


def response_of_json(given: Any) -> Any | None:
    """Return the object a response of OpenAI, Anthropic, Google or Bedrock stands for, or None.

    Only what is certainly one: a role at its place, and the keys around it.

    Example:
        >>> said = {"role": "assistant", "content": "Hello."}
        >>> response_of_json({"choices": [{"message": said}]}).choices[0].message.content
        'Hello.'
        >>> response_of_json({"choices": ["a", "b"]})
    """
    if not is_object(given):
        return None
    if _at(given, "choices", 0, "message", "role") == "assistant":
        choices: list[Any] = given["choices"]
        whole = [{**one, "message": {"content": None, **one["message"]}} for one in choices]
        return _object({**given, "choices": whole})
    if given.get("object") == "response" and is_array(given.get("output")):
        parts = [part for item in given["output"] for part in _at(item, "content") or ()]
        text = "".join(part["text"] for part in parts if _at(part, "type") == "output_text")
        return _object({**given, "output_text": text})
    if (given.get("type"), given.get("role")) == ("message", "assistant"):
        return _object({"stop_reason": None, **given})
    if _at(given, "candidates", 0, "content", "role") == "model":
        return _object(given)
    if _at(given, "output", "message", "role") == "assistant" and "stopReason" in given:
        return _of_bedrock(given)
    return None


def _of_bedrock(given: dict[str, Any]) -> Any:
    """Make an answer of `converse` one of Anthropic's."""
    blocks: list[Any] = []
    for block in given["output"]["message"]["content"]:
        if "toolUse" in block:
            used = block["toolUse"]
            blocks.append({**used, "type": "tool_use", "id": used.get("toolUseId")})
        elif "text" in block:
            blocks.append({"type": "text", "text": block["text"]})
    usage, stopped = given.get("usage"), given["stopReason"]
    return _object({"content": blocks, "stop_reason": stopped, "usage": usage})


def _at(value: Any, *path: str | int) -> Any:
    """Return what stands at a path, None where there is nothing."""
    for part in path:
        if is_object(value):
            value = value.get(str(part))
        elif is_array(value) and isinstance(part, int) and part < len(value):
            value = value[part]
        else:
            return None
    return value


def _object(value: Any) -> Any:
    """Make dicts objects with attributes, spelled as Python's clients spell them."""
    if is_array(value):
        return [_object(item) for item in value]
    if not is_object(value):
        return value
    spelled = {_CAPITAL.sub(r"_\1", str(name)).lower(): item for name, item in value.items()}
    return SimpleNamespace(
        **{name: item if name in _DATA else _object(item) for name, item in spelled.items()}
    )
