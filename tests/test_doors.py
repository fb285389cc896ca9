"""What stands around the core uses public names: what still does not is listed, and gets less."""

import ast
from functools import cache
from pathlib import Path

from tests.test_house_rules import PACKAGE, import_graph, parsed

AROUND = ("agents", "data", "desk", "hooks", "lossless", "nodes", "observers", "testing", "threads")
LISTED = Path(__file__).parent / "private_names.txt"
MOST = 3
"""Private names in the list; only ever fewer."""


def file_of(module: str) -> Path:
    """Return the file of a module of the package."""
    place = PACKAGE.joinpath(*module.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def exported(module: str) -> frozenset[str]:
    """Return the names in a module's `__all__`; without one nothing is promised."""
    for node in parsed(file_of(module)).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def is_private(module: str, name: str) -> bool:
    """Return whether a name of a module is not for users."""
    hidden = any(part.startswith("_") for part in (*module.split("."), name))
    return hidden or name not in exported(module)


def private_names() -> dict[str, set[str]]:
    """Map each private name that is used from outside of its room to the rooms that use it."""
    modules, used = import_graph(), dict[str, set[str]]()
    for module in modules:
        room = module.split(".")[1] if "." in module else ""
        if room not in AROUND:
            continue
        for node in ast.walk(parsed(file_of(module))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("graph_retry"):
                for alias in node.names:
                    # What a room gives users under its own name, such as a protocol, is a door.
                    if alias.name in exported(f"graph_retry.{room}"):
                        continue
                    full = f"{node.module}.{alias.name}"
                    if full.split(".")[1] == room:
                        continue
                    if full in modules or is_private(node.module or "", alias.name):
                        used.setdefault(full.removeprefix("graph_retry."), set()).add(room)
    return used


def test_what_stands_around_the_core_uses_listed_private_names_only():
    """A need that no public name serves is a missing door; the list has the known ones, and why."""
    used = {f"{name}: {', '.join(sorted(rooms))}" for name, rooms in private_names().items()}
    listed = dict(line.split(" — ", 1) for line in LISTED.read_text().splitlines())
    assert sorted(used - listed.keys()) == [], "use a public name, or make one"
    assert sorted(listed.keys() - used) == [], "no longer used: take it from the list"
    assert len(listed) <= MOST


def test_a_page_of_somebody_else_needs_no_private_name():
    """A page with every decision is 80 lines on public names."""
    page = PACKAGE.parent / "examples" / "own_page.py"
    assert len(page.read_text().splitlines()) <= 80
    taken = [node for node in ast.walk(parsed(page)) if isinstance(node, ast.ImportFrom)]
    ours = [(node.module or "", each.name) for node in taken for each in node.names]
    used = [name for name in ours if name[0].startswith("graph_retry")]
    assert len(used) > 5
    assert [name for name in used if is_private(*name)] == []


def test_a_private_name_is_known_from_a_public_one():
    """The rule above can fail: a name counts by its place, and by what its module exports."""
    assert is_private("graph_retry._core.ground.json", "is_object")
    assert is_private("graph_retry.errors", "author_role")
    assert not is_private("graph_retry.lossless", "read")
    assert not is_private("graph_retry", "resume")


def test_what_the_door_for_plug_ins_offers_is_used_by_the_ready_ones():
    """A name that none of our own hooks, observers, data sets or pages needs is not promised."""
    files = [path for room in AROUND for path in (PACKAGE / room).rglob("*.py")]
    used = {
        alias.name
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module == "graph_retry.plugins"
        for alias in node.names
    }
    assert exported("graph_retry.plugins") - used == set()


FOUNDATIONS = {"_core", "errors", "lossless", "records"}
"""What the core may import: itself, the records and errors of a call, and the reader."""


def test_the_core_knows_nothing_that_stands_around_it():
    """Budgets, gates, lessons, feedback and options reach the loop by protocols only."""
    modules = import_graph()
    core = {module: others for module, others in modules.items() if "._core" in module}
    assert len(core) > 100
    outward = {
        module: sorted(other for other in others if other.split(".")[1] not in FOUNDATIONS)
        for module, others in core.items()
    }
    assert {module: others for module, others in outward.items() if others} == {}
