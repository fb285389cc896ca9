"""Threads that an earlier version saved continue: this is a promise (docs/howto/upgrades.md)."""

import asyncio
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

from graph_retry import edit, threads
from tests.conftest import Mode
from tests.corpus import graphs
from tests.corpus.make import STATES, thread
from tests.loops import answer, reviews

HERE = Path(__file__).parent
CORPORA = [*sorted(HERE.glob("*.sqlite.xz")), *map(Path, filter(None, [os.environ.get("CORPUS")]))]
"""What earlier versions saved, and what another version of LangGraph did (`.ci/langgraph`)."""

ATTEMPTS = {"waiting at 1": 1, "waiting at 2": 2}
"""The number of the attempt about which a thread asks. With feedback it is one more."""

OUTPUTS = {
    "function": [{"n": 5}, {"n": 1}],
    "documents": [{"n": 1}, {"n": 1}],
    "async": [{"n": 5}, {"n": 1}],
}
"""The output of each form of several calls; the others have one call, or list `outputs`."""


@pytest.fixture
def opened(request, tmp_path):
    """A copy of a corpus: a mode, and a graph on its saver."""
    corpus, form = request.param
    copy = tmp_path / "threads.sqlite"
    copy.write_bytes(lzma.decompress(corpus.read_bytes()))
    graphs.CALLS.clear()
    with asyncio.Runner() as runner:
        mode = Mode("async" if form == "async" else "sync", runner)
        saver_class = AsyncSqliteSaver if mode.is_async else SqliteSaver
        with mode.opened(saver_class.from_conn_string(str(copy))) as saver:
            yield mode, graphs.FORMS[form](saver), form


PLACES = [(corpus, form) for corpus in CORPORA for form in graphs.FORMS]
NAMES = [f"{corpus.name[:10]}-{form}" for corpus, form in PLACES]


@pytest.mark.parametrize("opened", PLACES, ids=NAMES, indirect=True)
def test_saved_threads_continue(opened):
    """Waiting at 1 or 2, finished, answered and not run: each ends right, and no call repeats."""
    mode, graph, form = opened
    for state in STATES:
        graphs.CALLS.clear()
        config = thread(form, state)
        open_ = reviews(mode, graph, config)
        if state in ATTEMPTS:
            (review,) = open_
            assert review.attempt == ATTEMPTS[state] + (form == "feedback")
            answer(mode, graph, config, edit(n=1))
        else:
            assert open_ == []
            answer(mode, graph, config)

        values = mode.call(graph, "get_state", config).values
        output = values["output"] if "output" in values else values["outputs"]
        assert output == OUTPUTS.get(form, [{"n": 5}, {"n": 1}] if form == "branches" else {"n": 1})
        assert [params["n"] for params in graphs.CALLS] == [1] * (state != "finished")
        assert reviews(mode, graph, config) == []


@pytest.mark.parametrize("opened", PLACES[:1], ids=NAMES[:1], indirect=True)
def test_ledgers_of_saved_threads_are_read(opened):
    """The records of a finished call name what was sent, what failed and who decided."""
    mode, graph, form = opened

    ledgers = mode.call(threads, "attempts_of", graph, thread(form, "finished"))

    assert [len(each.attempts) for each in ledgers] == [1, 2]


@pytest.mark.long
def test_the_corpus_can_be_made(tmp_path):
    """The script works with this version, so that a new form can get a corpus of its own."""
    subprocess.run(
        [sys.executable, "-m", "tests.corpus.make", str(tmp_path / "made.sqlite.xz")],
        cwd=HERE.parents[1],
        check=True,
        capture_output=True,
        timeout=300,
    )
    assert (tmp_path / "made.sqlite.xz").stat().st_size > 0
