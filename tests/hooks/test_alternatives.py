"""A hook gives several proposals, and a person takes one of them."""

import json

import pytest
from langchain_core.language_models import FakeListChatModel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel

from graph_retry import approve, edit, resume, retry_llm_call
from graph_retry.hooks import Alternatives, model_reviewer
from tests.loops import Model, answer, one_call, refused, reviews, thread

OPTIONS = [{"model": "large", "n": 1}, {"model": "small", "n": 2}, {"model": "other", "n": 3}]


def propose(_error, _attempt, _params):
    """Give three."""
    return Alternatives(OPTIONS)


def asked(mode, form="node", **options):
    """Return a graph that waits at the question about the first attempt, its model, the review."""
    model = Model(lambda params: "no" if params["model"] == "first" else '{"n": 1}')
    graph = one_call(form, mode, model, InMemorySaver(), propose, **options)
    mode.invoke(graph, {"params": {"model": "first", "n": 0}}, thread())
    return graph, model, reviews(mode, graph, thread())


@pytest.mark.parametrize(
    ("said", "taken"),
    [
        (approve(), 0),
        (approve(1), 0),
        (approve(choice=2), 1),
        ({"type": "approve", "choice": 3}, 2),
        ([{"type": "response", "args": "approve: 2"}], 1),
        ("Approve: 3", 2),
    ],
)
def test_a_person_takes_one_of_the_alternatives(mode, form, said, taken):
    """The first is the suggestion, and each can be chosen by its number."""
    graph, model, (review,) = asked(mode, form)
    assert review.suggested_params == review.alternatives[0] == OPTIONS[0]
    assert review.alternatives == OPTIONS
    answer(mode, graph, thread(), said)
    assert model.calls[1:] == [OPTIONS[taken]]


def test_question_and_schema_show_the_alternatives(mode):
    """Numbered, by what each changes; the schema has the numbers."""
    _, _, (review,) = asked(mode)
    assert '2. /model: "small"; /n: 2' in review.value["description"]
    assert '{"type": "approve", "choice": 2}' in review.value["description"]
    branch = review.value["response_schema"]["oneOf"][0]
    assert branch["properties"]["choice"] == {"enum": [1, 2, 3]}


@pytest.mark.parametrize("choice", [0, 4, "2", True, 1.5])
def test_a_choice_that_is_not_there_is_refused(mode, choice):
    """No call is made, and the answer says which there are."""
    graph, model, _ = asked(mode)
    told = refused(mode, graph, thread(), {"type": "approve", "choice": choice})
    has = "the alternatives have the numbers 1 to 3."
    assert f"`choice` is {json.dumps(choice)}, but {has}" in told.message
    assert len(model.calls) == 1
    answer(mode, graph, thread(), edit(model="mine"))
    assert model.calls[1:] == [{"model": "mine", "n": 1}]


def test_automation_takes_the_first(mode):
    """Nobody is asked while automatic retries are left."""
    _, model, waiting = asked(mode, auto_retries=1)
    assert waiting == []
    assert model.calls[1:] == [OPTIONS[0]]


def test_alternatives_are_redacted_and_called_as_they_are(mode):
    """A person sees what may be seen; the model gets the rest, too."""
    hide = {"redact": lambda text: text.replace("small", "***")}
    graph, model, (review,) = asked(mode, **hide)
    assert review.alternatives[1]["model"] == "***"
    assert "small" not in str(review.value)
    answer(mode, graph, thread(), approve(2))
    assert model.calls[1:] == [OPTIONS[1]]


def test_a_model_chooses_one_of_the_alternatives(mode):
    """It is shown them, and its choice reaches the call."""
    chat = FakeListChatModel(responses=['{"type": "approve", "choice": 2}'])
    _, model, waiting = asked(mode, reviewer=model_reviewer(chat))
    assert waiting == []
    assert model.calls[1:] == [OPTIONS[1]]


class P(BaseModel):
    """Typed params."""

    model: str = "first"


def test_typed_alternatives_come_back_with_their_type():
    """Each is encoded as params are."""
    seen = []

    def model(params: P) -> str:
        seen.append(params)
        return "no" if params.model == "first" else "1"

    @entrypoint(checkpointer=InMemorySaver())
    def ask(_):
        options = Alternatives([P(model="large"), P(model="small")])
        return retry_llm_call(model, P(), lambda *_: options, output=int)

    ask.invoke("", thread())
    assert resume(ask, thread(), approve(2)) == 1
    assert seen == [P(), P(model="small")]


@pytest.mark.parametrize("given", [[], {"model": "large"}])
def test_no_alternatives_are_a_mistake(given):
    """An empty list is told where it is made, and so are params that are not in a list."""
    wanted = "`params`: give a list that is not empty, of the params of each alternative; not"
    with pytest.raises(ValueError, match=wanted):
        Alternatives(given)
