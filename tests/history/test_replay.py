"""Replaying ledgers against what was recorded, and against something else."""

import asyncio
import copy

import pytest

from graph_retry import InterventionRequired, retry_llm_call
from graph_retry.data import areplay, replay
from graph_retry.errors import ReplayMismatch


def hook(error, attempt, params):
    """Ask for care once."""
    return None if params.get("care") else {**params, "care": True}


def model(params):
    """Answer a little better where care is asked for."""
    return '{"n": "2"}' if params.get("care") else '{"n": 1'


@pytest.fixture
def attempts():
    """Record two attempts that fail, the second made by a hook."""
    options = {"output": dict[str, int], "strict": True, "auto_retries": 1}
    with pytest.raises(InterventionRequired) as caught:
        retry_llm_call(model, {"prompt": "n?"}, hook, **options)
    return caught.value.attempts


OPTIONS = {"output": dict[str, int], "strict": True, "auto_retries": 1}


def test_the_same_rules_give_the_same_ledger(attempts):
    """Repair, validation, classification and the hook come to what is recorded."""
    first, second = replay(attempts, hook, check=True, **OPTIONS)
    assert (first.author, first.params) == ("hook", {"prompt": "n?", "care": True})
    assert [each.attempt for each in (first, second)] == attempts


@pytest.mark.parametrize(
    ("change", "number", "field"),
    [
        ({"output": dict[str, int]}, 2, "status"),
        ({"output": dict[str, str], "strict": True}, 2, "status"),
        ({**OPTIONS, "repair": "aggressive"}, 1, "status"),
        ({"output": dict[str, int], "feedback": "errors_only"}, 1, "next params"),
    ],
)
def test_other_rules_tell_where_they_part(attempts, change, number, field):
    """The first difference is named by attempt and field, with both values."""
    with pytest.raises(ReplayMismatch, match=f"attempt {number} differs in its {field}") as caught:
        replay(attempts, hook if "strict" in change else None, check=True, **change)
    error = copy.copy(caught.value)
    assert (error.attempt, error.attempts) == (number, attempts)
    assert error.expected != error.actual


def test_what_would_have_happened(attempts):
    """With a laxer schema the second attempt would have done."""
    first, second = replay(attempts, output=dict[str, int])
    assert (first.attempt["status"], first.output) == ("failed", None)
    assert (second.attempt["status"], second.output) == ("succeeded", {"n": 2})
    assert second.differs[0] == ("status", "failed", "succeeded")


def test_an_exception_is_classified_again():
    """`classify` sees the recorded class name and message."""

    def fail(params):
        raise RuntimeError("429 quota")

    with pytest.raises(InterventionRequired) as caught:
        retry_llm_call(fail, {})

    def classify(error):
        return "transient" if "quota" in str(error) else None

    (now,) = replay(caught.value.attempts, classify=classify)
    assert now.attempt["failure"]["kind"] == "transient"
    assert caught.value.attempts[0]["failure"]["kind"] == "rejected_input"


def test_a_replay_changes_nothing_it_is_given(attempts):
    """The ledger is read, and an async hook is run by the async twin."""

    async def later(error, attempt, params):
        return {**params, "care": True}

    before = copy.deepcopy(attempts)
    later.__name__ = "hook"
    first, _ = asyncio.run(areplay(attempts, later, **OPTIONS))
    assert first.params == {"prompt": "n?", "care": True}
    assert attempts == before
