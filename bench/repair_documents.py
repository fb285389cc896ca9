"""Seeded documents like those models write, and a writer that modes of damage can get between."""

import json
import random
from collections.abc import Callable
from typing import Any

NAMES = ["Ana", "Bob", "Chloé", "Dmitri", "Søren", "李雷", "Zoë", "Omar", "O'Neil", "Nguyễn"]
WORDS = [
    "alpha", "beta", "gamma", "delta", "report", "invoice", "urgent", "pending", "review",
    "summary", "total", "blue", "green", "paris", "oslo", "naïve", "café", "東京", "server",
    "client", "timeout", "query", "index", "result", "model", "answer", "draft", "final",
]  # fmt: skip
PHRASES = [
    "It's done, isn't it?",
    "Wait... what happened next?",
    "See [1] and {name} for details.",
    'She said "hello" and left.',
    "line one\nline two",
    "col\tcol",
    "Use `code` and ```fences``` here.",
    "a, b, and c; then d: e",
    '{"not": "json"}',
    "// not a comment # nor this /* or this */",
    "https://example.com/path?a=1&b=[2]",
    "C:\\Users\\bob\\new",
    "100% of 1,000 users — ok!",
    "emoji 🎉 and “smart” quotes",
    "true",
    "null",
    "42",
    "",
    "None of the above",
    "the rest is omitted...",
]
KEYS = [
    "id", "name", "title", "summary", "score", "tags", "items", "status", "user", "price",
    "count", "is_active", "notes", "created", "category", "confidence", "reason", "steps",
    "address", "city", "email", "meta", "type", "value", "children", "owner",
]  # fmt: skip


def scalar(rng: random.Random, *, plain: bool = False) -> Any:
    """Make one scalar; `plain` leaves out strings with anything to escape or to trip over."""
    kind = rng.random()
    if kind < 0.45:
        if plain or rng.random() < 0.6:
            return " ".join(rng.choice(WORDS) for _ in range(rng.randint(1, 4)))
        return rng.choice([*PHRASES, rng.choice(NAMES)])
    if kind < 0.65:
        return rng.choice([0, 1, -1, 7, 42, 100, 2024, -273, 1234567, 2**60 + 1])
    if kind < 0.8:
        return rng.choice([0.5, 1.0, -2.25, 3.14159, 1e-7, 6.02e23, 99.99])
    return rng.choice([True, False, None])


def document(rng: random.Random, depth: int = 2, *, plain: bool = False) -> Any:
    """Make one object, or a list of similar ones."""
    if depth == 2 and rng.random() < 0.2:
        return [document(rng, 1, plain=plain) for _ in range(rng.randint(2, 4))]
    result: dict[str, Any] = {}
    for key in rng.sample(KEYS, rng.randint(2, 6)):
        pick = rng.random()
        if depth and pick < 0.2:
            result[key] = document(rng, depth - 1, plain=plain)
        elif pick < 0.4:
            result[key] = [scalar(rng, plain=plain) for _ in range(rng.randint(0, 4))]
        elif depth and pick < 0.5:
            result[key] = [document(rng, 0, plain=plain) for _ in range(rng.randint(1, 3))]
        else:
            result[key] = scalar(rng, plain=plain)
    return result


def dump(rng: random.Random, value: Any) -> str:
    """Write `value` as valid JSON in one of the usual layouts."""
    layout = rng.choice(
        [{"indent": 2}, {"indent": 2}, {"indent": 4}, {}, {}, {"separators": (",", ":")}]
    )
    return json.dumps(value, ensure_ascii=rng.random() < 0.2, **layout)


def write(
    value: Any,
    leaf: Callable[[Any], str],
    key: Callable[[str], str] = json.dumps,
    *,
    indent: int | None = None,
    colon: str = ": ",
    comma: str = ",",
    level: int = 0,
) -> str:
    """Write `value` with a caller's own spelling of leaves and keys."""
    if not isinstance(value, (dict, list)) or not value:
        return leaf(value) if not isinstance(value, (dict, list)) else json.dumps(value)
    again = {"indent": indent, "colon": colon, "comma": comma, "level": level + 1}
    if isinstance(value, dict):
        parts = [key(k) + colon + write(v, leaf, key, **again) for k, v in value.items()]
        left, right = "{", "}"
    else:
        parts = [write(v, leaf, key, **again) for v in value]
        left, right = "[", "]"
    if indent is None:
        return left + f"{comma} ".join(parts) + right
    inner, outer = "\n" + " " * indent * (level + 1), "\n" + " " * indent * level
    return left + inner + f"{comma}{inner}".join(parts) + outer + right


def leaves(value: Any) -> list[Any]:
    """List every scalar of `value`."""
    if isinstance(value, dict):
        return [leaf for child in value.values() for leaf in leaves(child)]
    if isinstance(value, list):
        return [leaf for child in value for leaf in leaves(child)]
    return [value]


def with_text(rng: random.Random, value: Any, text: str) -> Any:
    """Return a copy of a document in which some object has `text` as one of its values."""
    copy = json.loads(json.dumps(value))
    target = copy[0] if isinstance(copy, list) else copy
    items = list(target.items())
    items.insert(rng.randint(0, len(items)), ("message", text))
    target.clear()
    target.update(items)
    return copy


def spans(text: str) -> list[tuple[int, int]]:
    """List the lexical tokens of a valid JSON text as start and end offsets."""
    import re  # noqa: PLC0415 - only the damage modes cut tokens

    pattern = r"\"(?:[^\"\\]|\\.)*\"|[{}\[\],:]|[^\s{}\[\],:\"]+"
    return [match.span() for match in re.finditer(pattern, text)]
