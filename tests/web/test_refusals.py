"""A refused answer says by pointer which fields are wrong, whatever words it says it with."""

from typing import Annotated, Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import AfterValidator, BaseModel, Field
from starlette.testclient import TestClient

from graph_retry import AnswerRefused, edit, pending_reviews, respond, resume, retry_llm_call
from graph_retry.desk.web import create_app
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

CONFIG = {"configurable": {"thread_id": "t"}}
NASTY = [
    "`title` and `tags` are wrong",
    "3. /title: no, it is /tags/0/name",
    "(whole value): `to` is\n2. /tags/0/name: wrong",
    "The params are not valid:",
    "`title.name`",
]


def _taken(text: str) -> str:
    if text.startswith("!"):
        raise ValueError(text[1:])
    return text


Text = Annotated[str, AfterValidator(_taken)]


class Tag(BaseModel):
    name: Text = "ok"


class Letter(BaseModel):
    """Params, and an output, that refuse a text beginning with `!` in the words behind it."""

    title: Text = "ok"
    tags: list[Tag] = Field(default_factory=lambda: [Tag(), Tag()])
    to: Text = Field(default="ok", alias="recipient")
    size: int = 1


def asking(**options: Any) -> Any:
    """Return a graph that waits for an answer about a letter."""

    def call(_params: Letter) -> str:
        return '{"title": "ok", "size": "large", "tags": [{"name": "ok"}, {"name": "ok"}]}'

    def ask(_state: dict[str, Any]) -> None:
        retry_llm_call(call, Letter(), output=Letter, **options)

    builder = StateGraph(dict)
    builder.add_node("ask", ask)
    builder.add_edge(START, "ask")
    graph = builder.compile(checkpointer=InMemorySaver())
    graph.invoke({}, CONFIG)
    return graph


def refused(answer: Any, **options: Any) -> tuple[AnswerRefused, list[tuple[str, str]]]:
    """Give an answer that is not applied; return the error, and its issues as text by pointer."""
    graph = asking(**options)
    with pytest.raises(AnswerRefused) as error:
        resume(graph, CONFIG, answer)
    (review,) = pending_reviews(graph, CONFIG)
    assert review.answer_issues == error.value.issues
    assert review.problem == error.value.message
    return error.value, [(one["path"], one["message"]) for one in error.value.issues]


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("make", [lambda given: edit(**given), respond])
def test_each_bad_field_has_its_own_issue(make, text):
    """With its pointer, in a list as well; the text stays a sentence about all of them."""
    given = {"title": f"!{text}", "tags": [{"name": "ok"}, {"name": f"!{text}"}]}
    error, issues = refused(make(given))
    assert issues == [
        ("/title", f"Value error, {text}"),
        ("/tags/1/name", f"Value error, {text}"),
    ]
    assert "are not valid:\n1. /title: " in error.message or "is not valid:" in error.message


def test_fields_that_cannot_be_read_and_fields_that_are_not_valid_are_told_at_once():
    """Otherwise a person mends one, and is only then told of the other."""
    given = edit({"size": "large", "tags": [{"name": "ok"}, {"name": "!no"}], "titel": "x"})
    error, issues = refused(given)
    assert [path for path, _ in issues] == ["/size", "/titel", "/tags/1/name"]
    assert error.message.startswith('`size` expects a number, not "large".')


def test_issues_tell_nothing_that_is_redacted():
    """Their texts and undeclared keys go through the option `redact`; declared names stay."""
    given = edit({"title": "!Ada", "Ada": 1})
    _, issues = refused(given, redact=lambda text: text.replace("Ada", "***"))
    assert [path for path, _ in issues] == ["/***", "/title"]
    assert "Ada" not in str(issues)


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize("way", ["edit", "respond"])
@pytest.mark.slow
def test_each_issue_stands_beside_its_field(way, text):
    """The page looks only at pointers: names of other fields in a message mislead nobody."""
    needs = {"edit": "params", "respond": "output"}[way]
    with TestClient(create_app(asking(), authorize=lambda _: "ada"), headers=SAME_SITE) as client:
        form = Form(opened(client)[1])
        form.choose(way)
        key = next(value for name, value in form.controls if name == "review")
        if way == "respond":
            form.fill("output.number:/size", "2")
        # A line break in a message has to reach the refusal: the box of a text has them.
        form.fill(f"{needs}.text:/title", f"!{text}")
        form.fill(f"{needs}.text:/tags/1/name", f"!{text}")
        page = sent(client, form).text
    assert "Please correct the 2 fields marked below:" in page
    told = {
        where for where in ("/title", "/tags/0/name", "/tags/1/name") if beside(page, needs, where)
    }
    assert told == {"/title", "/tags/1/name"}
    assert key not in page  # the question was asked again


def beside(page: str, needs: str, where: str) -> bool:
    """Return whether a problem stands beside a field."""
    before = page.partition(f'{needs}.text:{where}"')[0]
    return 'class="problem"' in before[before.rindex('class="field-head"') :]
