"""The project's own rules: size, imports, names, documentation. Each can be read off the code."""

import ast
import graphlib
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "graph_retry"


def sources(*folders: str) -> list[Path]:
    """List the Python files of some folders; an empty list would make a rule say nothing."""
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert files, f"no Python file in {folders}"
    return files


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax of a file, which many rules read."""
    return ast.parse(path.read_text())


def nodes(*folders: str) -> Iterator[tuple[str, ast.AST]]:
    """Yield every syntax node of some folders with its place, as `file:line`."""
    for path in sources(*folders):
        name = path.relative_to(ROOT)
        for node in ast.walk(parsed(path)):
            yield f"{name}:{getattr(node, 'lineno', 0)}", node


def imported(node: ast.AST) -> list[str]:
    """Return the dotted names an import statement may load."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def count_lines(path: Path) -> int:
    """Count the lines of a file."""
    return len(path.read_text().splitlines())


def test_no_file_is_long():
    """A file holds one idea: 400 lines are enough."""
    folders = ("graph_retry", "nodes", "examples", "bench", "tests")
    long = {str(path.relative_to(ROOT)): count_lines(path) for path in sources(*folders)}
    assert {name: lines for name, lines in long.items() if lines > 400} == {}


ROOM_LINES, ROOM_FILES = 2_000, 14


def test_a_room_is_read_in_an_hour():
    """A folder, also the face at the top, has at most 2,000 lines in 14 files, without folders."""
    rooms = {path.parent for path in sources("graph_retry")}
    sizes = {
        str(room.relative_to(PACKAGE)): (
            sum(map(count_lines, room.glob("*.py"))),
            len([path for path in room.glob("*.py") if path.name != "__init__.py"]),
        )
        for room in rooms
    }
    large = {
        name: size for name, size in sizes.items() if size[0] > ROOM_LINES or size[1] > ROOM_FILES
    }
    assert large == {}


def test_no_module_stands_outside_of_the_rooms():
    """What is not for users is in a room, and the package has at most 20 places."""
    assert [path.stem for path in PACKAGE.glob("_[a-z]*.py")] == []
    marks = {"__pycache__", "py.typed"}
    assert len([path for path in PACKAGE.iterdir() if path.name not in marks]) <= 20


def test_modules_are_named_after_what_they_hold():
    """A name that fits anything says nothing, and a name that occurs twice says too little."""
    vague = {"utils", "util", "base", "helpers", "helper", "common", "misc"}
    names = [path.relative_to(ROOT).with_suffix("") for path in sources("graph_retry")]
    assert [str(name) for name in names if vague & set(name.parts)] == []
    stems = Counter(name.name for name in names if name.name != "__init__")
    assert [name for name, times in stems.items() if times > 1] == []


PRIVATE = re.compile(r"^langgraph\._internal\b|^langgraph\.pregel\._|^langgraph\.constants\._")


def test_nothing_private_of_langgraph_is_imported():
    """LangGraph changes its private modules without notice."""
    folders = ("graph_retry", "nodes", "examples", "bench", "tests")
    offenders = [
        f"{place} imports {name}"
        for place, node in nodes(*folders)
        for name in imported(node)
        if PRIVATE.match(name)
    ]
    assert offenders == []


def test_the_package_executes_nothing_it_was_given():
    """Text of a model or a person is data: nothing is unpickled, evaluated or executed."""
    forbidden = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
    builtins = {"eval", "exec", "compile", "__import__"}
    offenders = []
    for place, node in nodes("graph_retry"):
        if any(name.split(".")[0] in forbidden for name in imported(node)):
            offenders.append(place)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in builtins:
            offenders.append(place)
    assert offenders == []


@cache
def import_graph() -> dict[str, set[str]]:
    """Map each module of the package to the package's modules it imports, wherever in the file.

    A name that a package loads on demand is imported from the module that has it.
    """
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources("graph_retry")
    }
    trees = {module: parsed(path) for module, path in files.items()}
    late = {module: loaded_late(tree) for module, tree in trees.items()}
    graph = dict[str, set[str]]()
    for module, tree in trees.items():
        graph[module] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                graph[module] |= {alias.name for alias in node.names} & files.keys()
            elif isinstance(node, ast.ImportFrom) and node.module in files:
                for alias in node.names:
                    name = f"{node.module}.{alias.name}"
                    place = late[node.module].get(alias.name, node.module)
                    graph[module].add(name if name in files else place)
    return graph


def loaded_late(tree: ast.Module) -> dict[str, str]:
    """Map the names that a module has only for type checkers to their modules."""
    return {
        alias.name: node.module or ""
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def room_of(module: str) -> str:
    """Return the room of a module: a folder of the package, of its core, or of the desk."""
    parts = module.split(".")
    return ".".join(parts[: 3 if parts[1:2] in (["_core"], ["desk"]) else 2])


def layers(graph: dict[str, set[str]]) -> list[str]:
    """Order what imports and is imported, lowest first; a circle fails the test."""
    try:
        return list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(reversed(error.args[1])))


def test_no_room_imports_one_that_imports_it():
    """Rooms form layers, and so do the modules in them: whatever the file, directly or not."""
    modules = import_graph()
    rooms: dict[str, set[str]] = {}
    for module, others in modules.items():
        rooms.setdefault(room_of(module), set()).update(map(room_of, others))
    for room, others in rooms.items():
        others.discard(room)
    assert any(rooms.values()), "no import between rooms was seen"

    assert set(layers(rooms)) == set(rooms)
    assert set(layers(modules)) == set(modules)


LONGEST_CHAIN = 21
"""Modules in the longest chain of imports, each of which imports the next; only ever fewer.

The reader is a library of its own, which counts as little as pydantic.
"""


def test_no_chain_of_imports_gets_longer():
    """A type that lives too high, and a file that one file imports, make the way to read long."""
    modules, length = import_graph(), dict[str, int]()
    for module in layers(modules):
        own = int(room_of(module) != "graph_retry.lossless")
        length[module] = own + max((length[other] for other in modules[module]), default=0)
    assert max(length.values()) <= LONGEST_CHAIN


def test_a_circle_is_named():
    """The rule above can fail, also for rooms that import each other through a third."""
    with pytest.raises(pytest.fail.Exception, match=r"\w -> \w -> \w -> \w"):
        layers({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}})


PUBLIC = {
    # What a user imports by name.
    *(
        "agents",
        "calls",
        "data",
        "desk",
        "errors",
        "hooks",
        "ledger",
        "lossless",
        "nodes",
        "observers",
        "options",
        "output",
        "plugins",
        "records",
        "reviews",
        "testing",
        "threads",
    ),
    # What comes from `graph_retry` itself.
    "function",
}


def test_what_is_not_for_users_is_underscored():
    """Whoever looks into the package sees what may be imported from what may change any day."""
    names = {module.split(".")[1] for module in import_graph() if "." in module}
    assert {name for name in names if not name.startswith("_")} == PUBLIC

    for room in ("agents", "data", "hooks", "observers", "threads"):
        inside = {path.stem for path in (PACKAGE / room).iterdir()} - {"__init__"}
        assert {name for name in inside if not name.startswith("_")} == set()


HIDDEN = re.compile(r"graph_retry(?:\.\w+)*\._[a-z]|from graph_retry[\w.]* import [^\n]*\b_[a-z]")


def test_what_users_read_names_nothing_private():
    """What README, pages, examples, graphs and notebooks import, a reader may import as well."""
    patterns = ("README.md", "docs/**/*.md", "notebooks/*.ipynb", "examples/**/*.py", "nodes/*.py")
    pages = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    assert len(pages) > len(patterns)
    assert [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in pages
        for found in HIDDEN.finditer(path.read_text())
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        "from graph_retry._core import loop",
        "import graph_retry.hooks._budget",
        "from graph_retry import edit, _flow",
    ],
)
def test_a_private_import_is_seen(line):
    """The rule above can fail, and names what is private."""
    assert HIDDEN.search(line)
    assert not HIDDEN.search(line.replace(" _", " ").replace("._", "."))


def test_few_public_names():
    """Everything a user needs fits one screen, and every name promised is there."""
    import graph_retry

    names = graph_retry.__all__
    assert 0 < len(names) <= 30
    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(graph_retry, name)] == []


def test_a_name_of_another_public_module_is_told_with_its_module():
    """A name that is not at the top says where it is; one that is nowhere fails as usual."""
    with pytest.raises(ImportError, match=r"from graph_retry\.hooks import Budget"):
        from graph_retry import Budget  # noqa: F401
    with pytest.raises(ImportError, match="cannot import name 'Bugdet'"):
        from graph_retry import Bugdet  # noqa: F401


def test_every_public_name_is_documented_with_an_example():
    """A function shows itself in its own docstring; any other name in one or in README or docs."""
    import graph_retry

    texts = [path.read_text() for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]]
    blocks = "\n".join(
        block for text in texts for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    )
    lines = [line for path in sources("graph_retry") for line in path.read_text().splitlines()]
    examples = blocks + "\n".join(line for line in lines if re.match(r"\s*(>>>|\.\.\.) ", line))

    undocumented = []
    for name in graph_retry.__all__:
        value = getattr(graph_retry, name)
        if callable(value) and not isinstance(value, type):
            shown = ">>> " in (value.__doc__ or "")
        else:
            shown = re.search(rf"\b{name}\b", examples) is not None
        if not shown:
            undocumented.append(name)
    assert undocumented == []


def test_no_handler_catches_everything():
    """Cancellation and Ctrl-C pass through: no bare `except`, no `except BaseException`."""
    offenders = []
    for place, node in nodes("graph_retry", "nodes", "examples"):
        if isinstance(node, ast.ExceptHandler):
            caught = ast.unparse(node.type) if node.type else "everything"
            if node.type is None or "BaseException" in re.findall(r"\w+", caught):
                offenders.append(f"{place} catches {caught}")
    assert offenders == []


def twins(scope: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield both functions of each pair `x`, `ax` in one scope, and in the classes inside it."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    functions = {node.name: node for node in scope.body if isinstance(node, kinds)}
    for name, function in functions.items():
        if f"a{name}" in functions:
            yield from (function, functions[f"a{name}"])
    for node in scope.body:
        if isinstance(node, ast.ClassDef):
            yield from twins(node)


def test_sync_and_async_twins_are_thin():
    """Logic is written once: a pair `x`, `ax` only drives it, in at most 20 lines each."""
    thick = {}
    for path in sources("graph_retry"):
        for function in twins(parsed(path)):
            body = function.body[1:] if ast.get_docstring(function) else function.body
            lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            if lines > 20:
                thick[f"{path.relative_to(ROOT)}:{function.name}"] = lines
    assert thick == {}


def test_every_test_says_what_it_shows():
    """Each test has a docstring of its own."""
    silent = [
        f"{place} {node.name}"
        for place, node in nodes("tests")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_") and not ast.get_docstring(node)
    ]
    assert silent == []


def test_no_test_is_skipped_or_expected_to_fail():
    """A test runs and passes, or it is repaired, or it is removed."""
    forbidden = {"skip", "skipif", "skipTest", "xfail", "importorskip"}
    offenders = [
        place
        for place, node in nodes("tests")
        if isinstance(node, ast.Attribute) and node.attr in forbidden
    ]
    assert offenders == []


def test_the_changelog_knows_the_version():
    """A release is never cut without telling users what changed."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line[:3] == "## "
    ]
    assert any(version in heading for heading in headings)


def test_the_guide_for_contributors_is_short():
    """What is longer than 80 lines is not read."""
    assert 0 < count_lines(ROOT / "AGENTS.md") <= 80
