"""Odd values: what no client should send and no model should write, made from a seed."""

import json
import random
from typing import Any

from langchain_core.messages import AIMessage
from pydantic import BaseModel

from graph_retry import Completion

TEXTS = [
    "", "approve", "null", "[", "{", '"', "\0", "\x1b[2J", "\ud800", "\u202e", "x" * 3_000,
    "é" * 500,
    "1e999", "NaN", "-0", "9" * 5_000, '{"n": 1, "n": 2}', '{"type": "approve", "type": "reject"}',
    '{"n": NaN}', '{"n": "\\ud800"}', '{"\\ud800": 1}', "[" * 10_000, "[" * 10_000 + "]" * 10_000,
    '{"a":' * 10_000 + "1" + "}" * 10_000, "```json\n" * 50, "<think>", "{'n': 1,}", '{"n": 1',
    "{}" * 99,
]  # fmt: skip
SCALARS = [
    None, True, False, 0, -1, 1.5, 2**63, 2**64, -(2**80), 10**400, 1e308, float("nan"),
    float("inf"),
    b"\xff", b"approve", bytearray(b"{}"), memoryview(b"x"), (1, 2), {3}, object(), int, 1j, len,
]  # fmt: skip
KEYS = [
    "type", "action", "params", "revised_params", "args", "arguments", "edited_action", "message",
    "output", "attempt", "review_id", "decision_id", "by", "resume", "decisions", "n", "prompt",
    "__agui_cancelled__", "rewind", "\0", "\ud800", "", "k" * 2_000, "a/b", "~",
]  # fmt: skip
WORDS = ["approve", "accept", "retry", "edit", "reject", "response", "ignore", "respond", "nil"]


class Boxed(BaseModel):
    content: Any = None


class Grumpy:
    """Fails at whatever is asked of it but its class."""

    def __repr__(self) -> str:
        raise RuntimeError("no repr")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    __hash__ = object.__hash__


class Speechless(Exception):
    """An exception whose text and whose attributes fail."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    @property
    def response(self) -> Any:
        raise RuntimeError("no response")


def nested(depth: int, kind: type = list, leaf: Any = "approve") -> Any:
    """Build a value `depth` levels deep."""
    for _ in range(depth):
        leaf = [leaf] if kind is list else {"a": leaf}
    return leaf


def looped() -> Any:
    """Build a dict that holds itself."""
    value: dict[str, Any] = {"type": "edit"}
    value["params"] = value
    return value


def odd_value(chance: random.Random, depth: int = 0) -> Any:
    """Make any Python value, mostly of the shape that answers and outputs have."""
    roll = chance.random()
    if roll < 0.3 or depth > 4:
        return chance.choice(TEXTS) if chance.random() < 0.5 else chance.choice(SCALARS)
    if roll < 0.8:
        keys = chance.sample(KEYS, chance.randrange(5))
        made: dict[Any, Any] = {key: odd_value(chance, depth + 1) for key in keys}
        if chance.random() < 0.6:
            made["type"] = chance.choice(WORDS)
        if chance.random() < 0.05:
            made[chance.choice([1, None, (1, 2), 2.5, True])] = 1
        return made
    if roll < 0.9:
        return [odd_value(chance, depth + 1) for _ in range(chance.randrange(4))]
    if roll < 0.97:
        written = json.dumps(odd_value(chance, depth + 1), default=repr, skipkeys=True)
        cut = chance.randrange(len(written) + 1)
        return chance.choice([written, written[:cut], written[cut:] + written[:cut]])
    return nested(chance.choice([9, 99, 101, 199, 250]), chance.choice([list, dict]))


def odd_output(chance: random.Random) -> Any:
    """Make anything a model call may return, or an exception it may raise."""
    value, roll = odd_value(chance), chance.random()
    text = value if isinstance(value, str) else chance.choice(TEXTS)
    if roll < 0.5:
        return chance.choice([text, value, json.dumps(value, default=repr, skipkeys=True)])
    if roll < 0.65:
        extra = chance.choice([{}, {"parsed": value}, {"refusal": value}])
        how = {"finish_reason": chance.choice(["stop", "length", "content_filter", text, 5])}
        return AIMessage(content=text, additional_kwargs=extra, response_metadata=how)
    if roll < 0.8:
        usage: Any = chance.choice([None, value, {"total_tokens": value}])
        return Completion(chance.choice([text, value]), usage, chance.choice(["stop", value]))
    if roll < 0.9:
        return chance.choice([Boxed(content=value), Grumpy(), Boxed(content=Grumpy()), looped()])
    return chance.choice([ValueError(text), Speechless(), RecursionError(text), TimeoutError()])
