"""Every script in `examples/` runs as a user runs it: own process, no key, no terminal.

Comment lines `# expect: text` in a script are its promise: the texts appear in its output, in
that order.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.terminal import STRICT

SCRIPTS = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


LONG = {"several_workers"}  # five processes, each of which loads everything
CASES = [
    pytest.param(script, marks=[pytest.mark.long] * (script.stem in LONG), id=script.stem)
    for script in SCRIPTS
]


@pytest.mark.parametrize("script", CASES)
@pytest.mark.slow
def test_an_example_keeps_its_promise(script, tmp_path, request):
    """A script ends well without input and prints what its comments say."""
    environment = dict(os.environ)
    if "DATABASE_URL" in script.read_text():
        environment["DATABASE_URL"] = request.getfixturevalue("postgres_database")
    done = subprocess.run(
        [*STRICT, script],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr

    promises = re.findall(r"^# expect: (.+)$", script.read_text(), re.MULTILINE)
    assert promises, "a script says with `# expect: text` what it prints"
    position = 0
    for promise in promises:
        found = done.stdout.find(promise, position)
        assert found >= 0, f"{promise!r} is not in the rest of the output:\n{done.stdout}"
        position = found + len(promise)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_an_example_is_short_and_explains_itself(script):
    """A script fits two screens and starts by saying what it shows."""
    text = script.read_text()
    assert text.startswith('"""')
    assert len(text.splitlines()) <= 80
