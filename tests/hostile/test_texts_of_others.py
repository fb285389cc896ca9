"""Values and errors of others stand in a message only escaped and cut: there is no other way."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import graph_retry
from graph_retry.plugins import as_repr, error_text

PACKAGE = Path(graph_retry.__file__).parent

EXACT = {
    "_core/ground/held/": "the identity of code, and the names by which held values are known",
    "_core/output/json_schema/linear_patterns.py": "the message of a library, which is read again",
    "_core/ground/issues.py": "the message of a library, which is compared",
}
"""Places where a text must be exactly what `repr` writes, and is no message."""


def trees() -> Iterator[tuple[str, ast.Module]]:
    """Yield the name and the syntax tree of each file of the package."""
    for path in PACKAGE.rglob("*.py"):
        yield path.relative_to(PACKAGE).as_posix(), ast.parse(path.read_text())


def test_no_value_is_written_by_its_own_repr():
    """`{value!r}` runs what a user's class says of itself; `as_repr` survives it."""
    written = {
        (name, ast.unparse(part.value))
        for name, tree in trees()
        for part in ast.walk(tree)
        if isinstance(part, ast.FormattedValue) and part.conversion != -1
    }
    assert {each for each in written if not each[0].startswith((*EXACT,))} == set()


def caught(name: str, tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """Yield the name of each exception of others in a file, with the code that has it."""
    module = importlib.import_module(
        f"graph_retry.{name.removesuffix('.py').replace('/', '.')}".removesuffix(".__init__")
    )
    for part in ast.walk(tree):
        if isinstance(part, ast.ExceptHandler) and part.name and part.type:
            kinds = eval(ast.unparse(part.type), vars(module))
            kinds = kinds if isinstance(kinds, tuple) else (kinds,)
            if not all(kind.__module__.startswith("graph_retry") for kind in kinds):
                yield part.name, part
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            for each in [*part.args.args, *part.args.kwonlyargs]:
                if each.annotation and "Exception" in ast.unparse(each.annotation):
                    yield each.arg, part


def is_written(part: ast.AST, name: str) -> bool:
    """Return whether code writes the value of a name by its own `__str__` or `__repr__`."""
    if isinstance(part, ast.FormattedValue):
        return isinstance(part.value, ast.Name) and part.value.id == name
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Name):
        given = [each.id for each in part.args if isinstance(each, ast.Name)]
        return part.func.id in ("str", "repr", "format", "print") and name in given
    return False


def test_no_error_of_others_is_written_by_its_own_str():
    """`{error}` runs what a user's class says of itself; `error_text` and `text_of` survive it."""
    written = [
        f"{name}: {ast.unparse(part)}"
        for name, tree in trees()
        if name != "lossless/_ground.py"  # These functions are the door.
        for error, code in caught(name, tree)
        for part in ast.walk(code)
        if is_written(part, error)
    ]
    assert written == []


class Raising:
    """A value that says nothing of itself."""

    def __repr__(self):
        raise RuntimeError("\x1b[2Jno")


class Deep:
    """A value whose text never ends."""

    def __repr__(self):
        return repr(self)


class Huge:
    """A value whose text is huge and controls a terminal."""

    def __repr__(self):
        return "\x1b]0;owned\x07\u202e\n" * 100_000


VALUES = {
    "raising": Raising(),
    "deep": Deep(),
    "huge": Huge(),
    "within": {"a": [Raising(), Huge()]},
    "text": "\x1b[2J" * 10_000,
    "digits": 10**10_000,
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("limit", [80, 200])
def test_a_value_is_written_escaped_and_cut(name, limit):
    """Whatever it says of itself, nothing raises, and the text stays short and on one line."""
    told = as_repr(VALUES[name], limit)
    assert told.isprintable()
    assert 0 < len(told) <= limit


def error_saying(text):
    """Make an error of a class of its own, whose text is the given one, or a function's."""
    return type("Own", (ValueError,), {"__str__": lambda _: text() if callable(text) else text})()


@pytest.mark.parametrize("name", VALUES)
def test_an_error_is_written_escaped_and_cut(name):
    """The same holds for the message of an exception, which keeps its lines."""
    told = error_text(error_saying(lambda: repr(VALUES[name])), 80)
    assert told.replace("\n", "").isprintable()
    assert 0 < len(told) <= 80


def test_ordinary_values_are_written_as_python_writes_them():
    """A message stays readable: nothing of a short value is changed."""
    for value in ("it's", 1.5, None, ["a", {"b": (1,)}], {1, 2}, b"x", range(3), "é€"):
        assert as_repr(value) == repr(value)
