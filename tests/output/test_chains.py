"""Chains of LangChain's that stream: the result is the one of their `invoke`."""

import httpx
import pytest
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import (
    CommaSeparatedListOutputParser,
    JsonOutputParser,
    PydanticOutputParser,
    StrOutputParser,
)
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, Completion, retry_llm_call
from tests.provider_server import provider_server
from tests.streams import call


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


class Block(BaseModel):
    """What has a `type` as an event of Anthropic's has."""

    type: str
    text: str


ADA = '{"name": "Ada", "age": 36}'


def says(text):
    """Return a chain that says a text, word by word, whatever it is asked."""
    asked = RunnableLambda(lambda _: "?")
    return asked | GenericFakeChatModel(messages=iter([AIMessage(text), AIMessage(text)]))


JSON_PARSER, TEXT = JsonOutputParser(), StrOutputParser()
CHAINS = {
    "text": lambda: says("two words") | TEXT,
    "message": lambda: says("two words"),
    "growing dict": lambda: says(ADA) | JSON_PARSER,
    "growing list": lambda: says('["one word", "two words"]') | JSON_PARSER,
    "growing list of dicts": lambda: says(f"[{ADA}, {ADA}]") | JSON_PARSER,
    "list by elements": lambda: says("Java, JavaScript, Go") | CommaSeparatedListOutputParser(),
    "number": lambda: says("36") | TEXT | RunnableLambda(int),
    "model": lambda: says(ADA) | PydanticOutputParser(pydantic_object=Person),
    "model with a type": lambda: (
        says('{"type": "text", "text": "a b"}') | PydanticOutputParser(pydantic_object=Block)
    ),
    "side by side": lambda: RunnableParallel(
        message=says("two words"),
        text=says("two words") | TEXT,
        dict=says(ADA) | JSON_PARSER,
        growing=says("[1, 12]") | JSON_PARSER,
        elements=says("a, ab, b") | CommaSeparatedListOutputParser(),
        number=RunnableLambda(lambda _: 7),
        none=RunnableLambda(lambda _: None),
        empty=RunnableLambda(lambda _: ""),
    ),
    "beside what was given": lambda: RunnablePassthrough.assign(said=says("two words") | TEXT),
    "nested": lambda: RunnableParallel(one=RunnableParallel(two=says("two words") | TEXT)),
}
GIVEN = {"question": HumanMessage("Who?"), "n": 1, "tags": ["a", "b"]}


def comparable(value):
    """Drop the id of a run from a message; it is another one each time."""
    if isinstance(value, dict):
        return {key: comparable(part) for key, part in value.items()}
    return (type(value), value.content) if isinstance(value, AIMessage) else value


@pytest.mark.parametrize("name", CHAINS)
def test_a_streamed_chain_gives_what_invoke_gives(mode, name):
    """Whatever way its pieces come in."""
    chain = CHAINS[name]()
    streamed = call(mode, chain.astream if mode.is_async else chain.stream, GIVEN)
    assert comparable(streamed) == comparable(CHAINS[name]().invoke(GIVEN))


PIECES = {
    "a list that grows": ([["a"], ["a", "b"], ["a", "bc"]], ["a", "bc"]),
    "an element that grows": ([[""], ["a"], ["ab"]], ["ab"]),
    "half a character": ([[], ["\ud83d"], ["\U0001f600"]], ["\U0001f600"]),
    "arguments that grow": ([[{"a": {}, "b": 1}], [{"a": {"c": 1}, "b": 1}, {}]], None),
    "numbers that grow": ([[], [1], [12], [12, 3]], [12, 3]),
    "one number that grows": ([1.0, 15], 15),
    "elements": ([[1], [2, 3], [], [4]], [1, 2, 3, 4]),
    "elements that differ late": ([["a"], ["ab"], ["b"]], ["a", "ab", "b"]),
    "the same element again": ([["a"], ["b"], ["a"]], ["a", "b", "a"]),
    "texts with pieces without news": ([None, "a", None, "b"], "ab"),
    "nothing": ([], ""),
    "nothing but None": ([None], ""),
    "a value and its usage": ([{"n": 1}, Completion("", {"total_tokens": 3})], {"n": 1}),
    "one object of any kind": ([b"a"], b"a"),
}


@pytest.mark.parametrize(("pieces", "result"), PIECES.values(), ids=PIECES)
def test_pieces_are_put_together(mode, pieces, result):
    """A list that continues the one before replaces it, any other is added to it."""
    expected = pieces[-1] if result is None else result
    assert call(mode, lambda _: iter(pieces), None) == expected


DOUBTS = {
    "another kind": ["a", {"n": 1}],
    "text after a value": [{"n": 1}, "a"],
    "a list after a value": [{"n": 1}, [1]],
    "two objects": [b"a", b"b"],
    "two numbers": [1, 2],
    "elements, or one that grows": [["Java"], ["JavaScript"]],
}


@pytest.mark.parametrize("pieces", DOUBTS.values(), ids=DOUBTS)
def test_pieces_that_do_not_fit_together_are_an_error(mode, pieces):
    """Nothing that came is dropped for something else."""
    with pytest.raises(AttemptsExhausted, match="the stream gave"):
        call(mode, lambda _: iter(pieces), None, review=False)


ANSWERS = {
    "right": ADA,
    "wrong": '{"name": "Ada", "age": "old"}',
    "repairable": '{"name": "Ada", "age": 36,}',
    "cut off": ADA[:-4],
    "prose": "It is Ada.",
}


@pytest.fixture(scope="module")
def chat():
    """Yield `(script, chat)`: the server's script and a model that asks it."""
    with provider_server() as script, httpx.Client() as client:
        key = {"api_key": "not-a-key", "max_retries": 0}
        yield script, ChatOpenAI(model="scripted", base_url=script.url, http_client=client, **key)


@pytest.mark.parametrize("said", ANSWERS)
@pytest.mark.parametrize("method", ["function_calling", "json_mode"])
def test_structured_output_with_its_message_is_read_as_from_invoke(chat, method, said):
    """The dict that streams key by key is one answer: repaired, validated and on record."""
    script, model = chat
    chain = model.with_structured_output(Person, method=method, include_raw=True)
    records = []
    for way in (chain.invoke, chain.stream):
        if method == "json_mode":
            script.say(ANSWERS[said], finish="length" if said == "cut off" else "stop")
        else:
            script.say("", ("Person", ANSWERS[said]))
        try:
            result = retry_llm_call(
                way, "?", output=Person, review=False, on_attempt=records.append
            )
        except AttemptsExhausted:
            result = None
        assert (result == Person(name="Ada", age=36)) is (said in ("right", "repairable"))
    invoked, streamed = records
    for key in ("repairs", "issues", "failure", "finish_reason"):
        assert streamed[key] == invoked[key], key


REFUSED = {"refusal": {"refusal": "I cannot."}, "content filter": {"finish": "content_filter"}}


# langchain-openai 1.0 warns when it serializes a response with a parsed answer.
@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings:UserWarning")
@pytest.mark.parametrize("said", [*ANSWERS, *REFUSED])
@pytest.mark.parametrize("method", ["json_schema", "function_calling", "json_mode"])
def test_structured_output_of_each_method_is_recorded_as_the_bare_model_s(mode, chat, method, said):
    """OpenAI's client validates `json_schema` itself; its error has the response."""
    script, model = chat
    is_called = method == "function_calling" and said in ("right", "wrong", "repairable", "cut off")
    bare = model.bind_tools([Person]) if is_called else model
    chains = [model.with_structured_output(Person, method=method, include_raw=r) for r in (0, 1)]
    records = []
    for chain in (bare, *chains):
        finish = "length" if said == "cut off" else "stop"
        how = {"finish": finish, **REFUSED.get(said, {})}
        text = ANSWERS.get(said, "")
        script.say(*(["", ("Person", text)] if is_called else [text]), **how)
        try:
            result = call(
                mode,
                chain.ainvoke if mode.is_async else chain.invoke,
                "?",
                output=Person,
                review=False,
                on_attempt=records.append,
            )
        except AttemptsExhausted:
            result = None
        assert (result == Person(name="Ada", age=36)) is (said in ("right", "repairable"))
    expected, *others = [
        {
            **{key: each[key] for key in ("finish_reason", "repairs")},
            "tokens": (each["usage"] or {}).get("total_tokens"),
            "kind": (each["failure"] or {}).get("kind"),
            "issues": [found["path"] for found in each["issues"]],
        }
        for each in records
    ]
    assert others == [expected, expected]
    assert expected["tokens"] == 10
