"""The reader works alone: a wheel of its folder, in an environment without LangGraph."""

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from graph_retry.lossless import read

ROOT = Path(__file__).parent.parent.parent
FOLDER = ROOT / "graph_retry" / "lossless"
ALONE = (
    "test_backslashes",
    "test_beside_the_answer",
    "test_calls",
    "test_modes",
    "test_taken_back",
)
"""Tests that need nothing but the reader."""


def test_the_reader_imports_nothing_of_the_package_but_itself():
    """It needs Python and `typing_extensions`, and `json_repair` only where it may guess."""
    allowed = {*sys.stdlib_module_names, "typing_extensions", "json_repair"}
    found = set[str]()
    for file in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
    ours = {name for name in found if name.startswith("graph_retry")}
    assert {name for name in ours if not name.startswith("graph_retry.lossless")} == set()
    assert {name.partition(".")[0] for name in found - ours} <= allowed


def wheel(path: Path) -> Path:
    """Build a wheel that has this folder only: `graph_retry` is then a namespace package."""
    name = "graph_retry_lossless-0.1"
    made = path / f"{name}-py3-none-any.whl"
    about = f"{name}.dist-info"
    with zipfile.ZipFile(made, "w") as archive:
        for file in sorted(FOLDER.rglob("*")):
            if file.is_file() and file.suffix != ".pyc":
                archive.write(file, file.relative_to(ROOT))
        archive.writestr(
            f"{about}/METADATA",
            "Metadata-Version: 2.1\nName: graph-retry-lossless\nVersion: 0.1\n"
            "Requires-Dist: typing-extensions\n",
        )
        archive.writestr(
            f"{about}/WHEEL",
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{about}/RECORD", "")
    return made


@pytest.mark.slow
def test_a_wheel_of_the_folder_alone_passes_its_tests_without_langgraph(tmp_path):
    """What a script without a graph installs reads as well as the whole package does."""
    place = tmp_path / "env"
    venv.create(place, symlinks=True)
    (site,) = place.glob("lib/python3*/site-packages")
    with zipfile.ZipFile(wheel(tmp_path)) as archive:
        archive.extractall(site)
    for name in (
        "pytest",
        "_pytest",
        "pluggy",
        "iniconfig",
        "packaging",
        "py",
        "pygments",
        "typing_extensions",
    ):
        found = importlib.util.find_spec(name)
        assert found
        assert found.origin
        origin = Path(found.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (site / source.name).symlink_to(source)
    for name in ALONE:
        shutil.copy(Path(__file__).parent / f"{name}.py", tmp_path)

    python = str(place / "bin" / "python")
    for missing in ("langgraph", "pydantic", "pydantic_core", "graph_retry.errors"):
        done = subprocess.run(
            [python, "-c", f"import {missing}"], capture_output=True, cwd=tmp_path, check=False
        )
        assert done.returncode, missing
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "."]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [((None,), TypeError, "`text`"), (("{}", "careful"), ValueError, "standard, aggressive")],
)
def test_a_wrong_call_is_told_at_once(given, error, told):
    """The two mistakes a caller can make name the argument."""
    with pytest.raises(error, match=told):
        read(*given)


@pytest.mark.parametrize("depth", [200, 201])
@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
def test_strict_json_is_read_to_a_fixed_depth(depth, before, after):
    """The depth is the same on each version of Python; one level more is refused."""
    inner = "1" if before != "[" else ""
    assert read(before * depth + inner + after * depth, "none").ok
    deeper = read(before * 202 + inner + after * 202, "none")
    assert deeper.failure
