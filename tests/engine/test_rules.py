"""The loop's rules, without a graph."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_retry._core.state.attempts import merge_attempts
from graph_retry._core.state.transitions import FOLLOWERS, after_failure
from graph_retry.options import settle

COUNTS = st.integers(0, 30)


@given(st.booleans(), st.booleans(), COUNTS, COUNTS, st.booleans())
def test_no_blind_retry_and_no_endless_one(changed, stopped, automatic, auto_retries, review):
    """A retry always has changed params, an allowance left and nothing that stops it (I2)."""
    verdict = after_failure(
        changed=changed,
        stopped=stopped,
        automatic=automatic,
        auto_retries=auto_retries,
        review=review,
    )
    if verdict == "retry":
        assert changed
        assert not stopped
        assert automatic < auto_retries
    else:
        assert verdict == ("ask" if review else "give_up")


def test_every_step_leads_somewhere_that_exists():
    """The drawn graph has no dead end and no unknown step."""
    known = {*FOLLOWERS, "end", "give_up"}
    assert all(set(followers) <= known for followers in FOLLOWERS.values())


@given(st.lists(st.tuples(st.integers(1, 5), st.text(max_size=3)), max_size=20))
def test_the_ledger_reducer_completes_and_appends(updates):
    """One record per number, in order of appearance, the last word on each field."""
    ledger = []
    for number, text in updates:
        before = list(ledger)
        ledger = merge_attempts(ledger, [{"number": number, "raw": text}])
        assert len(ledger) - len(before) in (0, 1)
    assert [record["number"] for record in ledger] == list(dict.fromkeys(n for n, _ in updates))
    assert {r["number"]: r["raw"] for r in ledger} == dict(updates)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"max_attemps": 3}, "unknown argument `max_attemps`. Did you mean `max_attempts`?"),
        ({"max_retries": 3}, "unknown argument `max_retries`: give `max_attempts`, which includes"),
        ({"initial_delay": 1}, r"`initial_delay`: .*`transient=RetryPolicy"),
        ({"temperature": 0.3}, "`temperature`: .*put this value into `params`"),
        ({"repair_only": True}, "`repair_only`: give `review=False`"),
        ({"validate": dict}, "`validate`: give `output`"),
        ({"maxRetries": 3}, "`maxRetries`: give `max_attempts`, which includes"),
        ({"systemPrompt": "x"}, "`systemPrompt`: .*put this value into `params`"),
        ({"maxTokens": 9}, "`maxTokens`: .*put this value into `params`"),
        ({"repairOnly": True}, "`repairOnly`: give `review=False`"),
        ({"onAttempt": print}, "`onAttempt`: give `on_attempt`"),
        ({"autoRetries": 1}, "`autoRetries`: give `auto_retries`"),
        ({"custom": str}, r"`custom`: give `repair=\(level, function\)`"),
        ({"max_attempts": 0}, "`max_attempts`: give a whole number from 1; not 0"),
        ({"max_attempts": True}, "`max_attempts`: give a whole number from 1; not True"),
        ({"auto_retries": -1}, "`auto_retries`: .*not -1"),
        ({"review": "no"}, "`review`: give True or False, 'always', or a function.*not 'no'"),
        (
            {"repair": "heavy"},
            "`repair`: .*'none', 'minimal', 'standard' or 'aggressive'.*not 'heavy'",
        ),
        ({"on_cancel": "ignore"}, "`on_cancel`: .*'raise' or 'end'"),
        ({"allowed_decisions": ["aprove"]}, "not 'aprove'. Did you mean `approve`"),
        ({"allowed_decisions": []}, "`allowed_decisions`"),
        ({"locked": "model"}, "`locked`: give a list of texts; not 'model'"),
        ({"keys": {"result": "x"}}, "`keys` has an unknown key `result`. Known are params"),
        ({"keys": {"output": "params"}}, "`keys` .*one name to two keys"),
        ({"transient": 3}, "RetryPolicy"),
        ({"on_attempt": 3}, "`on_attempt`"),
    ],
)
def test_a_wrong_option_is_named(options, error):
    """Each message names the option, what came and what is allowed."""
    with pytest.raises((TypeError, ValueError), match=error):
        settle("f", "node", options)


@pytest.mark.parametrize("options", [{"on_cancel": "end"}, {"keys": {"output": "x"}}])
def test_options_of_the_node_form_are_refused_by_the_function(options):
    """A function has no status or state keys to write."""
    with pytest.raises(ValueError, match="create_retry_node"):
        settle("f", "function", options)
