"""No message shows the code that was to fill it: an expression in a string without its `f`."""

import ast
import re
from collections.abc import Iterator
from contextlib import suppress

from tests.test_house_rules import ROOT, parsed, sources

BRACES = re.compile(r"\{([^{}\n]+?)(?:![rsa])?(?::[\d.<>^,%a-z]+)?\}")


def unfilled(tree: ast.Module) -> Iterator[str]:
    """Yield code in braces that is text: a call, or, in a string beside an f-string, any code."""
    nodes = list(ast.walk(tree))
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    names |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    glued = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    said = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}  # Docstrings.
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        for code in BRACES.findall(node.value) if is_text and id(node) not in said else ():
            with suppress(SyntaxError):
                used = {
                    each.id
                    for each in ast.walk(ast.parse(code, mode="eval"))
                    if isinstance(each, ast.Name)
                }
                if used and used <= names and ("(" in code or id(node) in glued):
                    yield code


def test_no_string_with_code_lacks_its_f():
    """A string without `f` may be glued to one that has it, so the whole package is read."""
    spelled = 'def f(a, g): return f"{a}: " "{{g(a)}: 1}} {a!r}", "{a}", f"{a}: {{b}} {{1}}"'
    assert set(unfilled(ast.parse(spelled))) == {"g(a)", "a"}
    found = {
        f"{path.relative_to(ROOT)}: {code}"
        for path in sources("graph_retry")
        for code in unfilled(parsed(path))
    }
    assert found == set()
