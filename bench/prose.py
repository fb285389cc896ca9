"""Draw 60 passages of the project's prose for a reader who has not seen it: is each one clear?

`python -m bench.prose SEED` prints 20 docstrings, 20 comments and 20 sentences of the pages. The
reader grades each: understood at the first reading, at the second, or not. The aim is 85 % at the
first, and 0 not understood. The worst are rewritten, and another seed is drawn.
"""

import ast
import io
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
EACH = 20
NO_PROSE = re.compile(r"(?s:```.*?```|<!--.*?-->)|^[|#].*$", re.MULTILINE)
SOURCES = sorted((ROOT / "graph_retry").rglob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def docstrings() -> Iterator[tuple[str, str]]:
    """Yield every docstring without its sections, with its place."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node)
                if text:
                    prose = re.split(
                        r"\n\n(?:Args|Returns|Yields|Raises|Example|Attributes):", text
                    )
                    yield f"{path.relative_to(ROOT)} `{getattr(node, 'name', '')}`", prose[0]


def comments() -> Iterator[tuple[str, str]]:
    """Yield every comment of four words or more; whole lines of comments are joined."""
    for path in SOURCES:
        lines: list[tuple[int, str]] = []
        for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
            if token.type != tokenize.COMMENT or re.match(
                r"# (?:noqa|type:|pyright:)", token.string
            ):
                continue
            text = token.string.partition("#")[2].strip()
            is_alone = token.line.strip() == token.string
            if is_alone and lines and token.start[0] == lines[-1][0] + 1:
                lines[-1] = (token.start[0], f"{lines[-1][1]} {text}")
            else:
                lines.append((token.start[0], text))
        for number, text in lines:
            if len(text.split()) > 3:
                yield f"{path.relative_to(ROOT)}:{number}", text


def sentences() -> Iterator[tuple[str, str]]:
    """Yield the sentences of the pages' paragraphs and lists."""
    for path in PAGES:
        text = NO_PROSE.sub("", path.read_text())
        for paragraph in re.split(r"\n\s*\n", text):
            joined = " ".join(paragraph.split())
            for sentence in re.split(r"(?<=[.:?])\s+(?=[A-Z`\[*-])", joined):
                if len(sentence.split()) > 4:
                    yield str(path.relative_to(ROOT)), sentence


def main(seed: str) -> None:
    """Print the passages of a seed, numbered."""
    draw = random.Random(seed)
    passages = [
        (kind, *passage)
        for kind, found in (("docstring", docstrings), ("comment", comments), ("page", sentences))
        for passage in draw.sample([*found()], EACH)
    ]
    for number, (kind, place, text) in enumerate(passages, 1):
        print(f"{number}. [{kind}, {place}]\n{text}\n")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "1")
