"""Ledgers on disk, and back into tests."""

import json
import os
from pathlib import Path

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AnswerRefused, create_retry_node, edit, resume
from graph_retry._core.threads.history import Ledger, attempts_of, export_ledgers, import_ledgers
from graph_retry.data import replay
from graph_retry.errors import ReplayMismatch
from graph_retry.testing import ScriptedLLM, assert_replayable, from_ledger
from tests.loops import one_call, thread

FIXTURES = sorted(Path(__file__).parent.glob("fixtures/v*.jsonl"))


def ended(attempt):
    return attempt["status"], (attempt["failure"] or {}).get("kind")


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_ledgers_of_every_released_version_are_read_and_replayed(path):
    """What a user exported with any version comes to the same today, worded as it may be."""
    ledgers = import_ledgers(path)
    assert len(ledgers) == 3
    for ledger in ledgers:
        now = [each.attempt for each in replay(ledger, output=dict[str, int])]
        assert [ended(each) for each in now] == [ended(each) for each in ledger.attempts]
        assert all(ledger.params_at(attempt["number"]) for attempt in ledger.attempts)


def test_an_export_comes_back_equal(tmp_path):
    """Text that only JSON can escape survives, and redaction works on copies."""
    graph = one_call("node", None, lambda params: "\ud800\x00 no\u2028", InMemorySaver())
    graph.invoke({"params": {"n": float("inf"), "key": "private"}}, thread())
    (ledger,) = attempts_of(graph, thread())

    export_ledgers([ledger], tmp_path / "all.jsonl")
    (again,) = import_ledgers(tmp_path / "all.jsonl")
    assert again == ledger

    def redact(attempt):
        attempt["params_patch"][0]["value"]["key"] = "…"
        return attempt

    export_ledgers([ledger], tmp_path / "told.jsonl", redact)
    assert "private" not in (tmp_path / "told.jsonl").read_text()
    assert ledger.params_at(1)["key"] == "private"


@pytest.mark.parametrize(
    ("redact", "error", "says"),
    [
        (lambda attempt: 1 / 0, ZeroDivisionError, "division"),
        (lambda attempt: None, ValueError, "`redact` returned None instead of an attempt"),
        (
            lambda attempt: {"number": 1},
            ValueError,
            "an attempt without `author`: return the attempt",
        ),
    ],
)
def test_an_export_that_fails_leaves_the_older_file(tmp_path, redact, error, says):
    """A file is replaced only by a whole export, and nothing else is left beside it."""
    graph = one_call("node", None, lambda params: "no", InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    export_ledgers(attempts_of(graph, thread()), path := tmp_path / "all.jsonl")
    before = path.read_text()
    with pytest.raises(error, match=says):
        export_ledgers(attempts_of(graph, thread()), path, redact)
    assert (path.read_text(), [*tmp_path.iterdir()]) == (before, [path])


def test_an_export_goes_into_a_pipe(tmp_path):
    """A pipe such as `/dev/stdout` is written, and not replaced by a file."""
    os.mkfifo(path := tmp_path / "pipe")
    reading = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    export_ledgers([Ledger([])], path)
    assert json.loads(os.read(reading, 10_000))["attempts"] == []
    assert path.is_fifo()
    os.close(reading)


@pytest.mark.parametrize(
    ("line", "error", "says"),
    [
        ("{", ValueError, "line 2 of .* is not JSON"),
        ("[]", ValueError, "line 2 of .* is not an exported ledger"),
        ('{"graph_retry_ledger": 99, "attempts": []}', ReplayMismatch, "schema version 99"),
        ('{"graph_retry_ledger": 1, "attempts": [{"number": 1}]}', ValueError, "without `author`"),
        ('{"graph_retry_ledger": 1, "attempts": [3]}', ValueError, "has 3 instead of an attempt"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_line(tmp_path, line, error, says):
    """A file of another program or a later version is never half understood."""
    path = tmp_path / "some.jsonl"
    path.write_text(json.dumps({"graph_retry_ledger": 1, "attempts": []}) + "\n" + line + "\n")
    with pytest.raises(error, match=says):
        import_ledgers(path)


def test_an_export_is_a_script_for_a_model():
    """The recorded texts, exceptions and usage make the same loop again, call by call."""
    recorded = import_ledgers(FIXTURES[0])[0]
    with from_ledger(recorded) as llm:
        graph = one_call("node", None, llm, InMemorySaver())
        graph.invoke({"params": recorded.params_at(1)}, thread())
        for attempt in recorded.attempts[1:]:
            resume(graph, thread(), edit(**recorded.params_at(attempt["number"])))
    (ledger,) = attempts_of(graph, thread())
    same = ("raw", "failure", "issues", "usage", "finish_reason", "params_patch", "status")
    for old, new in zip(recorded.attempts, ledger.attempts, strict=True):
        assert {key: old[key] for key in same} == {key: new[key] for key in same}


@pytest.mark.parametrize("steps", [["1", "2"], []])
def test_a_script_that_does_not_fit_fails_the_test(steps):
    """Too many and too few steps are both noticed, even where the loop would review the error."""
    llm = ScriptedLLM(*steps)
    node = create_retry_node(llm, dict, output=int, review=False)
    node.invoke({"params": {}})
    with pytest.raises(AssertionError, match="called 1 time and its script has"):
        llm.assert_finished()


@pytest.mark.parametrize(("steps", "told"), [((["1", "2"],), True), ((["1"],), False)])
def test_a_list_in_place_of_steps_is_told(caplog, steps, told):
    """It is one answer, because a model may answer with a list."""
    assert ScriptedLLM(*steps)({}) == steps[0]
    assert ("`ScriptedLLM(*steps)`" in caplog.text) == told


STEPS = [TimeoutError("30 s"), '{"n": "many"}', '{"n": 3}']


@pytest.mark.parametrize("form", ["node", "function"])
@pytest.mark.slow
def test_a_loop_continues_from_every_checkpoint(form):
    """Stopped anywhere and continued in a fresh graph, nothing is called twice or lost."""
    answers = [edit(n=1), edit(n=2)]
    stops = assert_replayable(
        lambda llm, saver: one_call(form, None, llm, saver),
        {"params": {"n": 0}},
        answers,
        steps=STEPS,
    )
    assert stops > 8


def test_a_graph_that_repeats_itself_is_caught():
    """A result that depends on how often the process started is a difference."""
    starts = []

    def unstable(llm, saver):
        starts.append(1)
        return one_call("node", None, llm, saver, name="x", output=lambda value: {"n": len(starts)})

    with pytest.raises(AssertionError, match="crashed after checkpoint"):
        assert_replayable(unstable, {"params": {"n": 0}}, [], steps=['{"n": 3}'])


def test_a_paused_thread_of_another_shape_asks_again():
    """After an upgrade changed the params, what no longer fits is asked for, by name."""
    saver = InMemorySaver()
    old = one_call("node", None, ScriptedLLM("no"), saver)
    old.invoke({"params": {"n": 0}}, thread())
    with ScriptedLLM('{"n": 1}') as llm:
        new = one_call("node", None, llm, saver, locked=["n"])
        with pytest.raises(AnswerRefused, match="locked"):
            resume(new, thread(), edit(n=1))
        assert resume(new, thread(), edit(more=1))["output"] == {"n": 1}
