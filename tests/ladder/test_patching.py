"""Corrections as a patch: asked for visibly, applied exactly or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import BaseModel

from graph_retry import approve, edit, retry_llm_call
from graph_retry.ledger import params_at
from graph_retry.patching import patch_feedback, patched
from graph_retry.quoting import FEEDBACK
from tests.loops import Model, answer, one_call, reviews, thread

ITEMS = [{"name": f"item {n}", "price": n} for n in range(100)]
WRONG = {"items": [*ITEMS[:7], {"name": "item 7", "price": "seven"}, *ITEMS[8:]]}
RIGHT = {"items": ITEMS}
FIX = {"op": "replace", "path": "/items/7/price", "value": 7}


class Item(BaseModel):
    name: str
    price: int


class Bill(BaseModel):
    items: list[Item]


def scripted(*answers):
    """Make a model that gives these answers in turn."""
    left = list(answers)
    return Model(
        lambda params: left.pop(0) if isinstance(left[0], str) else json.dumps(left.pop(0))
    )


def run(model, params=None, **options):
    """Make one call outside a graph; return its output and its ledger."""
    records = []
    given = {"prompt": "Read the bill."} if params is None else params
    options = {"output": Bill, "auto_retries": 3, "feedback": patch_feedback(), **options}
    output = retry_llm_call(model, given, on_attempt=records.append, **options)
    return output, records


def test_a_large_answer_is_corrected_instead_of_repeated(form, mode, checkpointer):
    """The model sends one step instead of a hundred items; the whole is validated and recorded."""
    model = scripted(WRONG, {"patch": [FIX]})
    records = []
    graph = one_call(
        form, mode, model, checkpointer, feedback=patch_feedback(), output=Bill,
        auto_retries=1, on_attempt=mode.colour(records.append),
    )  # fmt: skip
    state = mode.invoke(graph, {"params": {"prompt": "Read the bill."}}, thread())

    output = state["output"] if form == "node" else state["output"].model_dump()
    assert output == RIGHT
    assert records[1]["author"] == "feedback:patch_feedback"
    assert records[1]["raw"] == {"text": json.dumps({"patch": [FIX]})}
    assert records[1]["parsed"] == {"value": RIGHT}
    asked = params_at(records).view["prompt"]
    assert asked.startswith(f"Read the bill.\n\n{FEEDBACK.begin}\nYour answer ")
    assert json.dumps(WRONG) in asked
    assert "/items/7/price" in asked
    assert len(records[1]["raw"]["text"]) * 40 < len(records[0]["raw"]["text"])


def test_in_a_conversation_the_request_is_a_turn():
    """Messages work as prompts do."""
    start = {"messages": [{"role": "user", "content": "Read the bill."}]}
    output, records = run(scripted(WRONG, {"patch": [FIX]}), start)
    asked = params_at(records).view["messages"]
    assert output.items[7].price == 7
    assert [turn["role"] for turn in asked] == ["user", "assistant", "user"]


def test_corrections_can_go_on_from_a_corrected_answer():
    """The base of the next patch is what the last one made, and only one request stands."""
    two = {"items": [{**ITEMS[0], "price": "zero"}, *WRONG["items"][1:]]}
    first = {"op": "replace", "path": "/items/0/price", "value": 0}
    output, records = run(scripted(two, {"patch": [FIX]}, {"patch": [first]}))
    assert output.model_dump() == RIGHT
    assert params_at(records).view["prompt"].count(FEEDBACK.begin) == 1


@pytest.mark.parametrize(
    "bad",
    [
        {"patch": [{"op": "replace", "path": "/items/700/price", "value": 7}]},
        {"patch": [FIX, {"op": "remove", "path": "/nothing"}]},
        {"patch": [{"op": "replace", "path": "/items/7/price"}]},
        {"patch": [{"op": "copy", "from": "/items/6", "path": "/items/7"}]},
        {"patch": [{**FIX, "why": "it is a number"}]},
        {"patch": FIX},
        {"patch": [FIX], "note": "done"},
        [FIX],
    ],
)
def test_what_is_no_exact_patch_is_a_full_answer(bad):
    """It fails as such, nothing of it is applied, and the full answer is asked for next."""
    output, records = run(scripted(WRONG, bad, RIGHT))
    assert output.model_dump() == RIGHT
    assert [record["parsed"] for record in records] == [None, None, None]
    assert records[1]["failure"]["kind"] == "invalid_schema"
    assert records[2]["author"] == "feedback:patch_feedback"
    assert "complete, corrected JSON" in params_at(records).view["prompt"]


def test_a_full_answer_is_taken_where_corrections_were_asked_for():
    """A model that cannot patch simply answers again."""
    output, records = run(scripted(WRONG, RIGHT))
    assert output.model_dump() == RIGHT
    assert records[1]["parsed"] is None


@pytest.mark.parametrize(
    ("first", "options"),
    [
        ({"items": [{"name": "one", "price": "x"}]}, {}),
        ('{"items": [' + "1 2 " * 2_000, {}),
        (WRONG, {"feedback": patch_feedback(over=100_000)}),
        (WRONG, {"feedback": patch_feedback(limit=3_000)}),
    ],
)
def test_small_unreadable_and_oversized_answers_are_asked_for_in_full(first, options):
    """Corrections are for large answers that were read and fit the context."""
    _, records = run(scripted(first, RIGHT), **options)
    asked = params_at(records).view["prompt"]
    assert "RFC 6902" not in asked
    assert "complete, corrected JSON" in asked


def test_a_patch_nobody_asked_for_is_not_applied():
    """An output that looks like a patch is that output."""
    document = dict[str, list[dict[str, object]]]
    told = []

    def steps(value):
        told.append(value)
        return len(told) > 1

    output, records = run(
        scripted(WRONG, {"patch": [FIX]}), feedback="errors_only", output=steps, auto_retries=1
    )
    assert output == {"patch": [FIX]}
    assert records[1]["parsed"] is None
    assert run(scripted({"patch": [FIX]}), output=document)[0] == {"patch": [FIX]}


def test_plain_text_is_never_patched():
    """With `output=str` the text is the value, even if it reads like JSON."""
    from typing import Annotated

    from pydantic import AfterValidator

    def check(text):
        if "patch" not in text:
            message = "say more"
            raise ValueError(message)
        return text

    said = json.dumps({"patch": [FIX]})
    output, _ = run(scripted(json.dumps(WRONG), said), output=Annotated[str, AfterValidator(check)])
    assert output == said


def test_a_request_outlives_a_transport_error_and_a_persons_edit(form, mode):
    """Whoever made the call in between: the request names its answer, so the patch fits it."""
    steps = [json.dumps(WRONG), ConnectionError("gone"), json.dumps({"patch": [FIX]})]

    def reply(params):
        step = steps.pop(0)
        if isinstance(step, Exception):
            raise step
        return step

    graph = one_call(
        form, mode, Model(reply), InMemorySaver(), feedback=patch_feedback(), output=Bill
    )
    params = {"prompt": "Read the bill.", "seed": 1}
    mode.invoke(graph, {"params": params}, thread())
    answer(mode, graph, thread(), approve())
    (review,) = reviews(mode, graph, thread())
    assert review.failure["type"] == "ConnectionError"
    state = answer(mode, graph, thread(), edit(seed=2))
    output = state["output"] if form == "node" else state["output"].model_dump()
    assert output == RIGHT


def attempt(text, prompt, number):
    """Make the little of a record that patching reads."""
    patch = [{"op": "replace", "path": "", "value": {"prompt": prompt}}]
    return {
        "number": number, "raw": {"text": text}, "repaired": None, "parsed": None,
        "params_patch": patch, "params_types": {},
    }  # fmt: skip


KEYS = st.text("ab~/0", max_size=2)
JSON = st.recursive(
    st.none() | st.integers(-2, 2) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
)
PATHS = st.lists(KEYS, max_size=3).map(lambda keys: "".join(f"/{key}" for key in keys))


@given(JSON, st.lists(st.tuples(st.sampled_from(["add", "replace", "remove"]), PATHS, JSON)))
def test_a_patch_applies_in_full_or_not_at_all(base, steps):
    """Any steps on any value: a whole new value, or none, and never an exception."""
    from graph_retry.patching import _name

    patch = [
        {"op": op, "path": path} | ({} if op == "remove" else {"value": value})
        for op, path, value in steps
    ]
    text = json.dumps(base)
    ledger = [attempt(text, "Go.", 1), attempt("", f"{_name(base)} was …", 2)]
    made = patched(ledger, {"patch": patch})
    assert made is None or set(made) == {"value"}
    if not patch:
        assert made == {"value": base}
    assert patched([attempt(text, "Go.", 1), attempt("", "Go.", 2)], {"patch": patch}) is None
