"""What ready hooks may do, a hook of the user's may do: the parts of `HookTraits`."""

import ast
from pathlib import Path
from typing import Annotated

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import AfterValidator, BaseModel

import graph_retry
from graph_retry import AttemptsExhausted, comment, edit, retry_llm_call
from graph_retry.hooks import Budget, escalate
from tests.loops import Model, answer, one_call, reviews, thread


class Larger:
    """A hook of the user's that goes over to another model."""

    new_means = True

    def __call__(self, error, attempt, params):
        """Take the next model."""
        return {**params, "model": params["model"] + 1}

    def check_params(self, params):
        """Ask for the field."""
        if "model" not in params:
            raise ValueError("`Larger` needs a field `model`")


def test_new_means_are_tried_after_equal_failures():
    """As a step of `escalate` is."""
    model = Model(lambda params: "no")
    graph = one_call("node", None, model, InMemorySaver(), Larger(), auto_retries=4)
    graph.invoke({"params": {"model": 1}}, thread())
    assert [params["model"] for params in model.calls] == [1, 2, 3, 4, 5]


ONCE = {"review": False}
LATE = escalate({5: {"model": 9}})


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({**ONCE, "on_retry": Larger()}, "with `auto_retries=0` and `review=False`"),
        ({**ONCE, "feedback": "errors_only"}, "hook `feedback` of"),
        (
            {**ONCE, "on_retry": LATE, "auto_retries": 4},
            "after attempt 5, but no attempt follows that one with `auto_retries=4`",
        ),
        ({"on_retry": LATE, "max_attempts": 5}, "that one with `max_attempts=5`. Raise"),
        ({**ONCE, "on_retry": LATE, "auto_retries": 5}, None),
        ({**ONCE, "on_retry": Larger(), "reviewer": lambda review: None}, None),
        ({"on_retry": LATE, "feedback": "errors_only"}, None),
        ({"auto_retries": 1, "max_attempts": 1}, None),
    ],
)
def test_a_hook_that_is_never_used_is_told_before_the_first_call(caplog, options, told):
    """By the attempts that can follow: without reviewers `auto_retries`, else `max_attempts`."""
    graph_retry._core.ground.logs.warn_once.cache_clear()
    seen = []

    def model(params):
        seen.append(caplog.text)
        return "3"

    retry_llm_call(model, {"model": 1, "prompt": "Go."}, output=int, **options)
    assert ("is never used" in seen[0]) == bool(told)
    assert (told or "") in seen[0]


def test_params_are_checked_before_the_first_call():
    """Nothing is paid for a hook that could not work."""
    model = Model()
    with pytest.raises(ValueError, match="`Larger` needs a field `model`"):
        retry_llm_call(model, {"n": 1}, Larger())
    assert model.calls == []


class Politely:
    """Feedback of the user's, in a field of its own."""

    field = "notes"

    def __init__(self, words="Answer in JSON."):
        self.words = words

    def __call__(self, error, attempt, params):
        """Say it in the notes."""
        return {**params, "notes": f"{attempt}: {self.words}"}

    def asking(self, words):
        """Say it in other words."""
        return Politely(words)


def test_feedback_of_ones_own_learns_the_format_and_takes_comments():
    """Its closing words tell the format; a person's comment goes to its field."""
    model = Model(lambda params: "a: [")
    graph = one_call(
        "node", None, model, InMemorySaver(), feedback=Politely(), format="yaml", auto_retries=1
    )
    graph.invoke({"params": {"prompt": "How many?", "notes": ""}}, thread())
    assert "YAML" in model.calls[1]["notes"]
    answer(_Sync, graph, thread(), comment("Three."))
    assert "Three." in model.calls[2]["notes"]
    assert model.calls[2]["prompt"] == "How many?"


class _Sync:
    """The sync mode, without a loop."""

    @staticmethod
    def call(owner, name, *args, **kwargs):
        """Call it."""
        return getattr(owner, name)(*args, **kwargs)


class ThreeADay(Budget):
    """A budget of the user's, which remembers what other calls did."""

    def count(self, *attempts):
        """Remember each attempt by its key."""
        KEYS.update(attempt["idempotency_key"] for attempt in attempts)

    def exceeded(self, attempts, before=None):
        """Say when the day is over."""
        return "three a day are enough" if len(KEYS) >= 3 else None


KEYS = set()


def test_a_budget_of_ones_own_sees_every_attempt():
    """It is told of each attempt of the call, the earlier ones included, and stops automation."""
    KEYS.clear()
    model = Model()

    def up(error, attempt, params):
        return {"n": params["n"] - 1}

    with pytest.raises(AttemptsExhausted):
        retry_llm_call(model, {"n": 0}, up, auto_retries=9, review=False, budget=ThreeADay())
    assert len(model.calls) == len(KEYS) == 3


def test_the_engine_asks_for_no_class_of_a_plug_in():
    """What a ready hook may do is read from its parts, so that another one may do it, too."""
    plug_ins = {"Escalation", "Feedback", "SharedBudget", "Budget", "LimitRaise"}
    asked = []
    files = list((Path(graph_retry.__file__).parent / "_core/loop").rglob("*.py"))
    assert len(files) > 10
    for file in files:
        for call in ast.walk(ast.parse(file.read_text())):
            if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "isinstance":
                asked += plug_ins & {n.id for n in ast.walk(call) if isinstance(n, ast.Name)}
    assert asked == []


class Hopeless(ValueError):
    """What no other call could mend."""

    hopeless = True


def adult(value):
    """Refuse what no prompt can change."""
    raise Hopeless("the document has no age in it")


class Person(BaseModel):
    """What is wanted."""

    age: Annotated[int, AfterValidator(adult)]


@pytest.mark.parametrize(
    "output",
    [
        adult,
        lambda value: {"ok": False, "errors": ["no age"], "hopeless": True},
        lambda value: [{"message": "no age", "hopeless": True}],
        lambda value: [Hopeless("no age")],
        Person,
    ],
)
def test_what_is_hopeless_goes_to_a_person_at_once(form, mode, output):
    """No hook, feedback or retry is tried; the person may still call again."""
    model, asked = Model(lambda params: '{"age": 3}'), []
    graph = one_call(
        form, mode, model, InMemorySaver(), mode.colour(lambda *given: asked.append(given)),
        output=output, auto_retries=5, feedback="errors_only",
    )  # fmt: skip
    mode.invoke(graph, {"params": {"prompt": "How old?"}}, thread())
    assert (len(model.calls), asked) == (1, [])
    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "permanent"
    assert review.issues[0]["hopeless"] is True
    assert "age" in review.issues[0]["message"]
    answer(mode, graph, thread(), edit(prompt="Look again."))
    assert len(model.calls) == 2
