"""Documentation is executed: the Python blocks of README and docs, and every docstring example.

The blocks of one file run in order in one namespace. Lines `#> text` say what a block prints. A
block below `<!-- no-run: needs a key -->` or `<!-- no-run: needs a server -->` is only compiled.
One below `<!-- examples/name.py -->` is that file, which `tests/test_examples.py` runs.
"""

import doctest
import importlib
import io
import re
import sys
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from opentelemetry import trace

ROOT = Path(__file__).parent.parent
PORTS = ROOT / "examples/from_the_sources.md"
PAGES = [ROOT / "README.md", PORTS, *sorted(ROOT.glob("docs/**/*.md"))]
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted((ROOT / "graph_retry").rglob("*.py"))
]
BLOCK = re.compile(
    r"(?:^<!-- (?:no-run: needs (?P<needs>a key|a server)|(?P<file>examples/\w+\.py)) -->\n\s*)?"
    r"^```python\n(?P<code>.*?)^```",
    re.MULTILINE | re.DOTALL,
)


class Block(NamedTuple):
    """One fenced block: its code, its first line, why it is not run, and the file it is from."""

    code: str
    line: int
    needs: str | None
    file: str | None


def python_blocks(text: str) -> list[Block]:
    """Find the Python blocks of a page.

    A block indented in a list or marked `no-run` without a known reason is an error: it would
    be shown to readers and never executed.
    """
    blocks = [
        Block(
            found["code"],
            text.count("\n", 0, found.start("code")),
            found["needs"],
            found["file"],
        )
        for found in BLOCK.finditer(text)
    ]
    marked = text.count("no-run")
    assert len(blocks) == len(re.findall(r"```\s*(?:python|py)\b", text)), "odd Python fence"
    assert marked == sum(block.needs is not None for block in blocks), (
        "`no-run` without a known reason"
    )
    return blocks


def run_page(text: str, page: str, namespace: dict[str, object]) -> None:
    """Execute the blocks of a page one after the other."""
    for block in python_blocks(text):
        run_block(block, page, namespace)


def run_block(block: Block, page: str, namespace: dict[str, object]) -> None:
    """Execute a block, errors pointing at the page's own lines, and compare what it prints."""
    code = compile("\n" * block.line + block.code, page, "exec")
    if block.file:
        assert (ROOT / block.file).read_text().startswith(block.code.rstrip()), block.file
    if block.needs or block.file:
        return
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, namespace)
    expected = re.findall(r"^ *#> ?(.*)$", block.code, re.MULTILINE)
    if expected:
        assert printed.getvalue().splitlines() == expected, f"{page}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_the_code_of_a_page_runs(page, tmp_path, monkeypatch):
    """A reader can paste the blocks of a page one after the other."""
    monkeypatch.chdir(tmp_path)
    traced = partial(monkeypatch.setattr, trace, "get_tracer_provider")  # until the page's end
    monkeypatch.setattr(trace, "set_tracer_provider", lambda provider: traced(lambda: provider))
    module = ModuleType(f"page_{page.stem.replace('-', '_')}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    run_page(page.read_text(), str(page), vars(module))


def test_the_readme_starts_with_a_graph_that_people_recognise():
    """The first screen needs no key: install line, a node that calls a chat model, an answer."""
    text = (ROOT / "README.md").read_text()
    first = python_blocks(text)[0]
    assert not first.needs
    assert text.index("pip install") < text.index("```python")
    for known in ("StateGraph", "with_structured_output", "compile(", "resume("):
        assert known in first.code
    assert len([line for line in first.code.splitlines() if line.strip()]) <= 25


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_docstrings_hold(name):
    """Each module's docstring examples print what they say."""
    module = importlib.import_module(name)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
    report = io.StringIO()
    for example in doctest.DocTestFinder(exclude_empty=True).find(module, name):
        runner.run(example, out=report.write)
    # On the lowest versions, the examples of two hooks show the refusal that a user gets there.
    refused = report.getvalue().count("ImportError: Decision models need langchain-core 1.8")
    assert runner.summarize(verbose=False).failed == refused, report.getvalue()


@pytest.mark.parametrize(
    ("page", "error"),
    [
        ("```python\n1 / 0\n```\n", ZeroDivisionError),
        ("```python\nprint(1)\n#> 2\n```\n", AssertionError),
        ("<!-- no-run: needs a key -->\n```python\n1 +\n```\n", SyntaxError),
        ("<!-- no-run -->\n```python\n1 / 0\n```\n", AssertionError),
        ("- list\n\n  ```python\n  1 / 0\n  ```\n", AssertionError),
    ],
)
def test_a_broken_page_is_noticed(page, error):
    """Wrong code, a wrong printed line and a block hidden from the runner all fail."""
    with pytest.raises(error):
        run_page(page, "page.md", {})


def test_ports_are_at_most_as_long_as_the_originals():
    """The page of the sources counts each port truly: code, without blank lines and comments."""
    text = PORTS.read_text()
    counts = [
        (int(said[1]), int(said[2]), text.count("\n", 0, said.end()) + 2)
        for said in re.finditer(r"\((\d+) lines there, (\d+) here\):\n", text)
    ]
    blocks = {block.line: block.code.splitlines() for block in python_blocks(text)}
    for there, here, line in counts:
        lines = [each.strip() for each in blocks[line]]
        assert here == len([each for each in lines if each and each[0] != "#"]) <= there
    assert len(counts) == 11
