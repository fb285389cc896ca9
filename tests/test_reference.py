"""The site's reference lists each public name once, and each public function shows itself."""

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict, is_typeddict

import graph_retry
from tests.test_house_rules import PUBLIC

PAGES = sorted((Path(__file__).parent.parent / "docs" / "reference").glob("*.md"))
MODULES = PUBLIC - {"desk"} | {"desk.web"}
LISTED = [
    found for page in PAGES for found in re.findall(r"^::: (\S+)", page.read_text(), re.MULTILINE)
]


def named(path: str) -> Any:
    """Import what a path of the reference names."""
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def public() -> dict[str, Any]:
    """Return what the public modules export, by path; the package itself comes first."""
    modules = [graph_retry]
    modules += [importlib.import_module(f"graph_retry.{name}") for name in sorted(MODULES)]
    return {
        f"{module.__name__}.{name}": getattr(module, name)
        for module in modules
        for name in getattr(module, "__all__", [])
    }


def test_the_reference_lists_every_public_name_once():
    """What a module's `__all__` has stands in docs/reference/, and nothing else does."""
    assert len(set(LISTED)) == len(LISTED)
    exported = public()
    assert [path for path in LISTED if path not in exported] == []

    seen = [(path.rpartition(".")[2], named(path)) for path in LISTED]
    missing = [
        path
        for path, value in exported.items()
        if not any(name == path.rpartition(".")[2] and value is shown for name, shown in seen)
    ]
    assert missing == [], "list them in a page of docs/reference/"


def test_every_public_function_has_an_example():
    """A doctest of its own, or for an async twin the one of the function it names."""
    silent = []
    for path, value in public().items():
        if inspect.isfunction(value):
            twin = public().get(path.replace(f".{value.__name__}", f".{value.__name__[1:]}"))
            told = [value.__doc__ or "", *([twin.__doc__ or ""] if twin else [])]
            if not any(">>> " in text for text in told):
                silent.append(path)
    assert silent == []


def test_an_async_form_takes_what_the_sync_form_takes():
    """Whoever knows one form knows the arguments of the other."""
    found, pairs = public(), 0
    for path, value in found.items():
        module, _, name = path.rpartition(".")
        twin = found.get(f"{module}.a{name}")
        if twin is None or not inspect.isfunction(value):
            continue
        pairs += 1
        assert (twin.__module__, twin.__name__) == (value.__module__, f"a{name}")
        own, others = (inspect.signature(each).parameters for each in (value, twin))
        assert list(own.values()) == list(others.values()), path
    assert pairs > 10


def test_what_is_public_says_so():
    """A public module that users import from exports by `__all__`, so that the list is known."""
    inside = {"function", "node"}  # come from `graph_retry`
    modules = [importlib.import_module(f"graph_retry.{name}") for name in sorted(MODULES - inside)]
    assert [module.__name__ for module in modules if not hasattr(module, "__all__")] == []


def test_help_describes_every_field_of_a_record():
    """`help(Attempt)` shows the docstrings of classes, so these name each field."""
    silent, records = [], 0
    for path, value in public().items():
        if not is_typeddict(value):
            continue
        records += 1
        told = inspect.getdoc(value) or ""
        bases = getattr(value, "__orig_bases__", ())
        own = set(value.__annotations__).difference(
            *(
                getattr(base, "__origin__", base).__annotations__
                for base in bases
                if base is not TypedDict
            )
        )
        described = {name for name in own if re.search(rf"^{name}: |`{name}`", told, re.MULTILINE)}
        described |= {"checkpoint_id", "checkpoint_ns"}  # LangGraph's own names
        silent += [f"{path}.{name}" for name in sorted(own - described)]
    assert records > 10
    assert silent == []
