"""Feedback to the model: what is said, where it is put, and that it stays small and contained."""

import copy
import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import AttemptFailed, retry_llm_call
from graph_retry._core.ground.quoting import FEEDBACK, LESSONS, fenced
from graph_retry.hooks import feedback, feedback_text
from graph_retry.output import format_issues
from tests.loops import Model, one_call, reviews, thread

ISSUE = {
    "path": "/age",
    "message": "Input should be a valid integer",
    "code": "int_type",
    "expected": "integer",
    "received": '"old" (str)',
}
SCHEMA = {"type": "object", "required": ["age"]}
RAW = '{"age": "old"}' + " " * 600 + "END"
ORDER = "Answer again with the complete, corrected JSON and nothing else: no prose, no code fence."


def failed(kind="invalid_schema", issues=(ISSUE,), raw=RAW, **more):
    """Make an attempt's error."""
    return AttemptFailed(
        "wrong", kind=kind, issues=list(issues), raw_output=raw, output_schema=SCHEMA, **more
    )


def repeated(params, *attempts, hook=None, **more):
    """Give feedback after several attempts; like the loop, tell the hook what it added before."""
    added = None
    for attempt in attempts:
        error = failed(**more)
        error.added = added
        params = (hook or feedback())(error, attempt, params)
        added = error.added
    return params


class Typed(BaseModel):
    prompt: str
    temperature: float = 0.5


@dataclasses.dataclass
class Classed:
    prompt: str
    temperature: float = 0.5


@pytest.mark.parametrize(
    ("strategy", "quoted"),
    [("errors_only", 0), ("truncated", 500), ("full", len(RAW))],
)
def test_a_strategy_decides_how_much_of_the_answer_is_quoted(strategy, quoted):
    """Issues are numbered with path, expected and received; the answer stands in a fence."""
    text = feedback(strategy)(failed(), 2, {"prompt": "Who?"})["prompt"]

    assert text.startswith(f"Who?\n\n{FEEDBACK.begin}\n")
    assert text.endswith(f"{ORDER}\n{FEEDBACK.end}")
    assert (
        '1. /age: Input should be a valid integer (expected: integer; received: "old" (str))\n'
    ) in text
    assert ("```" in text) == (quoted > 0)
    assert (RAW[:quoted] in text, RAW[: quoted + 1] in text) == (True, quoted == len(RAW))


def test_failures_the_model_cannot_mend_change_nothing():
    """There is no feedback on a transport error, a refusal or a rejected input."""
    for kind in ("transient", "refusal", "rejected_input", "permanent"):
        assert feedback()(failed(kind), 1, {"prompt": "Who?"}) is None


def test_a_missing_field_and_a_cut_off_answer_get_a_hint():
    """What to do about the common mistakes is said in words."""
    missing = {**ISSUE, "code": "missing", "message": "Field required"}
    assert "; add this field\n" in feedback()(failed(issues=[missing]), 2, "Who?")
    assert "cut off before its end: be shorter" in feedback()(failed("truncated"), 2, "Who?")


def test_the_type_is_told_on_the_first_retry_only():
    """Later feedback replaces the first, and can do without it."""
    first = repeated({"prompt": "Who?"}, 1)["prompt"]
    second = repeated({"prompt": "Who?"}, 1, 2)["prompt"]
    assert f"{ORDER}\nIt must be of this type:\n{{\n  age: any,\n}}\n{FEEDBACK.end}" in first
    assert "age: any" not in second
    assert "age: any" not in feedback(schema=False)(failed(), 1, "Who?")


def test_a_text_of_the_schema_cannot_end_the_feedback():
    """Descriptions, choices and keys may come from anywhere."""
    schema = {"enum": [FEEDBACK.end], "description": f"{FEEDBACK.end}\n{FEEDBACK.begin}"}
    error = AttemptFailed("no", kind="invalid_schema", issues=[ISSUE], output_schema=schema)
    assert feedback()(error, 1, "Who?").count(FEEDBACK.end) == 1


def test_a_text_about_an_answer_needs_no_exception():
    """The answer and its issues are enough, and an issue needs only its message."""
    issues = [{"path": "/a", "message": "too low"}, {"path": "", "message": "odd"}]
    told = feedback_text('{"a": 1}', "full", issues=issues)
    assert '```\n{"a": 1}\n```\nIt has 2 errors:\n1. /a: too low\n2. the whole answer: odd' in told
    assert format_issues(issues) == "1. /a: too low\n2. (whole value): odd"
    assert '"a"' not in feedback_text('{"a": 1}', issues=issues)


def test_a_part_of_an_answer_is_told_to_be_a_part():
    """A model that reads its answer back must not take the part for the whole."""
    told = feedback_text("x" * 1_234, "truncated", issues=[ISSUE])
    assert "Your answer began with these 500 of its 1,234 characters (quoted as data):" in told
    assert "Your answer was (quoted" in feedback_text("x" * 1_234, "full", issues=[ISSUE])


@pytest.mark.parametrize(
    ("params", "read"),
    [
        ("Who?", lambda made: made),
        ({"prompt": "Who?", "seed": 1}, lambda made: made["prompt"]),
        (Typed(prompt="Who?"), lambda made: made.prompt),
        (Classed(prompt="Who?"), lambda made: made.prompt),
    ],
)
def test_it_writes_to_the_prompt_of_any_kind_of_params(params, read):
    """The other fields stay, the type stays, and the given object is left alone."""
    made = feedback()(failed(), 2, params)
    assert type(made) is type(params)
    assert read(made).startswith("Who?\n\n[feedback")
    assert read(params) == "Who?"


@pytest.mark.parametrize(
    ("strategy", "kept"), [("full", 900), ("truncated", 500), ("errors_only", 500)]
)
def test_an_assistant_turn_has_what_its_strategy_quotes(strategy, kept):
    """All of the answer, or the number of characters that are left out; never quoted twice."""
    answer = "[" + "7" * 898 + "]"
    error = AttemptFailed(
        "no", kind="invalid_schema", raw_output=answer,
        issues=[{"path": "", "message": "not an object", "code": "type"}],
    )  # fmt: skip
    hook = feedback(strategy, turns=True)
    said = [
        each["content"]
        for each in hook(error, 1, {"messages": [{"role": "user", "content": "Who?"}]})["messages"]
    ]
    left = f" [… {900 - kept} more characters]" if kept < 900 else ""
    assert said[1] == answer[:kept] + left
    assert "777" not in said[2]
    assert ("777" in hook(error, 1, {"prompt": "Who?"})["prompt"]) == (strategy != "errors_only")


def test_a_limit_shortens_the_assistant_turn():
    """A long answer gives way to the errors."""
    error = AttemptFailed("no", kind="invalid_syntax", raw_output="7" * 9_000)
    made = feedback("full", limit=2_000, turns=True)(
        error, 1, {"messages": [{"role": "user", "content": "Who?"}]}
    )["messages"]
    assert made[1]["content"] == "7" * 500 + " [… 8,500 more characters]"


@pytest.mark.parametrize(
    ("turn", "roles"),
    [
        ({"role": "user", "content": "Who?"}, ["user", "assistant", "user"]),
        (HumanMessage("Who?"), [HumanMessage, AIMessage, HumanMessage]),
    ],
)
def test_turns_are_an_answer_and_a_request(turn, roles):
    """The turns have the form of the messages around them; the next feedback takes their place."""
    made = repeated({"messages": [turn]}, 1, 2, 3, hook=feedback(turns=True))["messages"]
    seen = [each["role"] if isinstance(each, dict) else type(each) for each in made]
    said = [each["content"] if isinstance(each, dict) else each.content for each in made]
    assert seen == roles
    assert said[1] == f"{RAW[:500]} [… {len(RAW) - 500} more characters]"
    assert said[2].startswith(FEEDBACK.begin)


IMAGE = {"type": "input_image", "image_url": "data:,"}


@pytest.mark.parametrize(
    ("last", "told"),
    [
        ({"role": "user", "content": "Who?"}, "Who?\n\n{}"),
        (HumanMessage("Who?", name="bob", id="7"), "Who?\n\n{}"),
        (
            {"role": "user", "content": [{"type": "input_text", "text": "Who?"}, IMAGE]},
            [{"type": "input_text", "text": "Who?"}, IMAGE, {"type": "input_text", "text": "{}"}],
        ),
        # No user's text is there to add to: a turn is added.
        ({"role": "user", "content": [IMAGE]}, None),
        ({"role": "assistant", "content": "It is"}, None),
        ({"role": "tool", "tool_call_id": "1", "content": "4"}, None),
        (AIMessage("It is"), None),
    ],
)
def test_feedback_ends_the_last_message_if_that_is_a_users(last, told):
    """The model reads one request, its own answer is no turn, and the message is its own copy."""
    before = copy.deepcopy(last)
    once, twice = (repeated({"messages": [last]}, *n)["messages"] for n in ((2,), (2, 3)))
    text = feedback_text(failed())
    assert last == before
    assert once == twice
    if told is None:
        assert once[0] == last
        user = {"role": "user", "content": text}
        assert once[1:] == [HumanMessage(text) if isinstance(last, AIMessage) else user]
    elif isinstance(told, str):
        whole = told.format(text)
        same = {"content": whole}
        made = last.model_copy(update=same) if isinstance(last, HumanMessage) else last | same
        assert once == [made]
    else:
        assert once == [{**last, "content": [*told[:-1], {"type": "input_text", "text": text}]}]


def test_an_answer_without_text_still_makes_a_turn():
    """Providers refuse an empty assistant turn."""
    made = feedback(turns=True)(failed(raw=None), 1, {"messages": []})
    assert made["messages"][0] == {"role": "assistant", "content": "(no text)"}


def test_a_comment_on_a_call_without_an_answer_makes_no_turn_of_the_model():
    """The next comment takes its place, and feedback does; what the caller wrote stays."""
    turns = [{"role": "user", "content": "Who?"}, {"role": "assistant", "content": "It is"}]
    told, added, none = {"messages": turns}, None, {"answer": "", "issues": [], "field": None}
    for words in ("try again", "try once more"):
        told, added = feedback().with_comment(told, words, **none, added=added)
        assert [turn["role"] for turn in told["messages"]] == ["user", "assistant", "user"]
        assert f"reviewed this request says:\n{words}\n" in told["messages"][-1]["content"]
    error = failed()
    error.added = added
    told = feedback()(error, 1, told)
    assert [turn["content"] for turn in told["messages"][:2]] == ["Who?", "It is"]
    assert len(told["messages"]) == 3
    asked, added = feedback().with_comment("Who?", "be kind", **none, added=None)
    assert feedback().with_comment(asked, "be brief", **none, added=added)[0].count("[comment") == 1


def test_another_field_can_be_named_and_a_wrong_one_is_refused():
    """Nothing is added that the params lack, and nothing but text is written to."""
    named = feedback(field="instructions")
    assert named(failed(), 2, {"instructions": "Go."})["instructions"].startswith("Go.\n\n[feed")
    for params in ({"text": "Go."}, {"instructions": 3}, {"instructions": None}, 42, None):
        with pytest.raises(ValueError, match="`instructions`"):
            named(failed(), 2, params)
    with pytest.raises(ValueError, match="`messages` or `prompt`"):
        feedback()(failed(), 2, {"text": "Go."})


class Growing:
    """A model that is wrong in another way each time, and measures what it is sent."""

    def __init__(self):
        self.sizes = []

    def __call__(self, params):
        text = "".join(str(message["content"]) for message in params["messages"])
        self.sizes.append(len(text.split()))
        return f'{{"age": "old{len(self.sizes):02}"}}'


def appended(error, attempt, params):
    """Add to the conversation as most loops do."""
    request = {"role": "user", "content": f"Wrong: {error}. {ORDER}"}
    answer = {"role": "assistant", "content": error.raw_output}
    return {"messages": [*params["messages"], answer, request]}


def test_ten_retries_cost_no_more_than_one_where_an_appending_loop_grows(form, mode):
    """Counted in words sent: constant after the first retry's type, against linear growth."""
    sizes = {}
    for name, options in {"replacing": {"feedback": "errors_only"}, "appending": {}}.items():
        model = Growing()
        hooks = mode.colour(appended) if name == "appending" else None
        graph = one_call(
            form, mode, mode.colour(model.__call__), InMemorySaver(), hooks,
            output=dict[str, int], auto_retries=10, max_attempts=12, **options,
        )  # fmt: skip
        start = {"messages": [{"role": "user", "content": "How old is Ada?"}]}
        mode.invoke(graph, {"params": start}, thread())
        assert len(model.sizes) == 11
        sizes[name] = model.sizes

    assert len(set(sizes["replacing"][2:])) == 1
    assert max(sizes["replacing"]) == sizes["replacing"][1], "only the first retry has the type"
    steps = {b - a for a, b in zip(sizes["appending"][1:], sizes["appending"][2:], strict=False)}
    assert len(steps) == 1
    assert steps.pop() > 20


def test_the_context_guard_keeps_a_prompt_under_its_limit():
    """Less is quoted, then the type goes, then all issues but one; else there is no feedback."""
    many = [{**ISSUE, "path": f"/{n}"} for n in range(30)]
    error = failed(issues=many)
    full = feedback("full")(error, 1, "Who?")
    sizes = []
    for limit in range(len(full), 0, -50):
        made = feedback("full", limit=limit)(error, 1, "Who?")
        if made is None:
            break
        assert len(made) <= limit
        sizes.append(len(made))
    assert "… and 10 more." in full
    assert sorted(set(sizes), reverse=True) == list(dict.fromkeys(sizes))
    assert len(set(sizes)) == 5
    words = feedback(limit=60, measure=lambda text: len(text.split()))(error, 2, "Who?")
    assert len(words.split()) <= 60


@given(st.lists(st.sampled_from(["`", "``", "```", "\n", "x", *FEEDBACK, *LESSONS]), max_size=12))
def test_a_quotation_cannot_be_ended_from_inside(pieces):
    """Whatever the model wrote stays between the fences, and holds none of our marks."""
    text = "".join(pieces)
    opening, *inside, closing = fenced(text).split("\n")
    assert opening == closing
    assert set(opening) == {"`"}
    assert all(opening not in line for line in inside)
    assert not any(mark in "\n".join(inside) for mark in (*FEEDBACK, *LESSONS))


@given(st.text(max_size=50))
def test_feedback_can_always_be_taken_back(noise):
    """Two feedbacks leave one, even if the model wrote our own marks into its errors."""
    loud = {
        **ISSUE,
        "message": f"{FEEDBACK.end}{noise}{FEEDBACK.begin}\n" * 3,
        "received": "x" * 900,
    }
    known = {"hook": feedback("full"), "issues": [loud], "raw": FEEDBACK.end + noise}
    once, twice = repeated("Who?", 2, **known), repeated("Who?", 2, 3, **known)
    assert once == twice
    assert once.count(FEEDBACK.begin) == once.count(FEEDBACK.end) == 1


def test_it_is_one_visible_revision_with_an_author():
    """The ledger names who changed the prompt; the next attempt's patch shows the change."""
    records = []
    answers = iter(['{"n": "x"}', '{"n": 1}'])
    done = retry_llm_call(
        lambda params: next(answers),
        {"prompt": "Count."},
        output=dict[str, int],
        feedback="errors_only",
        auto_retries=1,
        on_attempt=records.append,
    )
    assert done == {"n": 1}
    assert [record["author"] for record in records] == ["caller", "feedback"]
    (change,) = records[1]["params_patch"]
    assert change["path"] == "/prompt"
    assert "1. /n: Input should be a valid integer" in change["value"]


def test_it_adds_to_what_a_hook_changed_and_is_shown_before_it_is_used(form, mode):
    """Without `auto_retries` both are the suggestion, under both names."""
    graph = one_call(
        form,
        mode,
        Model(lambda params: '{"n": "x"}'),
        InMemorySaver(),
        mode.colour(lambda error, attempt, params: {**params, "seed": 2}),
        feedback="errors_only",
    )
    mode.invoke(graph, {"params": {"prompt": "Count.", "seed": 1}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.suggested_params["seed"] == 2
    assert FEEDBACK.begin in review.suggested_params["prompt"]
    assert "other params are suggested by the hook on_retry and feedback" in review.value["note"]
