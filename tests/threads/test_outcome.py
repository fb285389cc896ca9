"""Whoever answers from Python is told what became of it, and may stream the run."""

import asyncio
import json
from functools import partial

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import EmptyInputError
from langgraph.graph import START, StateGraph

import graph_retry
import graph_retry.threads
from graph_retry import (
    AnswerRefused,
    ReplayMismatch,
    StaleDecision,
    apending_reviews,
    aresume,
    aretry_llm_call,
    create_retry_node,
    edit,
    pending_reviews,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.threads import inbox
from graph_retry.threads import list_reviews
from tests.loops import (
    Model,
    State,
    answer,
    fan_out,
    gathered,
    one_call,
    refused,
    reviews,
    thread,
)


def waiting(form, mode, model, saver=None, **options):
    """Return a graph whose call waits for its first answer."""
    graph = one_call(form, mode, model, saver or InMemorySaver(), **options)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    return graph


def test_of_several_answers_the_refused_ones_are_told(mode):
    """One branch goes on, one asks again: told with its id and reason, and the applied ones."""
    model = Model()
    graph = fan_out("node", mode, model, InMemorySaver(), width=3)
    mode.invoke(graph, {}, thread())
    first, second, third = (each.review_id for each in reviews(mode, graph, thread()))

    told = refused(mode, graph, thread(), answers={first: edit(n=1), second: edit(m=1, n="x")})
    left = {each.review_id: each.problem for each in reviews(mode, graph, thread())}

    assert set(left) == {third, *told.review_ids}
    assert told.message == (
        f"The answer to {second!r} (`count`): {left[told.review_ids[0]]}\n"
        f"Applied: the answer to {first!r} (`count`)."
    )
    assert told.reasons == {second: left[told.review_ids[0]]}
    assert left[third] is None
    assert len(model.calls) == 4


def test_an_answer_is_told_to_be_refused_where_another_question_is_shown_first():
    """A plain `asyncio.gather` stops at its other call: the thread shows that one's question."""
    model = Model()
    graph = gathered(model, InMemorySaver(), 2, asyncio.gather)

    async def review():
        await graph.ainvoke({}, thread())
        (first,) = await apending_reviews(graph, thread())
        with pytest.raises(AnswerRefused, match="output is not valid") as told:
            await first.aanswer(respond("many"))
        (shown,) = await apending_reviews(graph, thread())
        assert shown.params["item"] != first.params["item"]
        (again,) = told.value.review_ids
        with pytest.raises(StaleDecision, match=f"asked again as review '{again}'"):
            await first.aanswer(respond({"n": 1}))
        with pytest.raises(StaleDecision, match="does not show it yet: answer the open reviews"):
            await aresume(graph, thread(), answers={again: respond({"n": 1})})
        await shown.aanswer(respond({"n": 2}))
        return await aresume(graph, thread(), answers={again: respond({"n": 1})})

    assert asyncio.run(review())["results"] == [{"n": 1}, {"n": 2}]
    assert len(model.calls) == 2


def test_an_answer_to_a_question_that_is_asked_again_names_the_new_one(form, mode):
    """Whoever sends it once more, mended, is told where to."""
    model = Model()
    graph = waiting(form, mode, model)
    (review,) = reviews(mode, graph, thread())
    again = []
    for _ in range(2):
        again += refused(mode, graph, thread(), respond("many")).review_ids
    for old in (review.review_id, again[0]):
        with pytest.raises(StaleDecision, match=f"asked again as review '{again[1]}'"):
            answer(mode, graph, thread(), answers={old: edit(n=1)})
    assert answer(mode, graph, thread(), answers={again[1]: edit(n=1)})["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_a_later_attempt_that_fails_is_no_refusal(form, mode):
    """The edit was applied: what the model made of it is the next question."""
    model = Model(goal=2)
    graph = waiting(form, mode, model)
    answer(mode, graph, thread(), edit(n=1))
    (review,) = reviews(mode, graph, thread())
    assert (review.attempt, review.problem, len(model.calls)) == (2, None, 2)


def test_a_review_goes_through_an_endpoint_and_back(form, mode):
    """Its JSON has the ids an answer needs, and what may be decided."""
    model = Model()
    graph = waiting(form, mode, model, allowed_decisions=["edit", "reject"])
    (shown,) = (json.loads(json.dumps(each.to_json())) for each in list_reviews(graph))
    assert shown["allowed_decisions"] == ["edit", "reject"]
    sent = {shown["review_id"]: {"type": "edit", "params": {"n": 1}}}
    assert answer(mode, graph, thread(shown["thread_id"]), answers=sent)["output"] == {"n": 1}


@pytest.mark.parametrize("version", ["v1", "v2"])
def test_the_run_of_an_answer_is_streamed_under_the_lock(form, mode, version):
    """Its steps and events are seen; meanwhile nobody else may answer, and afterwards they may."""
    graph = waiting(form, mode, Model(goal=2))
    name = "aresumption" if mode.is_async else "resumption"
    resumption = getattr(graph_retry.threads, name)
    options = {"stream_mode": ["updates", "custom"], "subgraphs": True, "version": version}

    async def astream():
        async with resumption(graph, thread(), edit(n=1)) as given:
            parts = [part async for part in graph.astream(given, thread(), **options)]
            with pytest.raises((TimeoutError, StaleDecision)):
                await graph_retry.aresume(graph, thread(), wait=0.0)
            return parts

    def stream():
        with resumption(graph, thread(), edit(n=1)) as given:
            parts = list(graph.stream(given, thread(), **options))
            with pytest.raises((TimeoutError, StaleDecision)):
                resume(graph, thread(), wait=0.0)
            return parts

    parts = mode.run(astream) if mode.is_async else stream()
    kinds = {part["type"] if version == "v2" else part[1] for part in parts}
    assert kinds == {"updates", "custom"}
    assert answer(mode, graph, thread(), edit(n=2))["output"] == {"n": 2}


@pytest.mark.filterwarnings("ignore:The v3 streaming protocol on Pregel is experimental")
def test_the_run_of_an_answer_is_seen_as_v3_events_under_the_lock(form, mode):
    """LangGraph's own run object tells whether the answer ended the call; one more call is made."""
    model = Model(goal=2)
    graph = waiting(form, mode, model)
    name = "aresumption" if mode.is_async else "resumption"
    resumption = getattr(graph_retry.threads, name)

    async def aevents(n):
        async with resumption(graph, thread(), edit(n=n)) as given:
            run = await graph.astream_events(given, thread(), version="v3")
            methods = {event["method"] async for event in run}
            with pytest.raises((TimeoutError, StaleDecision)):
                await graph_retry.aresume(graph, thread(), wait=0.0)
            return methods, await run.interrupted(), await run.output()

    def events(n):
        with resumption(graph, thread(), edit(n=n)) as given:
            run = graph.stream_events(given, thread(), version="v3")
            methods = {event["method"] for event in run}
            with pytest.raises((TimeoutError, StaleDecision)):
                resume(graph, thread(), wait=0.0)
            return methods, run.interrupted, run.output

    for n in (1, 2):
        methods, interrupted, output = mode.run(partial(aevents, n)) if mode.is_async else events(n)
        assert {"values", "lifecycle"} <= methods
        assert interrupted == (n == 1)
    assert output["output"] == {"n": 2}
    assert len(model.calls) == 3


def test_a_streamed_answer_that_is_refused_is_told_at_the_end():
    """What is raised inside the block passes, and frees the thread, too."""
    model = Model()
    graph = one_call("node", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    with (
        pytest.raises(AnswerRefused, match="expects a number"),
        graph_retry.threads.resumption(graph, thread(), edit(n="many")) as given,
    ):
        list(graph.stream(given, thread()))
    with pytest.raises(KeyError), graph_retry.threads.resumption(graph, thread()):
        raise KeyError
    assert resume(graph, thread(), edit(n=1))["output"] == {"n": 1}
    assert len(model.calls) == 2


def test_a_block_without_a_run_or_of_the_wrong_form_is_told():
    """The answer of a block without a run is saved: `resume` applies it."""
    model = Model()
    graph = one_call("node", None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    told = "No run has used your answer to `.*`, which is saved: run the graph with the input"
    with (
        pytest.raises(AnswerRefused, match=told),
        graph_retry.threads.resumption(graph, thread(), edit(n=1)),
    ):
        pass
    assert len(model.calls) == 1
    assert resume(graph, thread())["output"] == {"n": 1}

    async def in_async_code():
        async with graph_retry.threads.resumption(graph, thread()):
            pass

    with pytest.raises(TypeError, match=r"write `async with aresumption\(…\)"):
        asyncio.run(in_async_code())
    with pytest.raises(TypeError, match="`aresumption` is async: write `async with"):
        graph_retry.threads.aresumption(graph, thread()).__enter__()


def test_a_thread_that_is_not_there_is_told_as_that(form, mode):
    """A mistyped id, a deleted thread, another database: there is nothing to go on with."""
    graph = waiting(form, mode, Model())
    with pytest.raises(
        EmptyInputError, match=r"thread 'typo' has no checkpoint to continue from.*start it"
    ):
        answer(mode, graph, thread("typo"))
    with pytest.raises(StaleDecision, match="'typo' has no open review"):
        answer(mode, graph, thread("typo"), edit(n=1))
    assert [review.thread_id for review in mode.call(inbox, "list_reviews", graph)] == ["1"]


def node_of(model, node="ask", **options):
    """Return a function that compiles a graph of a retry node."""
    retry = create_retry_node(model, dict, output=dict[str, int], **options)
    return StateGraph(State).add_node(node, retry).add_edge(START, node)


def call_of(model, **options):
    """Return a graph whose node makes a call."""

    def ask(state):
        return {"output": retry_llm_call(model, state["params"], output=dict[str, int], **options)}

    return StateGraph(State).add_node("ask", ask).add_edge(START, "ask")


@pytest.mark.parametrize(
    ("before", "after", "kind", "told"),
    [
        (node_of, lambda model: node_of(model, "extract"), StaleDecision, "waits in node `ask`"),
        (
            node_of,
            lambda model: node_of(model, keys={"attempts": "tries"}),
            ReplayMismatch,
            "`tries`: if it was renamed in `keys=`",
        ),
    ],
    ids=["node", "state key"],
)
def test_what_was_renamed_while_a_review_waited_is_named(before, after, kind, told):
    """The error says what to give its old name back; then the same answer is taken."""
    saver, model = InMemorySaver(), Model()
    graph = before(model).compile(checkpointer=saver)
    graph.invoke({"params": {"n": 0}}, thread())
    (review,) = pending_reviews(graph, thread())
    made = len(model.calls)
    with pytest.raises(kind, match=told):
        resume(after(model).compile(checkpointer=saver), thread(), edit(n=1))
    if kind is StaleDecision:
        assert len(model.calls) == made
        assert resume(graph, thread(), answers={review.review_id: edit(n=1)})["output"] == {"n": 1}


def test_the_answer_to_a_call_whose_key_was_renamed_is_kept_for_it():
    """An error says so; the call with the new key asks, and under its old key the first goes on."""
    saver, model = InMemorySaver(), Model()
    graphs = {key: call_of(model, key=key).compile(checkpointer=saver) for key in "ab"}
    graphs["a"].invoke({"params": {"n": 0}}, thread())
    with pytest.raises(AnswerRefused, match=r"did not make the call of `Model`, .* is kept"):
        resume(graphs["b"], thread(), edit(n=1))
    assert [each.attempt for each in pending_reviews(graphs["b"], thread())] == [1]

    assert resume(graphs["a"], thread())["output"] == {"n": 1}
    assert [params["n"] for params in model.calls] == [0, 0, 1]


@pytest.mark.parametrize("part", ["key", "value"])
def test_half_a_character_anywhere_in_an_answer_is_refused_in_words(form, part):
    """In a key, too, where no storage keeps it."""
    graph = one_call(form, None, Model(goal=1), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    params = {"a\ud800": 1} if part == "key" else {"n": "\ud800"}

    with pytest.raises(AnswerRefused, match="half a character"):
        resume(graph, thread(), {"type": "edit", "params": params})

    assert resume(graph, thread(), edit(n=1))["output"] == {"n": 1}


@pytest.mark.parametrize("as_text", [False, True], ids=["object", "text"])
def test_an_integer_beyond_64_bits_is_judged_like_any_other(form, as_text):
    """Graph state holds no such integer, so the answer is kept as text until it is judged."""
    model = Model(lambda params: "{" if params["n"] == 0 else '{"n": 1}')
    graph = one_call(form, None, model, InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())
    output, params = respond({"n": 2**64}), edit(n=[-(2**63) - 1])

    with pytest.raises(AnswerRefused, match="holds integers of 64 bits"):
        resume(graph, thread(), json.dumps(output) if as_text else output)
    resume(graph, thread(), json.dumps(params) if as_text else params)

    assert model.calls[-1] == {"n": [-(2**63) - 1]}


def test_what_a_refusal_quotes_cannot_turn_its_line():
    """Marks of the writing direction are spelled by their numbers."""
    graph = one_call("node", None, Model(goal=1), InMemorySaver())
    graph.invoke({"params": {"n": 0}}, thread())

    with pytest.raises(AnswerRefused) as refused:
        resume(graph, thread(), {"type": "ed\u202ei\x85\u2028t"})

    assert r"ed\u202ei\x85\u2028t" in str(refused.value)


def test_of_several_refused_answers_each_is_named_by_the_id_that_was_sent(mode):
    """Two people's answers in one `resume`."""
    graph = fan_out("node", mode, Model(goal=9), InMemorySaver(), width=2)
    mode.invoke(graph, {"results": []}, thread())
    open_ = reviews(mode, graph, thread())

    with pytest.raises(AnswerRefused) as refused:
        answer(mode, graph, thread(), answers={each.review_id: {"type": "x"} for each in open_})

    assert all(
        f"The answer to '{each.review_id}' (`count`)" in str(refused.value) for each in open_
    )


def test_a_sync_resume_of_an_async_graph_says_that_the_answer_is_saved():
    """The next run needs no decision."""

    async def ask(state: State) -> State:
        output = await aretry_llm_call(model, state["params"], output=dict[str, int])
        return {"output": output}

    model = Model(goal=1)
    graph = StateGraph(State).add_node("ask", ask).set_entry_point("ask")
    graph = graph.compile(checkpointer=InMemorySaver())
    asyncio.run(graph.ainvoke({"params": {"n": 0}}, thread()))

    with pytest.raises(TypeError, match=r"answer is saved.*without a decision"):
        resume(graph, thread(), edit(n=1))

    assert asyncio.run(aresume(graph, thread()))["output"] == {"n": 1}
