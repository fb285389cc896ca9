"""Figures over attempts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import graph_retry.threads
from graph_retry import Completion, edit, respond, retry_llm_call
from graph_retry.data import plot_summary, summarize
from graph_retry.ledger import Ledger
from tests.loops import Model, answer, one_call, thread

USAGE = {"input_tokens": 6, "output_tokens": 4, "total_tokens": 10}


def record(number=1, status="succeeded", *, seconds=1.0, usage=None, kind=None, **more):
    """Make the part of a ledger record that figures are about."""
    failure = kind and {"kind": kind, "type": "E", "message": "m"}
    return {
        "number": number, "status": status, "duration_s": seconds, "usage": usage, "tries": 1,
        "params_patch": [], "failure": failure, "repairs": [], "decision": None, **more,
    }  # fmt: skip


def test_nothing_known_is_none_and_not_zero():
    """Without calls there are no rates; without reports there are no token counts."""
    empty = summarize([])
    assert (empty["calls"], empty["success_rate"], empty["mean_attempts"]) == (0, None, None)
    assert (empty["retried"], empty["retries_per_success"], empty["total_s"]) == (None, None, 0)
    assert set(empty["latency_s"].values()) == {None}
    unknown = summarize([record()])
    assert set(unknown["tokens"].values()) == {None}
    assert unknown["attempts_without_tokens"] == 1
    zero = summarize([record(usage={"input_tokens": 0, "output_tokens": 0, "total_tokens": 0})])
    assert zero["tokens"] == {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}


def test_what_has_no_attempts_is_told_in_a_sentence():
    """The three forms are named, and not their types."""
    told = "`attempts`: give a `Ledger`, a list of them, or the records that `on_attempt` collected"
    with pytest.raises(TypeError, match=told):
        summarize(None)


@pytest.mark.parametrize("given", [[{"a": 1}], [[{"number": 1}]]])
@pytest.mark.parametrize("of", [summarize, plot_summary])
def test_what_is_no_whole_record_is_refused_with_the_missing_key(of, given):
    """A dict of one's own has no figures."""
    missing = "`attempts` has a record without `(number|status)`: .* Give whole records, such as"
    with pytest.raises(TypeError, match=missing):
        of(given)


def test_a_total_that_is_not_reported_is_the_sum_of_its_parts():
    """Anthropic reports what went in and what came out, and no total."""
    parts = {"input_tokens": 60, "output_tokens": 40}
    figures = summarize([record(usage=parts), record(2, usage=USAGE)])
    assert figures["tokens"]["total_tokens"] == 110
    assert figures["attempts_without_tokens"] == 0


LEDGERS = [
    [record(seconds=4.0, usage=USAGE, repairs=[{"kind": "fence"}, {"kind": "comma"}])],
    [
        record(1, "failed", kind="invalid_schema", decision={"type": "edit"}, tries=3),
        record(2, "succeeded", seconds=2.0, usage=USAGE, repairs=[{"kind": "comma"}]),
    ],
    [record(1, "failed", kind="permanent", decision={"type": "reject"}, seconds=3.0)],
]


def test_several_ledgers_are_summed_up():
    """Rates are by call, quantiles and tokens by attempt, kinds are counted."""
    assert summarize(LEDGERS) == {
        "calls": 3,
        "succeeded": 2,
        "success_rate": 2 / 3,
        "attempts": 4,
        "mean_attempts": 4 / 3,
        "retried": 1 / 3,
        "retries_per_success": 0.5,
        "requests": 6,
        "success_by_attempt": {1: 1, 2: 1},
        "latency_s": {"p50": 2.0, "p90": 4.0, "p99": 4.0, "p100": 4.0},
        "mean_latency_s": 2.5,
        "total_s": 10.0,
        "tokens": {"input_tokens": 12, "output_tokens": 8, "total_tokens": 20},
        "attempts_without_tokens": 2,
        "repairs": {"comma": 2, "fence": 1},
        "failures": {"invalid_schema": 1, "permanent": 1},
        "decisions": {"edit": 1, "reject": 1},
        "gate": {
            "passed": 0,
            "asked": 0,
            "sampled": 0,
            "audited": 0,
            "audited_wrong": 0,
            "wrong_passed": None,
        },
    }


def test_one_ledger_and_collected_records_count_the_same():
    """A flat list of records says the same as the ledgers they came from."""
    assert summarize([each for ledger in LEDGERS for each in ledger]) == summarize(LEDGERS)
    assert summarize(LEDGERS[1])["calls"] == 1


def test_ledgers_are_taken_as_attempts_of_returns_them():
    """One `Ledger`, several, or a generator of what they hold: the figures are the same."""
    whole = [Ledger([{**each, "params_patch": []} for each in ledger]) for ledger in LEDGERS]
    assert summarize(whole) == summarize(each.attempts for each in whole) == summarize(LEDGERS)
    assert summarize(whole[1]) == summarize(LEDGERS[1])


FAILED = record(1, "failed", kind="invalid_schema", idempotency_key="a")


def forked(*attempts):
    """Make a ledger that goes on from the shared first attempt."""
    return [{**FAILED, "decision": {"type": "edit"}}, *attempts]


TWICE = [
    forked(record(2, idempotency_key="b", usage=USAGE)),
    forked(record(2, idempotency_key="c", usage=USAGE)),
]

ENDS = {
    "responded": ([[{**FAILED, "decision": {"type": "respond"}}]], (1, 1, {1: 1}, 1)),
    "succeeded in both forks": (TWICE, (1, 1, {2: 1}, 3)),
    "rejected in the last fork": (
        [*TWICE, [{**FAILED, "decision": {"type": "reject"}}]],
        (1, 0, {}, 3),
    ),
    "a success that was taken back": (
        [[record(idempotency_key="a", decision={"type": "reject"})]],
        (1, 0, {}, 1),
    ),
    "the same ledger given twice": ([TWICE[0], TWICE[0]], (1, 1, {2: 1}, 2)),
    "attempts without a key": ([[record()], [record()]], (2, 2, {1: 2}, 2)),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_call_counts_once_by_how_it_ended(name):
    """Forks share attempts and are one call; a person's output is a success, too."""
    ledgers, expected = ENDS[name]
    figures = summarize(ledgers)
    told = ("calls", "succeeded", "success_by_attempt", "attempts")
    assert tuple(figures[key] for key in told) == expected
    assert figures["success_rate"] == expected[1] / expected[0]


def test_real_forks_and_answers_are_counted_once(form, mode, checkpointer):
    """Of a thread that was answered and rewound all ledgers are taken, left behind or not."""
    graph = one_call(form, mode, Model(goal=1), checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    answer(mode, graph, thread(), edit(n=1))
    for n in (2, 3):
        mode.call(graph_retry.threads, "rewind", graph, thread(), attempt=2, params={"n": n})
    mode.invoke(graph, {"params": {"n": 0}}, thread("2"))
    answer(mode, graph, thread("2"), respond({"n": 7}))
    ledgers = [
        ledger.attempts
        for name in ("1", "2")
        for ledger in mode.call(graph_retry.threads, "attempts_of", graph, thread(name))
    ]
    figures = summarize(ledgers)
    assert (figures["calls"], figures["succeeded"], figures["success_rate"]) == (2, 2, 1.0)
    assert figures["success_by_attempt"] == {1: 1, 2: 1}
    assert figures["attempts"] == 5


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60))
def test_quantiles_are_measured_values_in_order(seconds):
    """Each is one of the durations, and at least its share of them is not above it."""
    latency = summarize([record(seconds=each) for each in seconds])["latency_s"]
    values = list(latency.values())
    assert values == sorted(values)
    assert latency["p100"] == max(seconds)
    for name, value in latency.items():
        assert value in seconds
        assert sum(each <= value for each in seconds) >= len(seconds) * int(name[1:]) / 100


def test_real_calls_are_summed_up_from_on_attempt():
    """Usage reaches the totals on success too."""
    records = []
    for text in ('{"n": 1}', '```json\n{"n": 1,}\n```'):
        retry_llm_call(
            lambda params, text=text: Completion(text, USAGE),
            {},
            output=dict[str, int],
            on_attempt=records.append,
        )
    figures = summarize(records)
    assert (figures["calls"], figures["success_rate"]) == (2, 1.0)
    assert figures["tokens"]["total_tokens"] == 20
    assert sum(figures["repairs"].values()) >= 2
