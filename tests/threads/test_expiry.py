"""Deadlines: a review that nobody answers in time gets its default decision, once."""

import threading
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from graph_retry import (
    AnswerRefused,
    CallCancelled,
    StaleDecision,
    accept,
    approve,
    comment,
    create_retry_node,
    edit,
    reject,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.threads import expiry, inbox
from graph_retry._core.threads.answers import resumption
from graph_retry.threads import assign, defer
from tests.loops import Model, State, answer, fan_out, one_call, refused, reviews, thread
from tests.threads.threads import ends_before_its_run

LATER = timedelta(hours=2)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until a test moves it."""

    class Clock:
        now = datetime(2027, 3, 3, 12, tzinfo=UTC)

    # The others take their clock from the last one when they are imported.
    for module in (
        "_core.loop.review",
        "_core.loop.after_attempt",
        "_core.threads.answers.sent",
        "_core.review.deadline",
    ):
        read = lambda: Clock.now.isoformat(timespec="milliseconds")  # noqa: E731
        monkeypatch.setattr(f"graph_retry.{module}.now", read)

    def seconds():
        return Clock.now.timestamp()

    times = SimpleNamespace(**{**vars(time), "time": seconds})
    monkeypatch.setattr("langgraph.pregel._retry.time", times)
    return Clock


def sweep(mode, source):
    """Expire reviews in the mode's way."""
    return mode.call(expiry, "expire_reviews", source)


def waiting(form, mode, saver, model=None, **options):
    """Return a graph whose one thread waits for at most an hour."""
    graph = one_call(form, mode, model or Model(), saver, expires_after=3600, **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    return graph


def test_the_question_tells_its_deadline(form, mode, clock):
    """Every client can show it: in the payload, on the review, in the description."""
    graph = waiting(form, mode, InMemorySaver())
    (review,) = reviews(mode, graph, thread())
    assert review.asked_at == "2027-03-03T12:00:00.000+00:00"
    assert review.expires_at == review.value["expires_at"] == "2027-03-03T13:00:00.000+00:00"
    assert review.expires_at in review.value["description"]

    clock.now += timedelta(minutes=30)
    refused(mode, graph, thread(), "perhaps")
    (again,) = reviews(mode, graph, thread())
    assert again.problem
    assert again.expires_at == review.expires_at, "a bad answer does not prolong the wait"


@pytest.mark.parametrize(
    ("default", "status", "calls", "told"),
    [
        pytest.param(None, "cancelled", 1, "nobody answered in time", id="reject"),
        pytest.param(reject("too late"), "cancelled", 1, "too late", id="reject with a reason"),
        pytest.param(respond({"n": 7}), "succeeded", 1, None, id="respond"),
        pytest.param(approve(), "succeeded", 2, None, id="approve the suggestion"),
        pytest.param(edit(n=4), "succeeded", 2, None, id="edit"),
    ],
)
def test_a_sweep_applies_the_default_decision_once(
    mode, checkpointer, clock, default, status, calls, told
):
    """It is the system's decision, on the record, and a second sweep finds nothing."""
    model = Model()
    options = {} if default is None else {"default_decision": default}
    graph = waiting("node", mode, checkpointer, model, hooks=lambda *_: {"n": 1}, **options)
    assert sweep(mode, graph) == []
    clock.now += LATER
    (ended,) = sweep(mode, graph)
    assert ended.thread_id == "1"
    assert sweep(mode, graph) == []

    state = mode.call(graph, "get_state", thread()).values
    decision = state["attempts"][0]["decision"]
    assert (state["status"], len(model.calls)) == (status, calls)
    assert (decision["author"], decision["channel"]) == ("system", "system")
    assert decision.get("message") == told
    if calls == 2:
        assert state["attempts"][1]["author"] == "system"


def test_a_late_answer_is_not_taken_and_its_sender_is_told(form, mode, checkpointer, clock):
    """The default decision stands, whoever comes first: the sweep or the late answer."""
    model = Model()
    graph = waiting(form, mode, checkpointer, model, default_decision=respond({"n": 7}))
    clock.now += LATER
    with pytest.raises(StaleDecision, match="expired at 2027-03-03T13:00"):
        answer(mode, graph, thread(), edit(n=3))
    assert mode.call(graph, "get_state", thread()).values["output"] == {"n": 7}
    assert model.calls == [{"n": 0}]
    with pytest.raises(StaleDecision, match="system answered it at 2027-03-03T14:00"):
        answer(mode, graph, thread(), edit(n=3))


@pytest.mark.parametrize("default", [None, reject(), reject("too late")])
def test_a_late_answer_is_told_so_if_the_default_rejects(form, mode, checkpointer, clock, default):
    """The function form raises `CallCancelled` in the run, which is not the sender's doing."""
    options = {} if default is None else {"default_decision": default}
    graph = waiting(form, mode, checkpointer, Model(), **options)
    clock.now += LATER
    with pytest.raises(StaleDecision, match="expired at 2027-03-03T13:00") as caught:
        answer(mode, graph, thread(), edit(n=3))
    if form == "function":
        assert "was cancelled by `default_decision` after 1 attempt" in str(caught.value)
        assert "reviewer" not in str(caught.value)
        assert isinstance(caught.value.__cause__, CallCancelled)


def test_a_late_answer_is_told_so_if_its_run_is_streamed(clock):
    """The block of `resumption` ends with the same error as `resume`."""
    graph = one_call("function", None, Model(), InMemorySaver(), expires_after=3600)
    graph.invoke({"params": {"n": 0}}, thread())
    clock.now += LATER
    with (
        pytest.raises(StaleDecision, match="expired"),
        resumption.resumption(graph, thread(), edit(n=3)) as given,
    ):
        list(graph.stream(given, thread()))


def test_a_late_plain_command_gets_the_default_too(form, mode, checkpointer, clock):
    """What clients send straight to LangGraph is held against the clock as well."""
    model = Model()
    graph = waiting(form, mode, checkpointer, model, default_decision=respond({"n": 7}))
    clock.now += LATER
    mode.invoke(graph, Command(resume={"type": "edit", "params": {"n": 3}}), thread())
    assert mode.call(graph, "get_state", thread()).values["output"] == {"n": 7}
    assert model.calls == [{"n": 0}]


@pytest.mark.parametrize("way", ["resume", "command"])
@pytest.mark.parametrize("place", ["before the call", "in the call"])
def test_an_answer_given_in_time_counts_however_long_it_takes(mode, clock, way, place):
    """The deadline passes in the node's own code or in the model: what was applied is told."""

    def model(params):
        if params["n"] and place == "in the call":
            clock.now += LATER
        return '{"n": 3}' if params["n"] else "no JSON"

    def ask(state):
        if runs and place == "before the call":
            clock.now += LATER
        runs.append(state)
        options = {"output": dict[str, int], "expires_after": 3600}
        return {"output": retry_llm_call(model, state["params"], **options)}

    runs = []
    graph = StateGraph(State).add_node("ask", ask).add_edge(START, "ask").compile(InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    if way == "resume":
        state = answer(mode, graph, thread(), edit(n=3))
    else:
        state = mode.invoke(graph, Command(resume=edit(n=3)), thread())

    assert state["output"] == {"n": 3}


def test_an_answer_given_in_time_counts_after_a_crash(mode, checkpointer, clock):
    """It was written down before the deadline; that it is applied later is not its sender's."""
    graph = waiting("node", mode, checkpointer)
    with ends_before_its_run(mode, graph):
        answer(mode, graph, thread(), edit(n=3))
    clock.now += LATER
    assert sweep(mode, graph) == []
    assert mode.call(graph, "get_state", thread()).values["output"] == {"n": 3}


def test_a_default_of_a_sweep_that_crashed_is_no_answer_of_a_human(form, mode, clock):
    """Whoever answers then is told who was first, and the thread is run on with the default."""
    graph = waiting(form, mode, InMemorySaver(), default_decision=respond({"n": 7}))
    (review,) = reviews(mode, graph, thread())
    clock.now += LATER
    with ends_before_its_run(mode, graph):
        sweep(mode, graph)
    with pytest.raises(StaleDecision, match="system answered it"):
        answer(mode, graph, thread(), answers={review.review_id: edit(n=3)})
    assert answer(mode, graph, thread())["output"] == {"n": 7}


@pytest.mark.parametrize("crashed", ["sweep", "resume"])
def test_the_next_sweep_runs_on_what_died_before_its_run(form, mode, checkpointer, clock, crashed):
    """An answer that was saved and not applied is due, whether or not the review had a deadline."""
    model = Model()
    options = {"expires_after": 3600, "default_decision": respond({"n": 7})}
    graph = one_call(form, mode, model, checkpointer, **(options if crashed == "sweep" else {}))
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    clock.now += LATER
    with ends_before_its_run(mode, graph):
        sweep(mode, graph) if crashed == "sweep" else answer(mode, graph, thread(), edit(n=3))
    assert mode.call(inbox, "list_reviews", graph) == []
    assert [each.thread_id for each in sweep(mode, graph)] == (["1"] if crashed == "sweep" else [])
    output = {"n": 7} if crashed == "sweep" else {"n": 3}
    assert mode.call(graph, "get_state", thread()).values["output"] == output
    assert len(model.calls) == (1 if crashed == "sweep" else 2)
    assert sweep(mode, graph) == []


def test_an_early_expiry_is_asked_again(clock):
    """Nobody can end a review before its time by saying that it is over."""
    graph = one_call("node", None, Model(), InMemorySaver(), expires_after=3600)
    graph.invoke({"params": {"n": 0}}, thread())
    with pytest.raises(AnswerRefused, match="expire"):
        resume(graph, thread(), {"type": "expire"})
    assert graph.get_state(thread()).next == ("ask",)


def test_a_default_that_is_not_possible_any_more_ends_the_call(clock):
    """Approving by default calls once more, and then stops: the last attempt is a person's."""
    model = Model(goal=9)
    options = {"expires_after": 3600, "default_decision": approve(), "max_attempts": 3}
    graph = one_call("node", None, model, InMemorySaver(), **options)
    graph.invoke({"params": {"n": 0}}, thread())
    for _ in range(2):
        clock.now += LATER
        assert len(expiry.expire_reviews(graph)) == 1
    state = graph.get_state(thread()).values
    assert (state["status"], len(model.calls)) == ("cancelled", 2)
    assert "failed in the same way" in state["attempts"][1]["decision"]["message"]


def test_two_sweeps_at_once_end_each_review_once(tmp_path, clock):
    """Sweepers may overlap: each of ten reviews is ended by one of them."""
    from langgraph.checkpoint.sqlite import SqliteSaver

    model, ended = Model(), []
    start = threading.Barrier(2)

    def sweeper():
        with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as own:
            start.wait()
            ended.extend(expiry.expire_reviews(build(own)))

    def build(saver):
        options = {"expires_after": 3600, "default_decision": edit(n=1)}
        return one_call("node", None, model, saver, **options)

    with SqliteSaver.from_conn_string(str(tmp_path / "db.sqlite")) as saver:
        graph = build(saver)
        for number in range(10):
            graph.invoke({"params": {"n": 0}}, thread(str(number)))
        clock.now += LATER
        sweepers = [threading.Thread(target=sweeper) for _ in range(2)]
        for each in sweepers:
            each.start()
        for each in sweepers:
            each.join()
        assert sorted(review.thread_id for review in ended) == sorted(map(str, range(10)))
        assert len(model.calls) == 20


def test_one_thread_that_fails_does_not_hold_up_the_others(clock):
    """Every expired review gets its turn; what went wrong is raised at the end."""

    def call(params):
        return f'{{"n": {params["n"]}}}' if params["n"] and "bad" not in params else "no"

    options = {"expires_after": 3600, "default_decision": edit(n=1), "output": dict[str, int]}
    saver = InMemorySaver()

    def hook(error, attempt, params):
        if params.get("bad") and attempt == 2:
            raise RuntimeError("a bug of the user's")

    graph = one_call("node", None, call, saver, hook, **options)
    for number in range(3):
        params = {"n": 0, "bad": True} if number == 1 else {"n": 0}
        graph.invoke({"params": params}, thread(str(number)))
    clock.now += LATER
    with pytest.raises(ExceptionGroup) as caught:
        expiry.expire_reviews(graph)
    assert [type(error) for error in caught.value.exceptions] == [RuntimeError]
    for number in (0, 2):
        assert graph.get_state(thread(str(number))).values["status"] == "succeeded"


def test_a_rejection_by_default_is_no_error_of_the_sweep(form, mode, clock):
    """The function form raises `CallCancelled` in its own thread; the sweep names what it ended."""
    graph = waiting(form, mode, InMemorySaver())
    mode.invoke(graph, {"params": {"n": 0}}, thread("2"))
    clock.now += LATER
    assert {review.thread_id for review in sweep(mode, graph)} == {"1", "2"}
    assert mode.call(inbox, "list_reviews", graph) == []


def test_branches_that_are_rejected_by_default_are_named_once(mode, clock):
    """Where one branch is cancelled its neighbours may wait on, for the next sweep."""
    graph = fan_out("function", mode, Model(), InMemorySaver(), width=3, expires_after=3600)
    mode.invoke(graph, {}, thread())
    asked = {review.review_id for review in mode.call(inbox, "list_reviews", graph)}
    clock.now += LATER
    swept = []
    while ended := sweep(mode, graph):
        swept += [review.review_id for review in ended]
    assert (len(swept), set(swept)) == (3, asked)


@pytest.mark.parametrize(
    ("default", "needle"),
    [(edit(modle="large"), "Did you mean `model`"), (comment("again"), "no prompt or messages")],
)
def test_a_default_that_does_not_fit_the_params_is_refused_before_the_call(default, needle):
    """The fields of plain dicts are known only when the call is made."""
    model = Model()
    options = {"expires_after": 1, "default_decision": default, "output": dict[str, int]}
    graph = one_call("function", None, model, InMemorySaver(), **options)
    with pytest.raises(ValueError, match=needle):
        graph.invoke({"params": {"n": 0, "model": "small"}}, thread())
    assert model.calls == []


@pytest.mark.parametrize(
    ("options", "needle"),
    [
        ({"expires_after": 0}, "`expires_after`"),
        ({"expires_after": "an hour"}, "`expires_after`"),
        ({"default_decision": reject()}, "`default_decision` needs `expires_after`"),
        ({"expires_after": 1, "default_decision": {"type": "give up"}}, "`default_decision"),
        ({"expires_after": 1, "default_decision": respond("no")}, "not valid"),
        ({"expires_after": 1, "default_decision": accept()}, "`allowed_decisions` leaves out"),
        (
            {"expires_after": 1, "default_decision": defer("2090-01-01")},
            "would leave the review open",
        ),
        ({"expires_after": 1, "default_decision": assign("ada")}, "would leave the review open"),
        ({"expires_after": 1e12}, "at most 1_000_000_000"),
        ({"expires_after": float("inf")}, "`expires_after`: give a number of seconds"),
        ({"timeout": 1e300}, "`timeout`: give a number of seconds"),
        ({"expires_after": 1, "default_decision": edit(n=1), "locked": ["n"]}, "`n`, which is"),
    ],
)
def test_wrong_deadlines_are_refused_before_anything_runs(options, needle):
    """A default that could not be applied is an error today, not at 2 a.m."""
    for make in (
        lambda: create_retry_node(Model(), dict, output=int, **options),
        lambda: retry_llm_call(lambda _: "1", {}, output=int, **options),
    ):
        with pytest.raises(ValueError, match=needle):
            make()
