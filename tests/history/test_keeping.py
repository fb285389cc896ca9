"""Large outputs of earlier attempts are saved once, and whoever reads a ledger finds it whole."""

import asyncio
import json

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph

from graph_retry import (
    CallCancelled,
    GraphRetryError,
    StaleDecision,
    create_retry_node,
    edit,
    reject,
    respond,
    resume,
)
from graph_retry._core.loop.run import keeping as rules
from graph_retry._core.state.attempts import records_in
from graph_retry._core.threads import history as histories
from graph_retry.data import replay
from graph_retry.threads import attempts_of, list_reviews, rewind
from tests.conftest import Mode
from tests.loops import Model, State, answer, one_call, refused, reviews, thread

SIZE = 5_000
SYNC = Mode("sync", asyncio.Runner())


def text(n):
    """Return the output of the attempt with these params: long, and never of the right type."""
    return json.dumps({"n": f"{n}:" + "x" * SIZE})


def talker():
    """Make a model whose outputs are long, and right from 9 on."""
    return Model(lambda params: text(params["n"]) if params["n"] < 9 else '{"n": 9}')


def failing(form, mode, saver, upto, **options):
    """Return a graph with a call that waits after `upto` failed attempts."""
    graph = one_call(form, mode, talker(), saver, max_attempts=20, **options)
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    for n in range(2, upto + 1):
        answer(mode, graph, thread(), edit(n=n))
    return graph


def texts(attempts):
    """Return the raw output of each attempt."""
    return [each["raw"] and each["raw"]["text"] for each in attempts]


def kept(attempts):
    """Tell of each attempt whether its record is elsewhere."""
    return [bool(each.get("kept_in")) for each in attempts]


def in_state(mode, saver):
    """Return the ledger as the newest checkpoint of the call has it."""
    saved = mode.call(saver, "list", thread())
    newest = max(
        (each for each in saved if "retry_loop" in each.checkpoint["channel_values"]),
        key=lambda each: each.checkpoint["id"],
    )
    return records_in(newest.checkpoint["channel_values"])


def test_a_waiting_call_has_only_its_last_record_in_state(form, mode, checkpointer):
    """Of earlier ones it has number and place; the first and the last of these tell the params."""
    failing(form, mode, checkpointer, 5)
    *left, last = in_state(mode, checkpointer)
    assert last["raw"] == {"text": text(5)}
    assert last["kept_in"] is None
    told = ["params_patch", "params_types"]
    keys = [[*told], [], [], [*told]]
    assert [sorted(each) for each in left] == [["kept_in", "number", *more] for more in keys]
    assert [[*each["kept_in"]] for each in left] == [["checkpoint_id"]] * 4
    (change,) = left[-1]["params_patch"]
    assert change["value"] == 4


def test_readers_of_a_waiting_call_find_every_output(form, mode, checkpointer):
    """A ledger, an open review and the inbox show all outputs, issues and repairs."""
    graph = failing(form, mode, checkpointer, 4)
    expected = [text(n) for n in (1, 2, 3, 4)]
    (ledger,) = mode.call(histories, "attempts_of", graph, thread())
    (review,) = reviews(mode, graph, thread())
    for attempts in (ledger.attempts, review.history):
        assert texts(attempts) == expected
        assert [each["kept_in"] for each in attempts] == [None] * 4
        assert all(each["issues"] for each in attempts)
    if not mode.is_async:
        for source in (graph, checkpointer):
            assert texts(list_reviews(source)[0].history) == expected
            assert texts(attempts_of(source, thread())[0].attempts) == expected
    assert all(not each.differs for each in replay(ledger.attempts, output=dict[str, int]))


ENDINGS = {
    "success": (edit(n=9), [*map(text, (1, 2, 3)), '{"n": 9}']),
    "an output by hand": (respond({"n": 1}), [*map(text, (1, 2, 3))]),
    "a cancel": (reject("no"), [*map(text, (1, 2, 3))]),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_call_that_is_over_hands_out_its_whole_ledger(form, mode, checkpointer, ending):
    """Outputs, errors and the last state hold every output, so pruning costs nothing then."""
    decision, expected = ENDINGS[ending]
    graph = failing(form, mode, checkpointer, 3)
    try:
        told = answer(mode, graph, thread(), decision).get("attempts")
    except CallCancelled as error:
        told = error.attempts
    assert told is None or texts(told) == expected
    records = in_state(mode, checkpointer)
    assert texts(records) == expected
    assert not any(each["kept_in"] for each in records)


def test_a_call_that_gives_up_tells_every_output(form, mode, checkpointer):
    """With nobody to ask, the error of the last attempt has all of them."""
    hook = mode.colour(lambda error, attempt, params: {"n": params["n"] + 1})
    graph = one_call(
        form, mode, talker(), checkpointer, hook,
        review=False, max_attempts=3, auto_retries=5, on_cancel="raise",
    )  # fmt: skip
    with pytest.raises(GraphRetryError) as caught:
        mode.invoke(graph, {"params": {"n": 1}}, thread())
    assert texts(caught.value.attempts) == [*map(text, (1, 2, 3))]


def test_whoever_is_asked_on_the_way_sees_every_output(form, mode, checkpointer):
    """Hooks, prices, reviewers and `notify` are given whole ledgers."""
    seen = {}

    def hook(error, attempt, params):
        seen["hook"] = texts(error.attempts)

    def reviewer(review):
        seen["reviewer"] = texts(review.history)

    def notify(review):
        seen["notify"] = texts(review.history)

    options = {name: mode.colour(each) for name, each in (("notify", notify),)}
    failing(
        form, mode, checkpointer, 3,
        hooks=mode.colour(hook), reviewer=mode.colour(reviewer), **options,
    )  # fmt: skip
    expected = [*map(text, (1, 2, 3))]
    assert seen == {"hook": expected, "reviewer": expected, "notify": expected}


def test_a_call_that_goes_back_is_asked_about_the_old_output(form, mode, checkpointer):
    """The review of an earlier attempt shows what that one returned, and goes on from there."""
    graph = failing(form, mode, checkpointer, 4)
    back = {"type": "respond", "output": "wrong", "rewind": {"attempt": 2}}
    refused(mode, graph, thread(), back)
    answer(mode, graph, thread(), {"type": "approve", "rewind": {"attempt": 2}})
    (review,) = reviews(mode, graph, thread())
    assert texts(review.history) == [text(1), text(2), text(2)]
    assert review.raw_output.startswith('{"n": "2:')


def test_a_call_that_is_over_is_taken_up_with_all_it_had():
    """A rewind of a finished call goes on from its whole ledger, and ends with a whole one."""
    for change in ({"params": {"n": 9}}, {"decision": respond({"n": 1})}):
        graph = one_call("node", None, talker(), InMemorySaver(), max_attempts=20)
        graph.invoke({"params": {"n": 1}}, thread())
        for n in (2, 3, 9):
            answer(SYNC, graph, thread(), edit(n=n))
        state = rewind(graph, thread(), attempt=3, **change)
        assert texts(state["attempts"])[:2] == [text(1), text(2)]


def test_a_ledger_given_to_a_node_is_slimmed_too_and_comes_out_whole():
    """A node that goes on after given attempts leaves them where they were given."""
    first = failing("node", SYNC, InMemorySaver(), 3)
    answer(SYNC, first, thread(), respond({"n": 1}))
    given = first.get_state(thread()).values["attempts"]
    failed = [*given[:2], {**given[2], "decision": None}]

    saver = InMemorySaver()
    graph = one_call("node", None, talker(), saver, max_attempts=20)
    graph.invoke({"params": {"n": 4}, "attempts": failed}, thread())
    assert kept(in_state(SYNC, saver)) == [True, True, True, False]
    assert texts(answer(SYNC, graph, thread(), edit(n=9))["attempts"])[:4] == [
        *map(text, (1, 2, 3, 4))
    ]


def test_a_thread_that_was_saved_whole_goes_on(monkeypatch):
    """Records that an earlier version left whole in state are slimmed at the next attempt."""
    saver = InMemorySaver()
    with monkeypatch.context() as patch:
        patch.setattr(rules, "_SMALL", 10**9)
        graph = failing("node", SYNC, saver, 3)
    assert texts(in_state(SYNC, saver)) == [*map(text, (1, 2, 3))]
    answer(SYNC, graph, thread(), edit(n=4))
    assert kept(in_state(SYNC, saver)) == [True, True, True, False]
    assert texts(attempts_of(graph, thread())[0].attempts) == [*map(text, (1, 2, 3, 4))]


class _NewestOnly(InMemorySaver):
    """Keeps no checkpoint but the newest, as some savers do."""

    def put(self, config, checkpoint, metadata, new_versions):
        saved = super().put(config, checkpoint, metadata, new_versions)
        here = saved["configurable"]
        place = self.storage[here["thread_id"]][here["checkpoint_ns"]]
        for each in [each for each in place if each != here["checkpoint_id"]]:
            del place[each]
        return saved


def test_nothing_is_left_to_a_saver_that_keeps_no_history(form):
    """Where earlier checkpoints are not kept, every output stays in state."""
    saver = _NewestOnly()
    builder = StateGraph(State).add_node(
        "ask", create_retry_node(talker(), dict, output=dict[str, int], name="count")
    )
    graph = builder.add_edge(START, "ask").compile(checkpointer=saver)
    graph.invoke({"params": {"n": 1}}, thread())
    answer(SYNC, graph, thread(), edit(n=2))
    assert texts(in_state(SYNC, saver)) == [text(1), text(2)]


def test_nothing_is_left_to_a_checkpoint_that_is_not_saved():
    """With `durability="exit"` only a run's last checkpoint is, so outputs stay in state."""
    saver = InMemorySaver()
    node = create_retry_node(talker(), dict, output=dict[str, int], name="count")
    graph = node.copy({"checkpointer": saver})
    graph.invoke({"params": {"n": 1}}, thread(), durability="exit")
    answer(SYNC, graph, thread(), edit(n=2), durability="exit")
    assert texts(in_state(SYNC, saver)) == [text(1), text(2)]
    state = answer(SYNC, graph, thread(), edit(n=9), durability="exit")
    assert texts(state["attempts"])[:2] == [text(1), text(2)]


def test_nothing_is_slimmed_without_a_checkpointer_or_where_it_is_small(mode):
    """Short records are not worth a second look, and unsaved runs have nowhere to leave theirs."""
    hook = mode.colour(lambda error, attempt, params: {"n": params["n"] + 8})
    graph = one_call("node", mode, talker(), None, hook, auto_retries=1)
    assert texts(mode.invoke(graph, {"params": {"n": 1}})["attempts"]) == [text(1), '{"n": 9}']

    saver = InMemorySaver()
    graph = one_call("node", None, Model(lambda params: "no"), saver)
    graph.invoke({"params": {"n": 1}}, thread())
    answer(SYNC, graph, thread(), edit(n=2))
    assert texts(in_state(SYNC, saver)) == ["no", "no"]


def test_who_decided_an_earlier_review_is_told(form):
    """A late answer names who was first, read from where that attempt is."""
    saver = InMemorySaver()
    graph = failing(form, SYNC, saver, 1)
    (old,) = reviews(SYNC, graph, thread())
    for n in (2, 3, 4):
        answer(SYNC, graph, thread(), {**edit(n=n), "by": f"ada{n}"})
    with pytest.raises(StaleDecision, match="human:ada2 answered it"):
        resume(graph, thread(), answers={old.review_id: edit(n=9)})


def test_large_params_are_in_state_as_often_after_many_attempts(form):
    """Once as they are, once as the call was made with, whatever changed in between."""
    saver = InMemorySaver()
    params = {"n": 1, "document": "words " * 1_000}
    graph = one_call(form, SYNC, talker(), saver, max_attempts=20)
    graph.invoke({"params": params}, thread())
    for n in range(2, 6):
        answer(SYNC, graph, thread(), edit(n=n))
    assert json.dumps(in_state(SYNC, saver)).count(params["document"]) == 1
    (ledger,) = attempts_of(graph, thread())
    assert [ledger.params_at(n) for n in range(1, 6)] == [{**params, "n": n} for n in range(1, 6)]


def test_params_replaced_each_time_are_in_state_three_times_at_most(form):
    """What was between the first params and the last is where its attempt is."""
    saver = InMemorySaver()
    graph = one_call(form, SYNC, talker(), saver, max_attempts=20)
    graph.invoke({"params": {"n": 0, "document": "0" * 9_000}}, thread())
    for n in range(1, 6):
        answer(SYNC, graph, thread(), edit(n=n, document=str(n) * 9_000))
    assert len(json.dumps(in_state(SYNC, saver))) < 5 * 9_000
    (ledger,) = attempts_of(graph, thread())
    assert [ledger.params_at(n)["document"][0] for n in range(1, 7)] == [*"012345"]
