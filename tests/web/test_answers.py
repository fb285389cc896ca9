"""Every decision on the page, as a browser without JavaScript sends it."""

import json
import re

import pytest
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry.agents import RetryMiddleware
from graph_retry.threads import attempts_of, list_reviews
from tests.web.forms import Form


def opened(client, number=0, **view):
    """Open a review of the inbox; return its address and its page."""
    links = re.findall(r'href="(/r/[0-9a-f]{24})"', client.get("/", params=view).text)
    return links[number], client.get(links[number]).text


def sent(client, form):
    """Send a form and return what the browser shows in the end."""
    page = client.post(form.action, files=form.posted())
    while 'http-equiv="refresh"' in page.text:  # each waits for the answer a while
        page = client.get(str(page.url))
    return page


def last_decision(desk):
    """Return the last decision that the thread's ledger has."""
    (ledger,) = attempts_of(desk.graph, {"configurable": {"thread_id": "t1"}})
    return next(each["decision"] for each in reversed(ledger.attempts) if each["decision"])


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("", "The model&#39;s answer cannot be read."),
        ("no", "The model&#39;s answer cannot be read."),
        (TimeoutError("30 s"), "The call failed for now. The same call may succeed later."),
    ],
)
def test_a_call_without_an_output_has_a_page(desk, answer, title):
    """An error, an empty text and prose: the heading says what happened."""

    def says(_params):
        if isinstance(answer, Exception):
            raise answer
        return answer

    desk.says = says
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
    assert title in page
    assert ("What the model wrote" in page) == (answer == "no")


def test_an_approval_calls_again_with_what_is_shown(desk):
    """One press, one call with the same params, and the ledger knows who pressed."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("approve")
        page = sent(client, form)
    assert "attempt 2 failed, too" in page.text
    assert len(desk.calls) == 2
    assert desk.calls[0] == desk.calls[1]
    decision = last_decision(desk)
    assert (decision["type"], decision["by"], decision["channel"]) == ("approve", "ada", "web")


def test_an_edit_calls_again_with_every_kind_of_field(desk):
    """What is typed arrives with the type that the field has; what is not touched stays."""
    desk.wait("t1", {"messages": [{"role": "user", "content": "Hello"}], "extra": {"n": 2**60 + 1}})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        for field, text in {
            "text:/prompt": "How\r\nmany?",
            "choice:/model": '"large"',
            "number:/temperature": "0.25",
            "number:/seed": "7",
            "date:/day": "2030-05-01",
            "number:/options/top": "5",
            "text:/options/tags/0": "b",
            "text:/messages/0/content": "Bye",
        }.items():
            form.fill(
                f"params.{field}", text
            ) if field != "flag:/verbose" else form.controls.append(
                [next(name for name, _ in form.controls if name.endswith("flag:/verbose")), text]
            )
        form.press_radio("flag:/verbose", "true")
        form.untick("none:/seed")
        form.untick("none:/day")
        page = sent(client, form)
    assert "its output is valid" in page.text
    params = desk.calls[1].model_dump(mode="json")
    assert params == {
        "prompt": "How\nmany?",
        "messages": [{"role": "user", "content": "Bye"}],
        "model": "large",
        "temperature": 0.25,
        "seed": 7,
        "day": "2030-05-01",
        "verbose": True,
        "options": {"top": 5, "tags": ["b"]},
        "extra": {"n": 2**60 + 1},
    }


def test_an_output_is_written_in_a_form(desk):
    """The form has what the model wrote, marks what is wrong, and leaves out what was left out."""
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
        assert 'data-place="/count" title="count">&#34;many&#34;</mark>' in page
        form = Form(page)
        form.choose("respond")
        form.fill("output.number:/count", "12")
        page = sent(client, form).text
    assert "Your output is used" in page
    assert [result.model_dump() for result in desk.results] == [
        {"name": "Ada", "count": 12, "note": None}
    ]
    assert len(desk.calls) == 1


def test_a_comment_is_told_to_the_model(desk):
    """The words reach the params; without words nothing is sent."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("comment")
        page = sent(client, form)
        assert (page.status_code, "Write something first." in page.text) == (422, True)
        form = Form(page.text)
        form.fill("words.comment", "Count the ships.")
        sent(client, form)
    assert "Count the ships." in desk.calls[1].model_dump_json()


@pytest.mark.parametrize("way", ["reject", "accept"])
def test_a_call_is_ended(desk, way):
    """Stopping and taking an output as it is end the call, with the reason on record."""
    desk.options["allowed_decisions"] = ["approve", "reject", "accept"]
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose(way)
        form.fill(f"words.{way}", "It is right so.")
        page = sent(client, form).text
        assert "Nothing else waits." in page
    decision = last_decision(desk)
    assert (decision["type"], decision["message"]) == (way, "It is right so.")


def test_a_valid_output_is_taken(desk):
    """A call that waits for approval says so, and is over with one press."""
    desk.options["review"] = "always"
    desk.wait("t1", {"model": "large"})
    with desk.client() as client:
        page = opened(client)[1]
        assert "Should it be used?" in page
        form = Form(page)
        form.choose("approve")
        assert "The output is used." in sent(client, form).text
    assert len(desk.calls) == 1


def test_only_what_is_allowed_is_offered(desk):
    """The page has a way for each allowed decision, and no other; another is not taken."""
    desk.options["allowed_decisions"] = ["edit", "reject"]
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
        assert re.findall(r'value="(\w+)" data-way', page) == ["edit", "reject"]
        form = Form(page)
        form.choose("approve")
        assert "Choose what should happen." in sent(client, form).text
    assert len(desk.calls) == 1


@pytest.mark.parametrize(
    ("way", "field", "typed", "told"),
    [
        ("edit", "params.number:/temperature", "warm", "Write a number, such as 3 or 0.5."),
        ("edit", "params.json:/extra", "{,}", "This is not JSON"),
        ("respond", "output.number:/count", "1.5", "Input should be a valid integer"),
    ],
)
def test_what_is_refused_comes_back_as_it_was_typed(desk, way, field, typed, told):
    """Nothing typed is lost, the reason stands beside its field, and the model was not called."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose(way)
        form.fill(field, typed)
        form.fill("text:/prompt", "A long text that nobody wants to type twice.")
        page = sent(client, form).text
        again = Form(page)
        assert [typed] == [text for name, text in again.controls if name.endswith(field)]
        assert "A long text that nobody wants to type twice." in dict(again.controls).values()
        beside = page.partition(f'{field}"')[0]
        assert told in beside[beside.rindex('class="field-head"') :]
        assert f'value="{way}" data-way="{way[0]}" checked' in page
        again.fill(field, {"warm": "0.5", "{,}": "{}", "1.5": "15"}[typed])
        assert "attempt 2 failed, too" in (done := sent(client, again).text) or "is used" in done
    assert len(desk.calls) == (1 if way == "respond" else 2)


def test_an_edit_that_changes_nothing_is_no_answer(desk):
    """Nobody pays for a call that they believe to be another one."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        page = sent(client, form)
    assert (page.status_code, "Nothing is changed yet" in page.text) == (422, True)
    assert len(desk.calls) == 1


def test_lists_grow_and_shrink_without_losing_what_is_typed(desk):
    """Buttons of a list change the form only; what was typed elsewhere stays."""
    desk.wait("t1", {"messages": [{"role": "user", "content": "one"}]})
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("number:/temperature", "warm")
        form.press("params add:/messages")
        form = Form(sent(client, form).text)
        form.fill("text:/messages/1/content", "two")
        form.press("params remove:/messages/0")
        form = Form(sent(client, form).text)
        form.fill("number:/temperature", "0.5")
        sent(client, form)
    assert len(desk.calls) == 2
    assert desk.calls[1].messages == [{"role": "user", "content": "two"}]
    assert desk.calls[1].temperature == 0.5


def test_a_suggestion_can_be_taken_by_field(desk):
    """The form shows the present call; a press puts the suggestion in, marked, with a way back."""

    def suggest(error, attempt, params):
        return params.model_copy(update={"prompt": "How many ships?", "temperature": 0.0})

    desk.options["on_retry"] = suggest
    desk.wait()
    with desk.client() as client:
        page = opened(client)[1]
        assert "How many<ins> ships</ins>?" in page
        form = Form(page)
        form.choose("edit")
        assert [text for name, text in form.controls if name.endswith(":/prompt")] == ["How many?"]
        assert "Nothing is changed yet" in sent(client, form).text
        form.press("params take:1")
        page = sent(client, form).text
        assert page.count("from the suggestion</span>") == 2
        form = Form(page)
        form.press("params old:/prompt")
        form = Form(sent(client, form).text)
        form.fill("choice:/model", '"large"')
        sent(client, form)
    made = desk.calls[1]
    assert (made.prompt, made.temperature, made.model) == ("How many?", 0.0, "large")


def test_a_form_that_is_sent_twice_is_one_answer(desk):
    """A double click, a reload and a second press send the same answer."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("approve")
        pages = {sent(client, form).text for _ in range(3)}
    assert len(desk.calls) == 2
    assert len({re.sub(r'/r/\w+|content="[^"]*"', "", page) for page in pages}) == 1


def test_questions_of_a_thread_are_answered_together(desk):
    """One page, one press: each gets its own answer, and one that is left stays open."""
    desk.wait("t1", {"prompt": "a"}, {"prompt": "b"}, {"prompt": "c"})
    with desk.client() as client:
        address, page = opened(client)
        assert "This thread asks 3 questions." in page
        form = Form(client.get(f"{address}?together=1").text)
        form.choose("approve", 0)
        form.choose("reject", 2)
        assert "2 answers are applied." in sent(client, form).text
    (left,) = [each for each in list_reviews(desk.graph) if each.attempt == 1]
    assert len(desk.calls) == 4
    assert left.params["prompt"] in "abc"


def test_an_answer_that_ends_in_an_error_says_so(desk):
    """A graph that breaks after an answer is told with its error, not with a blank page."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("choice:/model", '"large"')
        desk.breaks = True
        page = sent(client, form).text
    assert "stopped with an error after your answer" in page
    assert "the disk is full" in page
    assert len(desk.calls) == 2


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"name": "Ada", "count": "lots"}', ['<b class="path">count</b>', "<code>&#34;lots&#34;"]),
        ("Hello!", ["InvalidJSON: There is no JSON document in the text."]),
    ],
)
def test_a_next_failure_is_told_as_on_the_page_of_its_review(desk, said, shown):
    """Fields are named, and a received value has no Python type."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("approve")
        desk.says = lambda params: said
        page = sent(client, form).text
    assert "attempt 2 failed, too." in page
    assert all(text in page for text in shown)
    assert "(str)" not in page


def test_issues_stay_beside_the_values_that_nobody_changed(desk):
    """A refusal of one field does not hide what is still wrong with another."""
    note = "n" * 61
    desk.says = lambda params: json.dumps({"name": "Ada", "count": "many", "note": note})
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("respond")
        page = sent(client, form).text
        assert "Write a number" in page
        assert page.count("String should have at most 60") == 2  # at the top and beside its field
        form = Form(page)
        form.fill("output.text:/note", "n")
        page = sent(client, form).text
        assert page.count("String should have at most 60") == 1


class Scripted(GenericFakeChatModel):
    """A chat model that says what it is given, and takes tools."""

    def bind_tools(self, *_args, **_options):
        return self


def test_the_page_of_a_tools_call_says_nothing_of_a_model(desk):
    """In an agent a tool failed: no model rejected anything, and the model goes on in any case."""

    @tool
    def find(city: str) -> str:
        """Find a city."""
        raise LookupError(f"no {city}")

    call = {"name": "find", "args": {"city": "Ur"}, "id": "1"}
    model = Scripted(messages=iter([AIMessage("", tool_calls=[call]), AIMessage("Sorry.")]))
    desk.graph = create_agent(
        model,
        tools=[find],
        middleware=[RetryMiddleware(tools=["find"])],
        checkpointer=InMemorySaver(),
    )
    config = {"configurable": {"thread_id": "t1"}}
    desk.graph.invoke({"messages": [("user", "Where is Ur?")]}, config)
    with desk.client() as client:
        page = opened(client)[1].partition("<main")[2].partition("</main>")[0]
        form = Form(page)
        form.choose("reject")
        done = sent(client, form).text.partition("<main")[2].partition("</main>")[0]
    assert "The call ended with an error." in page
    assert "Make the call again, unchanged" in page
    assert "The call is stopped." in done
    assert not [text for text in (page, done) if re.search(r"\b(model|provider)\b", text)]
    assert desk.graph.get_state(config).values["messages"][-1].content == "Sorry."
