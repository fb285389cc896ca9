"""Feedback that lasts: each attempt is told something new, and a repeated answer ends the loop."""

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AttemptsExhausted, retry_llm_call
from tests.loops import Model, one_call, reviews, thread

PROMPTS = [
    {"prompt": "How many?"},
    {"messages": [{"role": "user", "content": "How many?"}]},
    {"messages": [HumanMessage("How many?")]},
]


def answering(*texts):
    """Make a model that gives these texts in turn."""
    left = list(texts)
    return Model(lambda params: left.pop(0))


@pytest.mark.parametrize("params", PROMPTS, ids=["prompt", "dicts", "messages"])
@pytest.mark.parametrize("strategy", ["errors_only", "truncated", "full"])
@pytest.mark.parametrize("most", [3, 5, 10])
@pytest.mark.parametrize("fault", ["no number ({})", '{{"n": "x", "a{}": 1}}', '{{"m{}": "y"}}'])
def test_every_attempt_is_used_while_the_answers_differ(params, strategy, most, fault):
    """Equal faults of different answers still make other params, up to `max_attempts`."""
    model = answering(*(fault.format(number) for number in range(most)))
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(
            model, params, output={"type": "object", "required": ["n", "k"]}, feedback=strategy,
            auto_retries=most, max_attempts=most, review=False,
        )  # fmt: skip
    assert len(model.calls) == most
    assert len({str(given) for given in model.calls}) == most
    assert f"all {most} attempts are used" in str(caught.value)


def test_faults_of_earlier_answers_are_told_as_well():
    """A model that corrects one fault hears of the other, so that it does not bring it back."""
    model = answering('{"a": "x"}', '{"b": "x"}', '{"a": 1, "b": 1}')
    retry_llm_call(model, "How many?", output=dict[str, int], auto_retries=2, review=False)
    *_, told = model.calls
    assert "1. /b: Input should be a valid integer" in told
    assert "Your last 2 answers were refused.\nFaults of the earlier ones, which must" in told
    assert "- /a: Input should be a valid integer" in told


@pytest.mark.parametrize(
    ("texts", "calls", "of"),
    [
        (["no"] * 9, 2, 1),
        (["none", '{"a": "x"}', '{"a": "x"}'], 3, 2),
        (['{"a": "x"}', '{"b": "x"}', '{"a": "x"}', '{"b": "x"}'], 3, 1),
    ],
)
def test_a_repeated_answer_ends_the_loop(form, mode, texts, calls, of):
    """With a person, the question says so; without one, the error does."""
    graph = one_call(form, mode, answering(*texts), InMemorySaver(), auto_retries=8)
    mode.invoke(graph, {"params": {"prompt": "How many?"}}, thread())
    (review,) = reviews(mode, graph, thread())
    why = f"despite feedback, the model repeated the refused answer of attempt {of}"
    assert review.attempt == calls
    assert review.value["note"].startswith(why)

    model = answering(*texts)
    with pytest.raises(AttemptsExhausted, match=why):
        retry_llm_call(model, "How many?", output=dict[str, int], auto_retries=8, review=False)
    assert len(model.calls) == calls


@pytest.mark.parametrize("params", PROMPTS, ids=["prompt", "dicts", "messages"])
def test_automatic_retries_alone_feed_the_errors_back(form, mode, params):
    """The usual loop (call, repair, validate, feed back, then ask) needs one option."""
    model = answering("none", '{"n": "x"}', '{"n": 1}')
    graph = one_call(form, mode, model, InMemorySaver(), auto_retries=2)
    assert mode.invoke(graph, {"params": params}, thread())["output"] == {"n": 1}
    assert "feedback on your last answer" in str(model.calls[-1])


@pytest.mark.parametrize(
    ("output", "why"),
    [
        (dict, "feedback changed nothing after an invalid_syntax failure"),
        (None, "no hook or feedback changed the params"),
    ],
)
def test_params_without_a_prompt_are_taken_and_the_question_says_so(form, mode, output, why):
    """Then nothing can be fed back, and a person learns why nothing was tried."""

    def fail(params):
        if output is None:
            raise RuntimeError("odd")
        return "none"

    model = Model(fail)
    graph = one_call(form, mode, model, InMemorySaver(), auto_retries=2, output=output)
    mode.invoke(graph, {"params": {"n": 0}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.value["note"].startswith(why)
    assert len(model.calls) == 1
