"""A figure that is told twice is the same on both pages, and the reading path stays short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MEASURED = (ROOT / "bench/results.md").read_text()
BY_HAND_RUNS = "bench/by_hand.md"
DAMAGED = re.search(r"10,000 damaged documents \(seed \d+\): (\d+) read wrong", MEASURED)
PATH = ("tutorial", "guide", "options", "concepts", "guarantees")


def cells(row: str, text: str = MEASURED) -> list[float]:
    """Return the numbers of the first row of the measured tables that begins so."""
    line, *_ = re.findall(rf"^\| {re.escape(row)}[^|]*\|(.*)\|$", text, re.MULTILINE)
    return [float(each) for each in re.findall(r"\d+(?:\.\d+)?", line.replace(",", ""))]


def told(page: str, words: str) -> list[float]:
    """Return the numbers that a page tells in the given words; `#` stands for a number."""
    text = re.sub(r"(?<=\d),(?=\d{3})", "", " ".join((ROOT / page).read_text().split()))
    pattern = re.escape(words).replace(r"\#", r"(\d+(?:\.\d+)?)").replace("\\ ", " ")
    found = re.search(pattern, text)
    assert found, f"{page} no longer says {words!r}"
    return [float(each) for each in found.groups()]


def ratios(form: str) -> list[float]:
    """Return the smallest and the largest ratio of a form to two nodes by hand."""
    found = [float(each) for each in re.findall(rf", {form} \|.* ms \| ([\d.]+) \|", MEASURED)]
    return [min(found), max(found)]


LOOP, AI = "LangGraph: a task in a loop", "pydantic-ai, ToolOutput"
OURS = "graph-retry, text (langchain-openai"
REVIEWED = "graph-retry, RetryMiddleware ("
AGENTS = ("create_agent, ProviderStrategy", "create_agent, ToolStrategy")
PARSERS = ("LangChain RetryOutputParser", "LangChain RetryWithErrorOutputParser")
STORES = ("SQLite", "PostgreSQL")
SMALL = [cells(f"output 2 kB, {store}, graph-retry")[-1] for store in STORES]
BY_HAND = [cells(f"output 100 kB, {store}, a list in state")[-1] for store in STORES]
LARGE = [
    cells(f"{what} 100 kB, {store}, graph-retry")[-1]
    for what in ("params", "output")
    for store in STORES
]
HOME, OTHERS, TRAPS = "docs/index.md", "docs/comparison.md", "docs/guarantees.md"
PROVEN = "docs/reliability.md"


@pytest.mark.parametrize(
    ("page", "words", "measured"),
    [
        ("docs/reading.md", "one in # to # is read", "one in # to # is read"),
        (
            "docs/reliability.md",
            "beginning, # to # % stay",
            "| # % with 43 characters, 2.1 % with 32, # %",
        ),
        ("docs/reliability.md", "Of # ids", "Of # ids"),
    ],
)
def test_a_figure_of_a_run_by_hand_is_the_same(page, words, measured):
    """The pages tell what the tables of the runs say."""
    assert told(page, words) == told(BY_HAND_RUNS, measured)


@pytest.mark.parametrize(
    ("page", "words", "expected"),
    [
        ("README.md", "calls for 3 edits | 4 | 4 | # | # |", [cells(LOOP)[2], 4]),
        (HOME, "Three edits cost **# model calls**", [4]),
        (HOME, "the same edits cost **# model calls**", [cells(LOOP)[2]]),
        (OTHERS, "costs # calls for 3 edits and # for 10", cells(LOOP)[2:5:2]),
        (OTHERS, "(# to # % recovered)", [round(cells(each)[0]) for each in AGENTS]),
        (OTHERS, "begins from zero (# %)", [round(cells("instructor, JSON (")[0])]),
        (OTHERS, "not JSON (# %)", [round(cells("trustcall (")[0])]),
        (OTHERS, "well (# %), with # calls", [cells(AI)[0], round(cells(AI)[5], 2)]),
        (OTHERS, "per success instead of #.", [round(cells(OURS)[5], 2)]),
        (OTHERS, "were wrong (# to # %)", [round(cells(each)[0]) for each in PARSERS]),
        (
            OTHERS,
            "takes # to # times their processor time",
            [ratios("node")[0], ratios("function")[1]],
        ),
        (OTHERS, "A `@task` takes # to #", ratios("a `@task`")),
        (OTHERS, "`error_handler` takes # to #", ratios("a plain node with an `error_handler`")),
        (OTHERS, "# % with pydantic-ai and", [round(cells(f"{AI}, FallbackModel")[0])]),
        (OTHERS, "# % with `create_agent`", [round(cells("create_agent, ToolStrategy, Su")[0])]),
        (OTHERS, "a retry sent # to #", [cells(each)[-1] for each in (REVIEWED, OURS)]),
        (OTHERS, "and # to # with", [cells(each)[-1] for each in ("pydantic-ai, Pr", AI)]),
        (PROVEN, "# to # times the space", [round(f(SMALL + LARGE), 1) for f in (min, max)]),
        (PROVEN, "simulated tasks: # calls a success", [cells("graph-retry |")[4]]),
        (PROVEN, "# of 10000 are read", [float(DAMAGED[1]) if DAMAGED else -1]),
        (TRAPS, "100 kB take # to # times", sorted(round(n) for n in BY_HAND)),
        (
            TRAPS,
            "therefore take # to # times the space of 10",
            [round(min(*SMALL, *LARGE), 1), round(max(*SMALL, *LARGE), 1)],
        ),
    ],
)
def test_a_figure_told_twice_is_the_same(page, words, expected):
    """What other pages round from the measured tables equals them."""
    assert told(page, words) == expected


def test_the_reading_before_production_is_short():
    """The pages that the home page names as the path have at most 6,500 words, as it tells."""
    home = (ROOT / "docs/index.md").read_text()
    assert tuple(re.findall(r"^\d\. \[[^]]+\]\((\w+)\.md\)", home, re.MULTILINE)) == PATH
    words = {name: len((ROOT / f"docs/{name}.md").read_text().split()) for name in PATH}
    assert sum(words.values()) <= 6_500, words
    assert f"about {round(sum(words.values()), -2):,} words" in home
