"""Ready hooks: a longer limit, a shorter history, other words, another model; budgets' figures."""

import math
from decimal import Decimal

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AttemptFailed, AttemptsExhausted, Completion, retry_llm_call
from graph_retry.hooks import (
    Budget,
    Lessons,
    fall_back,
    feedback,
    feedback_text,
    lessons_of,
    merge_lessons,
    raise_limit,
    shorten_history,
)
from graph_retry.output import format_issues
from tests.loops import Model, one_call, thread

OVERFLOW = AttemptFailed("too long", kind="context_overflow")


def words(messages):
    """Count words as tokens."""
    return sum(len(str(message.content).split()) for message in messages)


def test_a_limit_is_raised_up_to_the_most_though_each_answer_is_cut_off(form, mode):
    """The same failure again is what a limit that is still too low looks like."""

    def model(params):
        whole = params["max_tokens"] >= 3_000
        return Completion(
            '{"n": 1}' if whole else '{"n": ', finish_reason="stop" if whole else "length"
        )

    model = Model(model)
    graph = one_call(form, mode, model, InMemorySaver(), raise_limit(most=4_000), auto_retries=9)
    state = mode.invoke(graph, {"params": {"max_tokens": 100}}, thread())
    assert state["output"] == {"n": 1}
    assert [p["max_tokens"] for p in model.calls] == [100, 200, 400, 800, 1600, 3200]


@pytest.mark.parametrize("as_dicts", [True, False])
def test_a_history_is_shortened_from_its_beginning(as_dicts):
    """System messages stay, no tool's answer is left without its call, the form stays the same."""
    said = [
        SystemMessage("Be brief."),
        HumanMessage("one two three"),
        AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": "1"}]),
        ToolMessage("four five six", tool_call_id="1"),
        AIMessage("seven eight"),
        HumanMessage("nine ten"),
    ]
    if as_dicts:
        roles = {"human": "user", "ai": "assistant", "system": "system"}
        said = [{"role": roles[m.type], "content": m.content} for m in said if m.type in roles]
        del said[2]
    hook = shorten_history(most=7, count=words)
    assert hook(OVERFLOW, 1, {"messages": said}) == {"messages": [said[0], said[-1]]}
    assert hook(AttemptFailed("no", kind="refusal"), 1, {"messages": said}) is None
    assert hook(OVERFLOW, 1, {"messages": [said[0], said[-1]]}) is None, (
        "nothing is left to leave out"
    )


def test_each_further_overflow_halves_what_is_left(form, mode):
    """Without a person, until the window holds it."""
    many = [{"role": "user", "content": f"number {n}"} for n in range(16)]

    def refuse(params):
        if len(params["messages"]) > 3:
            raise RuntimeError("too long")
        return '{"n": 1}'

    model = Model(refuse)
    graph = one_call(
        form, mode, model, InMemorySaver(), shorten_history(count=words), auto_retries=9,
        classify=lambda error: "context_overflow",
    )  # fmt: skip
    assert mode.invoke(graph, {"params": {"messages": many}}, thread())["output"] == {"n": 1}
    assert [len(params["messages"]) for params in model.calls] == [16, 8, 4, 2]


def test_a_summary_stands_for_what_was_left_out(mode):
    """By a function of those messages, async where the run is."""
    many = [{"role": "user", "content": f"number {n}"} for n in range(4)]
    summary = mode.colour(lambda gone: f"{len(gone)} numbers")

    def model(params):
        if len(params["messages"]) > 3:
            raise RuntimeError("too long")
        return '{"n": 1}'

    model = Model(model)
    graph = one_call(
        "node", mode, model, InMemorySaver(), shorten_history(count=words, summary=summary),
        auto_retries=1, classify=lambda error: "context_overflow",
    )  # fmt: skip
    mode.invoke(graph, {"params": {"messages": many}}, thread())
    assert [m["content"] for m in model.calls[1]["messages"]] == [
        "Summary of what was said before:\n2 numbers", "number 2", "number 3",
    ]  # fmt: skip


def test_a_refusal_is_answered_step_by_step(form, mode):
    """In other words first, then by another model; other failures take no step."""
    refusals = {"mine": "refusal"}

    def model(params):
        return Completion('{"n": 1}', finish_reason=refusals.get(params["model"]))

    model = Model(model)
    hook = fall_back("refusal", {"prompt": "Please: {}".format}, {"model": "other"})
    graph = one_call(form, mode, model, InMemorySaver(), hook, auto_retries=5)
    params = {"prompt": "How?", "model": "mine"}
    assert mode.invoke(graph, {"params": params}, thread())["output"] == {"n": 1}
    assert [(p["prompt"], p["model"]) for p in model.calls] == [
        ("How?", "mine"), ("Please: How?", "mine"), ("Please: How?", "other"),
    ]  # fmt: skip
    assert hook(OVERFLOW, 1, params) is None


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (
            lambda: fall_back("refused", {"a": 1}),
            "`kinds`: give 'transient', .*Did you mean `refusal`",
        ),
        (lambda: fall_back(3, {"a": 1}), "`kinds`: give .*; not 3"),
        (lambda: raise_limit(most=9, factor=math.nan), "`factor`: give a number above 1; not nan"),
        (lambda: fall_back("refusal"), "at least one step"),
        (lambda: fall_back("refusal", {}), "at least one step"),
        (lambda: shorten_history(0), "`most`: give a whole number from 1.*not 0"),
        (lambda: Lessons(window=0), "`window`: give a whole number from 1; not 0"),
        (lambda: Lessons(told=0), "`told`: give a whole number from 1; not 0"),
        (lambda: retry_llm_call(Model(), {"n": 1}, fall_back("refusal", {"m": 1})), "field `m`"),
        (lambda: retry_llm_call(Model(), {"prompt": "x"}, shorten_history()), "messages"),
    ],
)
def test_what_could_not_work_is_refused(make, error):
    """Before a model is asked."""
    with pytest.raises(ValueError, match=error):
        make()


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"input_tokens": 60, "output_tokens": 40}, 100),
        ({"input_tokens": 60, "output_tokens": 40, "total_tokens": 120}, 120),
        ({"output_tokens": 40}, 40),
        ({"total_tokens": None, "input_tokens": 1}, 1),
        ({}, 0),
        (None, 0),
    ],
)
def test_tokens_are_counted_without_a_total_too(usage, tokens):
    """Anthropic's usage has the parts alone."""
    attempt = {"usage": usage, "duration_s": 0.0, "decision": None}
    assert Budget().spent_on([attempt])["tokens"] == tokens


@pytest.mark.parametrize(
    "names",
    [
        ("input_tokens", "output_tokens"),
        ("prompt_tokens", "completion_tokens"),
        ("promptTokenCount", "candidatesTokenCount"),
        ("inputTokens", "outputTokens"),
        ("prompt_eval_count", "eval_count"),
    ],
)
def test_a_budget_trips_on_usage_without_a_total(names):
    """By LangChain's names or a provider's, after the third hundred."""
    usage = dict(zip(names, (60, 40), strict=True))
    model = Model(lambda params: Completion("no", usage=usage))

    def up(error, attempt, params):
        return {"n": params["n"] + 1}

    options = {"auto_retries": 9, "review": False, "output": int, "budget": Budget(tokens=250)}
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(model, {"n": 0}, up, **options)
    assert len(model.calls) == 3


def test_a_price_may_be_any_number():
    """A `Decimal` is one; a text is none, and is named."""
    attempt = {"usage": None, "duration_s": 0.0, "decision": None}
    assert Budget(cost=1, price=lambda _: Decimal("0.5")).exceeded([attempt, attempt])
    with pytest.raises(TypeError, match=r"`price` returned '0\.5': return a number"):
        Budget(cost=1, price=lambda _: "0.5").spent_on([attempt])
    for nothing in (math.nan, Decimal("NaN")):  # No sum of it would ever reach a limit.
        with pytest.raises(TypeError, match=r"`price` returned .*: return a number"):
            Budget(cost=1, price=lambda _, given=nothing: given).spent_on([attempt])


def test_an_infinite_factor_gives_the_highest_limit():
    """It is above 1, as is asked of a factor."""
    hook = raise_limit(most=9, factor=math.inf)
    cut_off = AttemptFailed("cut off", kind="truncated")
    assert hook(cut_off, 1, {"max_tokens": 2}) == {"max_tokens": 9}


def test_helpers_for_hooks_of_ones_own_are_public():
    """They write what the ready feedback writes."""
    issue = {"path": "/a", "message": "bad", "code": "x", "expected": None, "received": None}
    error = AttemptFailed("no", kind="invalid_schema", issues=[issue])
    assert feedback_text(error) in feedback()(error, 2, "Who?")
    assert format_issues([issue]) == "1. /a: bad"


def lesson(number, text, step="extract"):
    """Make a lesson."""
    return {"id": str(number), "step": step, "text": text, "at": f"2030-01-{number:02}"}


def test_a_mended_mistake_teaches_the_next_step():
    """It stays in the window, and is told as one that was mended."""
    mended = {**lesson(1, "no age"), "mended": "2030-01-02"}
    window = merge_lessons([lesson(1, "no age")], [mended, lesson(3, "no name", "other")])
    told, *_ = Lessons().add_to("Go on.", window)
    assert "- extract: no age (mended since)" in told
    assert "- other: no name\n" in told


def test_the_sizes_of_the_window_are_options(mode):
    """What a state key keeps, and what a step is told."""
    known = [lesson(n, f"fault {n}") for n in range(1, 21)]
    seen = []
    graph = one_call(
        "node", mode, Model(lambda params: seen.append(params) or "1"), InMemorySaver(),
        output=int, lessons=Lessons(known=known, window=15, told=12),
    )  # fmt: skip
    mode.invoke(graph, {"params": {"prompt": "Go on."}}, thread())
    assert seen[0]["prompt"].count("- extract: fault") == 12
    assert len(merge_lessons(known, [])) == 10
    assert lessons_of("x", []) == []
