"""A slice of the ladder's simulation: this library's rows, and the model that all rows share."""

import json
from collections import Counter

import pytest

from bench import edits, ladder
from bench.ladder import OURS, compete, same
from bench.ladder_model import (
    HEEDED,
    KINDS,
    LUCKY,
    MALFORMED,
    Booking,
    ScriptedModel,
    make_tasks,
)
from bench.ladder_rivals import RIVALS
from bench.ladder_server import serving

TASKS = make_tasks(400, seed=4)
UNREADABLE = sum(task.kind in {"number in words", "missing field", "truncated"} for task in TASKS)
"""First answers that no lossless reading turns into a booking."""


@pytest.mark.slow
def test_repair_alone_takes_every_answer_that_is_all_there():
    """One call each; commas, fences, prose and quoted digits are read, the rest is refused."""
    row = compete(OURS["graph-retry, repair only"], TASKS)
    assert (row.model.calls, row.model.resent) == (400, 0)
    assert (row.right, row.wrong, row.failed.total()) == (400 - UNREADABLE, Counter(), UNREADABLE)


def test_feedback_brings_in_the_rest_at_one_call_each():
    """Success is at least 99.9 % at 1.10 calls or fewer, and no value is wrong."""
    row = compete(OURS["graph-retry"], TASKS)
    assert (row.right, row.wrong, row.failed) == (400, Counter(), Counter())
    assert row.model.calls == 400 + UNREADABLE
    assert row.model.calls / row.right <= 1.10
    assert 0 < row.model.resent < 0.2 * row.model.sent


@pytest.mark.slow
def test_tool_calls_cost_no_more_calls_than_text():
    """Broken arguments are repaired like text, and what is wrong is fed back."""
    text, tools = (compete(OURS[f"graph-retry{how}"], TASKS) for how in ("", ", tool calls"))
    assert (tools.right, tools.wrong, tools.failed) == (400, Counter(), Counter())
    assert tools.model.calls <= text.model.calls


def test_one_first_answer_in_five_is_malformed():
    """Each kind has its share, and none of its answers is the exact JSON that was asked for."""
    malformed = [task for task in TASKS if task.kind != "clean"]
    assert len(malformed) == MALFORMED * len(TASKS)
    assert set(Counter(task.kind for task in malformed)) == set(KINDS)
    model = ScriptedModel(TASKS)
    for task in TASKS:
        answer = model(task.prompt())
        assert exact(answer.text, task.truth) is (task.kind == "clean"), answer
        assert (answer.finish_reason == "length") is (task.kind == "truncated")


def exact(text, truth):
    """Tell whether a text is the truth as strict JSON."""
    try:
        return same(Booking.model_validate_json(text, strict=True).model_dump(), truth)
    except ValueError:
        return False


SPECIFIC = "Error: invalid JSON, or invalid name, age, postcode, paid, amount, note, visits."


@pytest.mark.parametrize(
    ("added", "chance"),
    [
        pytest.param(f"\n{SPECIFIC}", HEEDED, id="specific"),
        pytest.param(
            "\nThat did not satisfy the constraints. Please try again.", LUCKY, id="vague"
        ),
        pytest.param("", LUCKY, id="blind"),
        pytest.param("\n@", LUCKY, id="its-own-answer"),
    ],
)
def test_the_model_heeds_only_feedback_that_names_the_error(added, chance):
    """It corrects itself at the stated rates, whoever asks, and else says the same again."""
    tasks = [task for task in make_tasks(5_000, seed=1) if task.kind != "clean"]
    model = ScriptedModel(tasks)
    corrected = 0
    for task in tasks:
        first = model(task.prompt())
        second = model(task.prompt() + added.replace("@", first.text))
        corrected += exact(second.text, task.truth)
        assert second == first or exact(second.text, task.truth)
    assert corrected / len(tasks) == pytest.approx(chance, abs=0.04)


def test_the_model_is_the_same_for_every_competitor():
    """The same prompts get the same answers, in whatever order the tasks come."""
    first, second = ScriptedModel(TASKS), ScriptedModel(TASKS)
    answers = {task.number: first(task.prompt()) for task in TASKS}
    prompts = [task.prompt("Other instructions.") for task in reversed(TASKS)]
    assert answers == {
        task.number: second(prompt) for task, prompt in zip(reversed(TASKS), prompts, strict=True)
    }


@pytest.mark.parametrize(
    ("left", "right"), [(1, 1.0), (1, True), ("1", 1), ([1], [1, 1]), ({"a": 1}, {"a": 1.0})]
)
def test_values_of_another_type_are_wrong(left, right):
    """A comparison that Python's `==` would let pass is refused."""
    assert not same(left, right)
    assert same(left, json.loads(json.dumps(left)))


@pytest.mark.parametrize("name", ["graph-retry, text", "graph-retry, tool call"])
def test_over_http_nothing_is_different(name):
    """The same answers come through a provider's client, and cost the same calls."""
    tasks = make_tasks(35, seed=4)
    row = ladder.Row(tasks, ScriptedModel(tasks))
    with serving(row.model) as url:
        ladder.run_all(row, RIVALS[name][1](url))
    unreadable = sum(
        task.kind in {"number in words", "missing field", "truncated"} for task in tasks
    )
    assert (row.right, row.wrong, row.failed) == (35, Counter(), Counter())
    assert row.model.calls == 35 + unreadable > 35


def test_what_is_not_installed_is_not_run(monkeypatch, capsys):
    """No figures are printed for a library that did not run."""
    monkeypatch.setattr(ladder, "TASKS", 20)
    monkeypatch.setattr(ladder, "HTTP_TASKS", 20)
    monkeypatch.setattr(ladder, "find_spec", lambda package: None)
    ladder.main()
    lines = capsys.readouterr().out.splitlines()
    for name, (package, _) in RIVALS.items():
        assert f"Not run, because it is not installed: {name} (`pip install {package}`)." in lines
        assert not [line for line in lines if line.startswith(f"| {name} (")]


def test_three_edits_cost_four_calls():
    """A loop in one node pays for ten; here, and where the call has a node, it is one an edit."""
    counts = {name: edits.calls_for(make, 3) for name, make in edits.LOOPS.items()}
    assert [*counts.values()] == [10, 10, 4, 4, 4, 4]
    assert [edits.edit_counts(make) for make in edits.LOOPS.values()] == [False, False, *[True] * 4]
