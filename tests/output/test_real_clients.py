"""What the clients of OpenAI and Anthropic return, from a loopback server, in both forms."""

import asyncio
import functools
import operator

import anthropic
import httpx
import openai
import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import PydanticOutputParser
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic import BaseModel

from graph_retry import create_retry_node, edit
from tests.loops import Model, State, answer, one_call, reviews, thread
from tests.provider_server import provider_server


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


BOTH = pytest.mark.parametrize(
    ("form", "mode"), [("node", "sync"), ("function", "async")], indirect=True
)
ADA, BOB = '{"name": "Ada", "age": 36}', '{"name": "Bob", "age": 7}'
DRAFT = 'Perhaps {"name": "Eve", "age": 1}? Let me note it.'


@pytest.fixture
def script():
    """Serve a script."""
    with provider_server() as served:
        yield served


def openai_chat(script, client):
    """Return LangChain's model of OpenAI's."""
    return ChatOpenAI(
        model="scripted", base_url=script.url, api_key="none", max_retries=0, http_client=client
    )


def ask_langchain_openai(script, client, params):
    """Ask by LangChain's model."""
    return openai_chat(script, client).bind_tools([Person]).invoke(params["prompt"])


def ask_include_raw(script, client, params):
    """Ask by LangChain's structured output, which keeps the message."""
    chat = openai_chat(script, client)
    made = chat.with_structured_output(Person, method="function_calling", include_raw=True)
    return made.invoke(params["prompt"])


def ask_openai(script, client, params):
    """Ask by OpenAI's own client."""
    made = openai.OpenAI(api_key="none", base_url=script.url, http_client=client)
    asked = [{"role": "user", "content": params["prompt"]}]
    return made.chat.completions.create(model="scripted", messages=asked)


def anthropic_chat(script):
    """Return LangChain's model of Anthropic's."""
    return ChatAnthropic(
        model_name="scripted",
        base_url=script.anthropic_url,
        api_key="none",
        max_retries=0,
        timeout=30,
        stop=None,
    )


def ask_langchain_anthropic(script, client, params):
    """Ask by LangChain's model of Anthropic's."""
    return anthropic_chat(script).bind_tools([Person]).invoke(params["prompt"])


def ask_anthropic(script, client, params):
    """Ask by Anthropic's own client."""
    asked = [{"role": "user", "content": params["prompt"]}]
    with anthropic.Anthropic(api_key="none", base_url=script.anthropic_url, max_retries=0) as made:
        return made.messages.create(model="scripted", messages=asked, max_tokens=10)


def stream_langchain_openai(script, client, params):
    """Ask by LangChain's model, and add up what streams in."""
    chat = openai_chat(script, client).bind_tools([Person])
    return functools.reduce(operator.add, chat.stream(params["prompt"]))


def stream_openai(script, client, params):
    """Ask by OpenAI's own client, and let it add up what streams in."""
    made = openai.OpenAI(api_key="none", base_url=script.url, http_client=client, max_retries=0)
    asked = [{"role": "user", "content": params["prompt"]}]
    with made.chat.completions.stream(model="scripted", messages=asked) as stream:
        return stream.get_final_completion()


def stream_langchain_anthropic(script, client, params):
    """Ask by LangChain's model of Anthropic's, and add up what streams in."""
    chat = anthropic_chat(script).bind_tools([Person])
    return functools.reduce(operator.add, chat.stream(params["prompt"]))


def stream_anthropic(script, client, params):
    """Ask by Anthropic's own client, and let it add up what streams in."""
    asked = [{"role": "user", "content": params["prompt"]}]
    made = anthropic.Anthropic(api_key="none", base_url=script.anthropic_url, max_retries=0)
    with made, made.messages.stream(model="scripted", messages=asked, max_tokens=9) as stream:
        return stream.get_final_message()


OPENAI = [ask_langchain_openai, ask_include_raw, ask_openai]
WHOLE = [*OPENAI, ask_langchain_anthropic, ask_anthropic]
STREAMS = [stream_langchain_openai, stream_openai, stream_langchain_anthropic, stream_anthropic]


def start(form, mode, script, client, output, **options):
    """Run one call through a client until it ends or waits."""
    with httpx.Client() as http:
        model = Model(lambda params: client(script, http, params))
        graph = one_call(form, mode, model, InMemorySaver(), output=output, **options)
        state = mode.invoke(graph, {"params": {"prompt": "Who?"}}, thread())
        return graph, model, state


@BOTH
@pytest.mark.parametrize("client", [*WHOLE, *STREAMS])
def test_a_tool_call_beside_text_is_the_answer(form, mode, script, client):
    """Whatever draft the text holds."""
    script.say(DRAFT, ("Person", ADA))
    _, model, state = start(form, mode, script, client, Person)
    assert Person.model_validate(state["output"]) == Person(name="Ada", age=36)
    assert len(model.calls) == 1


@BOTH
@pytest.mark.parametrize("client", [*OPENAI, *STREAMS])
def test_broken_arguments_are_repaired_like_text(form, mode, script, client):
    """A trailing comma costs no second call; Anthropic parses what is not streamed itself."""
    script.say("", ("Person", '{"name": "Ada", "age": 36,}'))
    _, model, state = start(form, mode, script, client, Person)
    assert Person.model_validate(state["output"]) == Person(name="Ada", age=36)
    assert len(model.calls) == 1


@pytest.mark.parametrize("client", OPENAI)
def test_arguments_that_cannot_be_read_are_shown_and_fed_back(form, mode, script, client):
    """The review and the next prompt hold what the model wrote."""
    script.say("", ("Person", '{"name": "Ada", "age": '), finish="length")
    with httpx.Client() as http:
        model = Model(lambda params: client(script, http, params))
        graph = one_call(
            form, mode, model, InMemorySaver(), output=Person, feedback="full", auto_retries=0
        )
        mode.invoke(graph, {"params": {"prompt": "Who?"}}, thread())
        (review,) = reviews(mode, graph, thread())
        assert review.failure["kind"] == "truncated"
        assert review.value["raw_output"] == '{"name": "Ada", "age": '
        assert '{"name": "Ada", "age": ' in review.suggested_params["prompt"]

        script.say(None, ("Person", ADA))
        state = answer(mode, graph, thread(), edit(prompt="Who is it?"))
    assert Person.model_validate(state["output"]) == Person(name="Ada", age=36)
    assert len(model.calls) == 2


@BOTH
@pytest.mark.parametrize("client", [*OPENAI, *STREAMS])
def test_what_is_cut_off_is_no_answer(form, mode, script, client):
    """Of `{"age": 3`, Anthropic's client makes a 3. Whole calls tell nothing about further ones."""
    for output, arguments in ((Person, ADA[:-2]), (list[Person], ADA)):
        script.say("", ("Person", arguments), finish="length")
        graph, model, _ = start(form, mode, script, client, output)
        (review,) = reviews(mode, graph, thread())
        assert review.failure["kind"] == "truncated"
        assert len(model.calls) == 1


@BOTH
@pytest.mark.parametrize(
    "client", [ask_langchain_openai, ask_openai, ask_include_raw, ask_anthropic, *STREAMS]
)
def test_parallel_tool_calls_are_a_list(form, mode, script, client):
    """In the order they were made, one of them too."""
    script.say("Two:", ("Person", ADA), ("Person", BOB))
    _, _, state = start(form, mode, script, client, list[Person])
    people = [Person.model_validate(each) for each in state["output"]]
    assert people == [Person(name="Ada", age=36), Person(name="Bob", age=7)]

    script.say("One:", ("Person", BOB))
    _, _, state = start(form, mode, script, client, list[Person])
    assert [Person.model_validate(each).name for each in state["output"]] == ["Bob"]


@BOTH
@pytest.mark.parametrize("client", [ask_openai, *STREAMS[:3]])
def test_parallel_calls_keep_their_order(form, mode, script, client):
    """Also where one of them has to be repaired."""
    script.say(None, ("Person", '{"name": "Ada", "age": 36,}'), ("Person", BOB))
    _, _, state = start(form, mode, script, client, list[Person])
    assert [Person.model_validate(each).name for each in state["output"]] == ["Ada", "Bob"]


def test_one_of_parallel_calls_may_be_broken(form, mode, script):
    """LangChain lists those it could read first, without their order, and so it stays."""
    script.say(None, ("Person", '{"name": "Ada", "age": 36,}'), ("Person", BOB))
    _, _, state = start(form, mode, script, ask_langchain_openai, list[Person])
    assert [Person.model_validate(each).name for each in state["output"]] == ["Bob", "Ada"]


def test_the_call_named_after_the_type_is_the_answer(form, mode, script):
    """Beside calls of other tools."""
    script.say(None, ("search", '{"query": "Ada"}'), ("Person", ADA))
    _, _, state = start(form, mode, script, ask_langchain_openai, Person)
    assert Person.model_validate(state["output"]).name == "Ada"


def test_text_is_the_answer_where_text_is_wanted(form, mode, script):
    """A tool call beside it is not."""
    script.say("Ada, 36.", ("Person", ADA))
    _, _, state = start(form, mode, script, ask_langchain_openai, str)
    assert state["output"] == "Ada, 36."


@BOTH
@pytest.mark.parametrize("client", STREAMS)
def test_a_stream_that_breaks_off_is_a_transient_failure(form, mode, script, client):
    """In the middle of an event or with an event that says so; what came before is no answer."""
    error = "server_error" if "openai" in client.__name__ else "overloaded_error"
    for breaks in ({}, {"error": error}):
        script.break_off(DRAFT, ("Person", ADA), **breaks)
        graph, model, _ = start(form, mode, script, client, Person)
        (review,) = reviews(mode, graph, thread())
        assert review.failure["kind"] == "transient"
        assert len(model.calls) == 1


@pytest.mark.parametrize("method", ["invoke", "ainvoke"])
def test_a_runnable_is_a_model_call(method):
    """A chain is invoked with the params, under the name it has, with the config of the node."""
    seen = []

    def prompt(params, config):
        seen.append(config["metadata"]["langgraph_node"])
        return params["prompt"]

    chain = RunnableLambda(prompt) | RunnableLambda(lambda text: f'{{"name": "{text}", "age": 1}}')
    node = create_retry_node(chain, dict, output=Person, review=False)
    builder = StateGraph(State).add_node("ask", node).add_edge(START, "ask")
    graph = builder.compile()
    given = {"params": {"prompt": "Ada"}}
    state = graph.invoke(given) if method == "invoke" else asyncio.run(graph.ainvoke(given))
    assert state["output"] == {"name": "Ada", "age": 1}
    assert state["attempts"][0]["name"] == chain.get_name()
    assert seen == ["ask"]


def test_what_a_parser_could_not_read_is_read_here(form, mode):
    """The model's text is in the parser's error: it is read, or shown and fed back."""
    parser = PydanticOutputParser(pydantic_object=Person)
    model = Model(lambda params: parser.invoke(AIMessage(params["says"])))
    graph = one_call(form, mode, model, InMemorySaver(), output=Person)
    mode.invoke(graph, {"params": {"says": "It is Ada."}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert (review.failure["kind"], review.value["raw_output"]) == ("invalid_syntax", "It is Ada.")

    answer(mode, graph, thread(), edit(says='{"name": "Ada"}'))
    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "invalid_schema"
    assert [issue["path"] for issue in review.value["issues"]] == ["/age"]
    state = answer(mode, graph, thread(), edit(says=ADA))
    assert Person.model_validate(state["output"], from_attributes=True).age == 36
