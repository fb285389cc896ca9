"""Read the fields of params by name, spell them for errors, and know who takes no fields."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, get_args, get_origin

from langchain_core.prompt_values import PromptValue
from pydantic import BaseModel

from graph_retry._core.ground.json import is_object, pointer_parts
from graph_retry._core.ground.wording import quoted_with_article
from graph_retry.lossless._ground import escaped


def fields_of(params: Any) -> Mapping[str, Any]:
    """Return the fields of a dict, pydantic model or dataclass. Any other object has none.

    Example:
        >>> fields_of({"model": "small"})["model"]
        'small'
    """
    if is_object(params):
        return params
    if isinstance(params, BaseModel):
        known = {*type(params).model_fields, *(params.__pydantic_extra__ or ())}
        return {name: value for name, value in params if name in known}
    if dataclasses.is_dataclass(params) and not isinstance(params, type):
        names = [field.name for field in dataclasses.fields(params) if field.init]
        return {name: getattr(params, name, None) for name in names}
    return {}


def hidden_fields(params: Any) -> Mapping[str, Any]:
    """Return the private attributes of a model, or the fields of a dataclass with `init=False`."""
    if isinstance(params, BaseModel):
        return params.__pydantic_private__ or {}
    if not dataclasses.is_dataclass(params):
        return {}
    return {f.name: getattr(params, f.name, None) for f in dataclasses.fields(params) if not f.init}


def spelled(path: str) -> str:
    """Return a JSON Pointer as a Python expression for errors, such as `params.tags[0]`."""
    parts = (f"[{key}]" if key.isdecimal() else f".{key}" for key in pointer_parts(path))
    return "params" + escaped("".join(parts))


def class_label(cls: type[Any]) -> str:
    """Return the name of a class for errors, with the module unless the class is built in."""
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return escaped(f"{cls.__module__}.{cls.__name__}")


def check_prompt(llm_call: Any, name: str, kind: type[Any]) -> None:
    """Raise if a language model of LangChain, or a chain that begins with one, gets no prompt.

    It would raise an error in each attempt, and no edit of a reviewer could help.
    """
    declared: Any = None
    with suppress(Exception):  # A runnable of the user may declare no input.
        declared = getattr(llm_call, "InputType", None)
    kinds = [get_origin(each) or each for each in get_args(declared)]
    if kind is object or not all(isinstance(each, type) for each in kinds):
        return
    is_model = any(issubclass(each, PromptValue) for each in kinds)
    if is_model and not issubclass(kind, (PromptValue, str, Sequence, *kinds)):
        raise TypeError(
            f"`{name}` takes a text or a list of messages, but the params are "
            f"{quoted_with_article(kind.__name__)}: give a function of the params as `llm_call`, "
            "e.g. `lambda params: model.invoke(params['prompt'])`."
        )
