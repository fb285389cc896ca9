"""The work of reading a text is bounded by its length, whatever the text is."""

import random
from collections import Counter
from itertools import product
from typing import Any

import pytest

from graph_retry.lossless import candidates, parse
from graph_retry.lossless import read as parse_output
from graph_retry.lossless.weighted import lexis
from graph_retry.lossless.weighted.search import CHARACTERS, START
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
        assert count["added"] <= START + len(text) // 2 + 100, (unit, complete)


@pytest.mark.parametrize("unit", SLOWEST)
@pytest.mark.slow
def test_the_slowest_texts_take_bounded_work(unit, monkeypatch):
    """No more than one reader for two characters, and a constant."""
    assert_bounded(unit, 12_000, monkeypatch)


BARE = "{key: [1, 2.5, some words of text, null, true], other: {name: value}},\n "
"""Its strings end nowhere, so that each of many readers looks over all that follows."""


def test_a_character_counts_each_time_it_is_looked_over(monkeypatch):
    """Many readers of one long string take as much of the work as many short strings."""
    text = BARE * (64_000 // len(BARE))
    plain, looked = lexis.written, []
    monkeypatch.setattr(lexis, "written", lambda raw: looked.append(len(raw)) or plain(raw))
    assert parse_output(text).ok is False
    assert sum(looked) < 2 * CHARACTERS * (START + len(text) // 2)


@pytest.mark.parametrize("unit", ['{"', "{ ", '{"\\u12'])
def test_a_guess_takes_bounded_work(unit, monkeypatch):
    """However deep, quoted or long: what `json_repair` looks at is counted, and copies, too."""
    looks = []

    class Counted(parse._Counted):
        def __getitem__(self, at):
            looks.append(1)
            return super().__getitem__(at)

        def like(self, text):
            made = Counted(text)
            made.left = self.left
            return made

    monkeypatch.setattr(parse, "_Counted", Counted)
    parse_output((unit * 8_000)[:16_000], "aggressive")
    assert len(looks) <= parse._LOOKS + 1


def test_a_guess_of_an_ordinary_text_is_not_stopped():
    """Forty thousand characters of a text with one unclear place."""
    text = "[" + '{"a": "some words", "b": [1, 2.5, null]},\n' * 950 + '{"a": "x" "y" , "b"}]'
    read = parse_output(text, "aggressive")
    assert (read.lossless, len(read.value)) == (False, 951)
    assert {type(each) for each in read.value[0]} == {str}


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
