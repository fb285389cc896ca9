"""The work of reading a text is bounded by its length, whatever the text is."""

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

from graph_retry.lossless import candidates
from graph_retry.lossless import read as parse_output
from graph_retry.lossless.weighted.search import START
from graph_retry.lossless.weighted.strings import Reader

TOKENS = ("[", "]", "{", "}", ",", ":", '"', "'", "x", "1", " ", "\n", "//", "/*", "```")
UNITS = [
    "".join(unit) for size in (1, 2, 3) for unit in product((*TOKENS, "<tool_call>"), repeat=size)
]
SLOWEST = (
    '["x" ', '[]{', '",[][', "{\"' '", "//[]", "<tool_call>/*['", ",{}", "}:{", "[],", "],[",
    '"<tool_call>\n[', "['<tool_call>", '{"a":', "[1 ", "{'it's ", '{"a"::',
)  # fmt: skip
"""Units that took the most steps or the most time, of some thousands."""


def units(count: int, seed: int) -> list[str]:
    """Draw units of one to four tokens."""
    rng = random.Random(seed)
    drawn = ["".join(rng.choice(TOKENS) for _ in range(4)) for _ in range(count)]
    return [*rng.sample(UNITS, count), *drawn]


def assert_bounded(unit: str, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Count the readers that are added while a repeated unit is read."""
    count, add = Counter[str](), Reader.go

    def counted(self: Reader, *args: Any) -> None:
        count["added"] += 1
        add(self, *args)

    monkeypatch.setattr(Reader, "go", counted)
    text = unit * (size // len(unit))
    for complete in (None, True):
        count.clear()
        parse_output(text, complete=complete)
        # A reader that begins its step while work is left adds at most a hundred readers.
        assert count["added"] <= START + 2 * len(text) + 100, (unit, complete)


@pytest.mark.parametrize("unit", SLOWEST)
@pytest.mark.slow
def test_the_slowest_texts_take_bounded_work(unit, monkeypatch):
    """No more than two readers a character, and a constant."""
    assert_bounded(unit, 12_000, monkeypatch)


def test_drawn_texts_take_bounded_work(monkeypatch):
    """A sample of every unit of one to four tokens."""
    for unit in units(30, 1):
        assert_bounded(unit, 6_000, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(8))
def test_many_drawn_texts_take_bounded_work(seed, monkeypatch):
    """About three thousand texts of 20 kB."""
    for unit in units(180, seed):
        assert_bounded(unit, 20_000, monkeypatch)


@pytest.mark.parametrize(
    "row", ['```json\n{"a":1}\n', '> ```json\n> {"a":1}\n> ```\n', '```\n{"a":1}\n```\n'], ids=repr
)
def test_many_fences_are_looked_at_once(row, monkeypatch):
    """An open fence reaches to the end; its documents do not make its beginning be read again."""
    looked_at = []
    original = candidates._is_first

    def counting(text, fence, at):
        looked_at.append(at - fence.start("inside"))
        return original(text, fence, at)

    monkeypatch.setattr(candidates, "_is_first", counting)
    found = [*candidates.candidates(row * 200, 0, None)]
    assert len(found) == 200
    assert sum(looked_at) <= len(row) * 200
