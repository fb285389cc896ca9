"""`.ci/release`, which a person runs by hand: in a small repository, with a stand-in wheel."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
WHEEL = """#!/usr/bin/env bash
mkdir -p "$2" && python3 - "$2" <<'END'
import sys, zipfile
with zipfile.ZipFile(f"{sys.argv[1]}/graph_retry-1.2.3-py3-none-any.whl", "w") as wheel:
    for name in ("py.typed", "desk/web/static/page.js", *map(str, range(3_000))):
        wheel.writestr(f"graph_retry/{name}", "")
END
"""
NOTES = "### Calls\n\n- " + "A line of the notes has some words. " * 5 + "\n"
FILES = {
    ".ci/release": (ROOT / ".ci/release").read_text(),
    ".ci/wheel": WHEEL,
    ".gitignore": "dist/\n",
    "pyproject.toml": 'version = "1.2.3"\n',
    "CHANGELOG.md": f"## 1.2.3 (2030-05-01)\n\n{NOTES}\n## 1.2.2 (2030-04-01)\n",
    "README.md": "pip install graph-retry\n",
    "docs/index.md": "pip install graph-retry\n",
}


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command of the shell."""
    return subprocess.run(
        ["bash", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )


def committed(folder: Path, **changed: str) -> Path:
    """Make the repository, with other texts for the files whose names begin so."""
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(changed.get(path.stem, text))
        path.chmod(0o755)
    who = "git config user.name Ada && git config user.email ada@example.org"
    made = run(f"git init -q && {who} && git add -A && git commit -qm all", folder)
    assert made.returncode == 0, made.stderr
    return folder


def test_a_release_prints_a_tag_with_all_the_notes(tmp_path: Path) -> None:
    """The printed command makes a tag whose headings git does not take for comments."""
    made = run(".ci/release 1.2.3", committed(tmp_path))
    assert made.returncode == 0, made.stderr
    (tag,) = re.findall(r"^  (git tag -s .*) && git push", made.stdout, re.MULTILINE)
    tagged = run(tag.replace(" -s ", " -a "), tmp_path)
    assert tagged.returncode == 0, tagged.stderr
    assert run("git tag -l --format='%(contents)'", tmp_path).stdout.strip() == NOTES.strip()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"CHANGELOG": "## 1.2.3 (not yet released)\n"}, "CHANGELOG.md has no heading"),
        ({"CHANGELOG": "## 1.2.3 (2030-05-01)\n\nShort.\n"}, "the notes of 1.2.3 are empty"),
        ({"README": "It is not on PyPI yet.\n"}, "README.md says that the package is not"),
        ({"index": "It is not published yet.\n"}, "docs/index.md says that the package is not"),
        ({"pyproject": 'version = "1.2.4"\n'}, "pyproject.toml has another version"),
        ({"wheel": WHEEL.replace('"py.typed", ', "")}, "the wheel lacks graph_retry/py.typed"),
    ],
)
def test_a_release_that_is_not_ready_says_why(
    tmp_path: Path, changed: dict[str, str], reason: str
) -> None:
    """Each check of the script can fail."""
    made = run(".ci/release 1.2.3", committed(tmp_path, **changed))
    assert made.returncode == 1
    assert f"not ready: {reason}" in made.stderr
