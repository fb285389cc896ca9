"""A person sees a valid output before it is used, tells the model something, or overrules."""

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint

from graph_retry import (
    CallCancelled,
    accept,
    approve,
    comment,
    edit,
    reject,
    respond,
    resume,
    retry_llm_call,
)
from graph_retry._core.threads import history
from graph_retry.data import summarize
from tests.loops import Model, answer, one_call, refused, reviews, thread

PARAMS = {"prompt": "count", "n": 1}


def of_prompt(params):
    """Answer with `n`, and with as many comments as the prompt quotes."""
    return f'{{"n": {params["n"]}, "told": {params["prompt"].count("says:")}}}'


@pytest.mark.parametrize(
    ("decision", "calls", "output"),
    [
        (approve(), 1, {"n": 1, "told": 0}),
        ("accept", 1, {"n": 1, "told": 0}),
        ([{"type": "accept", "args": None}], 1, {"n": 1, "told": 0}),
        ({"decisions": [{"type": "approve"}]}, 1, {"n": 1, "told": 0}),
        (respond({"n": 7}), 1, {"n": 7}),
        (edit(n=2), 2, {"n": 2, "told": 0}),
        ({"action": "retry"}, 2, {"n": 1, "told": 0}),
        (comment("count again"), 2, {"n": 1, "told": 1}),
        ([{"type": "response", "args": "count again"}], 2, {"n": 1, "told": 1}),
    ],
)
def test_a_valid_output_waits_for_approval(mode, form, decision, calls, output):
    """Approving takes what is shown without a call; what calls again is shown again."""
    model = Model(of_prompt)
    graph = one_call(form, mode, model, InMemorySaver(), review="always")
    state = mode.invoke(graph, {"params": PARAMS}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.failure, review.error) == (None, "")
    assert review.output == {"n": 1, "told": 0}
    assert "output" not in state
    state = answer(mode, graph, thread(), decision)
    assert len(model.calls) == calls
    if calls == 2:
        (review,) = reviews(mode, graph, thread())
        assert review.attempt == 2
        state = answer(mode, graph, thread(), approve())
    assert (len(model.calls), state["output"]) == (calls, output)
    assert reviews(mode, graph, thread()) == []


@pytest.mark.parametrize("decision", [reject("not now"), {"action": "cancel"}, False])
def test_a_rejected_valid_output_is_nobody_s(form, decision, mode):
    """A rejection ends the call without an output, in the node form as its status."""
    graph = one_call(form, mode, Model(of_prompt), InMemorySaver(), review="always")
    mode.invoke(graph, {"params": PARAMS}, thread())
    if form == "function":
        with pytest.raises(CallCancelled, match="cancelled by a reviewer"):
            answer(mode, graph, thread(), decision)
    else:
        state = answer(mode, graph, thread(), decision)
        assert (state["output"], state["status"]) == (None, "cancelled")


def test_a_function_chooses_which_outputs_are_reviewed(mode):
    """It is asked once for each valid attempt, and failures are reviewed as ever."""
    asked = []

    def over_one(attempt):
        asked.append(attempt["number"])
        return attempt["parsed"]["value"]["n"] > 1

    model = Model(lambda params: params["n"] and f'{{"n": {params["n"]}}}')
    review = mode.colour(over_one)
    graph = one_call("node", mode, model, InMemorySaver(), review=review)
    assert mode.invoke(graph, {"params": {"n": 1}}, thread("a"))["output"] == {"n": 1}
    mode.invoke(graph, {"params": {"n": 0}}, thread("b"))
    assert reviews(mode, graph, thread("b"))[0].failure["kind"] == "invalid_schema"
    answer(mode, graph, thread("b"), edit(n=2))
    assert reviews(mode, graph, thread("b"))[0].failure is None
    assert answer(mode, graph, thread("b"), approve())["output"] == {"n": 2}
    assert asked == [1, 2]


def test_an_output_without_a_type_is_approved_as_it_is(mode):
    """A message with tool calls is shown as JSON, and the message itself is what comes out."""
    calls = [{"name": "send", "args": {"to": "Ada"}, "id": "1", "type": "tool_call"}]
    message = AIMessage("I will.", tool_calls=calls, id="m")
    graph = one_call(
        "function", mode, Model(lambda _: message), InMemorySaver(), output=None, review="always"
    )
    mode.invoke(graph, {"params": PARAMS}, thread())
    (review,) = reviews(mode, graph, thread())
    shown = {"text": "I will.", "tool_calls": [{"name": "send", "args": {"to": "Ada"}}]}
    assert review.output == shown
    assert answer(mode, graph, thread(), approve())["output"] == message


def test_the_last_attempt_may_still_be_approved(mode):
    """No attempt is needed for that, so it stays possible when none is left."""
    graph = one_call(
        "node", mode, Model(of_prompt), InMemorySaver(), review="always", max_attempts=1
    )
    mode.invoke(graph, {"params": PARAMS}, thread())
    (review,) = reviews(mode, graph, thread())
    offered = review.value["review_configs"][0]["allowed_decisions"]
    assert offered == ["approve", "reject", "respond"]
    assert answer(mode, graph, thread(), approve())["status"] == "succeeded"


def test_an_agent_approves_before_a_person_is_asked(mode):
    """Reviewers see valid outputs, too; what one approves is not shown to a person."""
    graph = one_call(
        "node",
        mode,
        Model(of_prompt),
        InMemorySaver(),
        review="always",
        reviewer=lambda review: approve() if review.output["n"] == 1 else None,
    )
    state = mode.invoke(graph, {"params": PARAMS}, thread())
    assert state["status"] == "succeeded"
    assert state["attempts"][0]["decision"]["author"].startswith("agent")


@pytest.mark.parametrize("params", ["count", {"messages": [{"role": "user", "content": "count"}]}])
def test_a_comment_goes_to_the_model_in_the_person_s_name(params):
    """The words stand in the prompt or the messages, with what was wrong; the record has both."""
    seen = []

    def model(given):
        seen.append(given if isinstance(given, str) else given["messages"][-1]["content"])
        return "[1]" if "two pages" in seen[-1] else '{"a": 1}'

    @entrypoint(checkpointer=InMemorySaver())
    def count(given):
        return retry_llm_call(model, given, output=list[int])

    count.invoke(params, thread())
    said = {"type": "comment", "message": "it has two pages", "by": "ada"}
    assert resume(count, thread(), said) == [1]
    assert "1. the whole answer: Input should be a valid array" in seen[1]
    (ledger,) = history.attempts_of(count, thread())
    last = ledger.attempts[-1]
    assert (last["author"], last["reason"]) == ("human:ada", "it has two pages")


@pytest.mark.parametrize(
    "options", [{"locked": ["prompt"]}, {"allowed_decisions": ["approve", "edit", "reject"]}]
)
def test_a_comment_without_a_place_to_go_is_no_answer(mode, options):
    """It is refused with its reason; the inbox's response box rejects there, as it always did."""
    model = Model(lambda _: "no")
    graph = one_call("node", mode, model, InMemorySaver(), **options)
    mode.invoke(graph, {"params": PARAMS}, thread())
    told = refused(mode, graph, thread(), comment("count again"))
    assert "Comment is not allowed here" in told.message
    state = answer(mode, graph, thread(), [{"type": "response", "args": "wrong file"}])
    assert (state["status"], len(model.calls)) == ("cancelled", 1)
    assert state["attempts"][0]["decision"]["message"] == "wrong file"


ACCEPTING = ["approve", "edit", "reject", "accept"]


def test_an_output_that_is_not_valid_is_taken_where_that_is_allowed(mode, form):
    """It comes out as it was read, and ledger and status say that somebody overruled."""
    model = Model(lambda _: '```json\n{"n": "many"}\n```')
    graph = one_call(form, mode, model, InMemorySaver(), allowed_decisions=ACCEPTING)
    mode.invoke(graph, {"params": PARAMS}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.output == {"n": "many"}
    state = answer(mode, graph, thread(), {**accept("it is a word here"), "by": "ada"})
    assert (state["output"], len(model.calls)) == ({"n": "many"}, 1)
    ledger = mode.call(history, "attempts_of", graph, thread())
    decision = ledger[0].attempts[-1]["decision"]
    assert ledger[0].outcome == "overruled"
    assert (decision["author"], decision["message"]) == ("human:ada", "it is a word here")
    assert summarize(ledger)["succeeded"] == 1
    if form == "node":
        assert state["status"] == "overruled"


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ('{"n": "many"}', {}),
        ("no JSON at all", {"allowed_decisions": ACCEPTING}),
        ('{"n": "many', {"allowed_decisions": ACCEPTING, "repair": "none"}),
    ],
)
@pytest.mark.parametrize("said", ["accept", {"type": "accept"}])
def test_nothing_is_overruled_without_leave_or_without_an_output(mode, text, options, said):
    """Where it is not offered the answer is refused, and nothing is called or taken."""
    model = Model(lambda _: text)
    graph = one_call("node", mode, model, InMemorySaver(), **options)
    mode.invoke(graph, {"params": PARAMS}, thread())
    told = refused(mode, graph, thread(), said)
    assert "Accept is not allowed here" in told.message
    assert len(model.calls) == 1


def test_the_button_of_agent_inbox_never_overrules(mode):
    """Its *accept* approves, as ever, also where `accept` is allowed."""
    model = Model(lambda _: '{"n": "many"}')
    graph = one_call("node", mode, model, InMemorySaver(), allowed_decisions=ACCEPTING)
    mode.invoke(graph, {"params": PARAMS}, thread())
    answer(mode, graph, thread(), [{"type": "accept", "args": None}])
    assert len(model.calls) == 2
    assert reviews(mode, graph, thread())[0].attempt == 2
