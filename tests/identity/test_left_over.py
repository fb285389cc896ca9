"""An answer that a cancelled run left in the thread never decides a question nobody has seen."""

import asyncio

import pytest
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

import graph_retry.threads
from graph_retry import aretry_llm_call, create_retry_node, edit, retry_llm_call
from tests.loops import Model, State, answer, one_call, reviews, thread

EDIT = {"type": "edit", "params": {"n": 1}}
AGAIN = {"type": "edit", "params": {"n": 7}}
"""What a person sends who cannot see that a further question has not been asked yet."""


class Crash(BaseException):
    """What ends a sync run in mid call, as Ctrl-C does."""


class Hanging:
    """A model that fails until `n` is 2, and in whose second call the run is cut off."""

    def __init__(self):
        self.made, self.is_over, self.begun = [], False, None

    def __call__(self, params):
        self.made.append(params["n"])
        if len(self.made) == 2:
            raise Crash
        return self.reach(params)

    async def acall(self, params):
        """Do the same, async: the second call hangs until it is cancelled."""
        self.made.append(params["n"])
        if len(self.made) == 2:
            self.begun.set()
            await asyncio.Event().wait()
        return self.reach(params)

    def reach(self, params):
        """Fail until `n` is 2."""
        if params["n"] < 2:
            raise ValueError(f"{params['n']} is too small")
        return f'{{"n": {params["n"]}}}'


def cut_off(mode, graph, model, resume):
    """Resume with an answer and cut the run off in the call that the answer makes."""
    if not mode.is_async:
        with pytest.raises(Crash):
            graph.invoke(Command(resume=resume), thread())
        return

    async def cancelled():
        model.begun = asyncio.Event()
        run = asyncio.create_task(graph.ainvoke(Command(resume=resume), thread()))
        await model.begun.wait()
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run

    mode.run(cancelled)


def go_on(mode, graph, how, interrupt_id):
    """Continue the thread in one of the ways a client has."""
    if how == "resume":
        answer(mode, graph, thread())
    elif how == "invoke(None)":
        mode.invoke(graph, None, thread())
    elif how == "by id":
        mode.invoke(graph, Command(resume={interrupt_id: AGAIN}), thread())
    else:
        mode.invoke(graph, Command(resume=AGAIN), thread())


@pytest.mark.parametrize("how", ["invoke(None)", "resume", "by id", "plain"])
@pytest.mark.parametrize("sent", ["plain", "by id"])
def test_an_answer_decides_no_further_question(form, mode, checkpointer, sent, how):
    """Protects the next question from the last answer: asked, with a reason, and no call is paid.

    The call that was cut off is made once more, and nothing else. An answer that is sent before
    the next question was asked cannot be meant for it either.
    """
    model = Hanging()
    llm_call = model.acall if mode.is_async else model.__call__
    graph = one_call(form, None if form == "node" else mode, llm_call, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (first,) = reviews(mode, graph, thread())
    cut_off(mode, graph, model, EDIT if sent == "plain" else {first.interrupt_id: EDIT})
    assert model.made == [0, 1]

    go_on(mode, graph, how, first.interrupt_id)

    assert model.made == [0, 1, 1]
    (second,) = reviews(mode, graph, thread())
    assert (second.attempt, second.params) == (2, {"n": 1})
    assert bool(second.problem) is (how in ("plain", "by id"))
    state = answer(
        mode, graph, thread(), answers={second.review_id: {"type": "edit", "params": {"n": 2}}}
    )
    assert state["output"] == {"n": 2}
    assert model.made == [0, 1, 1, 2]


@pytest.mark.parametrize("how", ["invoke(None)", "resume"])
def test_a_left_over_rejection_cancels_nothing(form, mode, checkpointer, how):
    """Protects a call whose answer was given to an earlier call of the same node or thread."""
    model = Hanging()
    llm_call = model.acall if mode.is_async else model.__call__
    graph = one_call(form, None if form == "node" else mode, llm_call, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    cut_off(mode, graph, model, EDIT)
    go_on(mode, graph, how, None)
    (second,) = reviews(mode, graph, thread())

    state = mode.invoke(graph, Command(resume={"type": "edit", "params": {"n": 2}}), thread())

    assert second.attempt == 2
    assert state["output"] == {"n": 2}
    assert model.made == [0, 1, 1, 2]


def test_a_plain_answer_is_given_once(mode, form, checkpointer):
    """LangGraph gives it to the next question again when the thread is run on without an answer."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": -2}}, thread())
    mode.invoke(graph, Command(resume={"type": "edit", "params": {"n": -1}}), thread())
    for _ in range(2):
        mode.invoke(graph, None, thread())
        (review,) = reviews(mode, graph, thread())
        assert (review.attempt, review.problem, len(model.calls)) == (2, None, 2)
    assert answer(mode, graph, thread(), EDIT)["output"] == {"n": 1}


def with_own_question(mode, model, saver, ends):
    """Build a node that makes a call and then asks a question of its own.

    Its run ends before the call as often as `ends` says.
    """
    options = {"output": dict[str, int], "name": "count"}

    def begin():
        if ends:
            raise ends.pop()

    async def anode(state):
        begin()
        output = await aretry_llm_call(mode.colour(model), state["params"], **options)
        return {"output": [output, interrupt("May it be sent?")]}

    def node(state):
        begin()
        output = retry_llm_call(model, state["params"], **options)
        return {"output": [output, interrupt("May it be sent?")]}

    graph = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    return graph.add_edge(START, "ask").compile(checkpointer=saver)


def streamed(mode, graph, decision):
    """Answer as `resume` does, and stream the run."""
    if mode.is_async:

        async def streaming():
            async with graph_retry.threads.aresumption(graph, thread(), decision) as given:
                return [part async for part in graph.astream(given, thread())]

        return mode.run(streaming)
    with graph_retry.threads.resumption(graph, thread(), decision) as given:
        return list(graph.stream(given, thread()))


@pytest.mark.parametrize(
    "answering", [streamed, lambda *given: answer(*given[:2], thread(), given[2])]
)
def test_a_left_over_answer_decides_no_question_of_the_node(mode, checkpointer, answering):
    """However the thread is run on, the answer of a run that was cut off is not given to others."""
    model, ends = Model(goal=5), []
    graph = with_own_question(mode, model, checkpointer, ends)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    ends.append(Crash())
    with pytest.raises(Crash):
        mode.invoke(graph, Command(resume=EDIT), thread())

    answering(mode, graph, edit(n=5))

    (asked,) = mode.call(graph, "get_state", thread()).interrupts
    assert asked.value == "May it be sent?"
    assert [params["n"] for params in model.calls] == [0, 5]
    state = mode.invoke(graph, Command(resume="yes"), thread())
    assert state["output"] == [{"n": 5}, "yes"]


COMMANDS = {
    "an update": Command(update={"params": {"n": 0}}),
    "two updates": Command(update={"params": {"n": 0}, "retry_output": None}),
    "a goto": Command(goto="review"),
    "an update and an answer": Command(update={"params": {"n": 0}}, resume={"0" * 32: "no"}),
}


@pytest.mark.parametrize(
    "commands", [*[[name] for name in COMMANDS], ["a goto", "two updates"]], ids=", then ".join
)
def test_an_answer_is_written_beside_commands_without_one(mode, checkpointer, commands):
    """LangGraph writes commands to a retry node that waits in the place where answers are written.

    Savers keep the first write of a number, and so an answer could be lost, each time again.
    """
    model = Model(goal=5)
    node = create_retry_node(mode.colour(model), dict, output=dict[str, int], name="count")
    graph = node.copy(update={"checkpointer": checkpointer})
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for name in commands:
        mode.invoke(graph, COMMANDS[name], thread())
    (review,) = reviews(mode, graph, thread())

    state = answer(mode, graph, thread(), answers={review.review_id: edit(n=5)})

    assert state["output"] == {"n": 5}
    assert [params["n"] for params in model.calls] == [0, 5]
    assert reviews(mode, graph, thread()) == []


@pytest.mark.parametrize("by_id", [False, True])
def test_an_answer_to_a_call_is_not_given_to_an_own_question_of_the_node(checkpointer, mode, by_id):
    """Nor to a question after one that was answered by its id."""
    options = {"output": dict[str, int], "name": "count"}
    model = Model(goal=1)

    async def anode(state):
        output = await aretry_llm_call(mode.colour(model), state["params"], **options)
        return {"output": [output, interrupt("To whom?"), interrupt("Send it?")]}

    def node(state):
        output = retry_llm_call(model, state["params"], **options)
        return {"output": [output, interrupt("To whom?"), interrupt("Send it?")]}

    builder = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    graph = builder.add_edge(START, "ask").compile(checkpointer=checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    def asked():
        (question,) = mode.call(graph, "get_state", thread()).interrupts
        return question

    for reply, then in ((EDIT, "To whom?"), ("Ada", "Send it?"), ("yes", None)):
        given = {asked().id: reply} if by_id and reply == "Ada" else reply
        state = mode.invoke(graph, Command(resume=given), thread())
        assert then is None or asked().value == then
    assert state["output"] == [{"n": 1}, "Ada", "yes"]
    assert len(model.calls) == 2


def test_a_plain_answer_of_a_run_that_crashed_is_gone_when_another_came(mode, checkpointer):
    """It was meant for the question that the newer answer, by id, has decided."""
    crashes, made = [], []

    def delete(params):
        made.append(params["what"])
        if "sure" not in params:
            raise ValueError("are you sure?")
        return params["what"]

    def begin():
        if crashes:
            raise crashes.pop()

    async def anode(state):
        begin()
        return {"output": [await aretry_llm_call(delete, {"what": w}) for w in "ab"]}

    def node(state):
        begin()
        return {"output": [retry_llm_call(delete, {"what": w}) for w in "ab"]}

    builder = StateGraph(State).add_node("ask", anode if mode.is_async else node)
    graph = builder.add_edge(START, "ask").compile(checkpointer=checkpointer)
    sure = {"type": "edit", "params": {"sure": True}}
    mode.invoke(graph, {}, thread())
    crashes.append(ConnectionError())
    with pytest.raises(ConnectionError):
        mode.invoke(graph, Command(resume=sure), thread())
    (review,) = reviews(mode, graph, thread())
    kept = {"type": "respond", "output": "kept"}
    mode.invoke(graph, Command(resume={review.interrupt_id: kept}), thread())

    mode.invoke(graph, None, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.params, review.problem, made) == ({"what": "b"}, None, ["a", "b"])
    assert answer(mode, graph, thread(), sure)["output"] == ["kept", "b"]


def test_a_bad_answer_by_id_is_refused_with_its_own_reason(form, mode, checkpointer):
    """The question that is asked again is not taken for one after the answer."""
    model = Model()
    graph = one_call(form, mode, model, checkpointer)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    for bad in ("maybe", "perhaps"):
        (review,) = reviews(mode, graph, thread())
        mode.invoke(graph, Command(resume={review.interrupt_id: bad}), thread())
        (again,) = reviews(mode, graph, thread())
        assert bad in again.problem
        assert again.review_id != review.review_id
    assert len(model.calls) == 1
