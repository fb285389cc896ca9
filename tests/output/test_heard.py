"""What a LangChain model answered in a call is known, whatever the user's function makes of it."""

import json
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, PydanticOutputParser, StrOutputParser
from langchain_core.output_parsers.openai_tools import PydanticToolsParser
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint
from pydantic import BaseModel

from graph_retry import (
    AttemptsExhausted,
    aretry_llm_call,
    retry_llm_call,
)
from graph_retry.hooks import Budget
from tests.loops import reviews, thread


class Trip(BaseModel):
    """A journey."""

    city: str
    days: int


class Model(BaseChatModel):
    """A model that gives the same answer, or its answers in turn."""

    answers: list[Any]
    calls: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        self.calls.append(messages)
        answer = self.answers[min(len(self.calls), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer)])


def said(text: str = "", finish: str = "stop", tokens: int = 10, **more: Any) -> AIMessage:
    """Make an answer with usage and a stop reason."""
    counts: Any = {"input_tokens": 0, "output_tokens": tokens, "total_tokens": tokens}
    ends = {"finish_reason": finish}
    return AIMessage(text, usage_metadata=counts, response_metadata=ends, **more)


def called(args: Any, finish: str = "stop") -> AIMessage:
    """Make an answer that calls the tool `Trip`; arguments that are a text are broken."""
    call = {"name": "Trip", "args": args, "id": "1"}
    if isinstance(args, str):
        broken = {**call, "error": None, "type": "invalid_tool_call"}
        return said("", finish, invalid_tool_calls=[broken])
    return said("", finish, tool_calls=[call])


TRIP = '{"city": "Oslo", "days": 3}'
ANSWERS = {
    "a comma too many": said('{"city": "Oslo", "days": 3,}'),
    "fenced": said(f"```json\n{TRIP}\n```"),
    "strict": said(TRIP),
    "a call": called({"city": "Oslo", "days": 3}),
    "a broken call": called('{"city": "Oslo", "days": 3,}'),
    "cut off": said('{"city": "Oslo", "da', "length"),
    "a call that was cut off": called({"city": "Oslo"}, "length"),
    "a wrong type": said('{"city": "Oslo", "days": "few"}'),
    "words": said("I cannot say."),
}


def chains(model: Any) -> dict[str, Any]:
    """Return what users make of a model to get a `Trip`."""
    return {
        "with_structured_output": model.with_structured_output(Trip),
        "include_raw": model.with_structured_output(Trip, include_raw=True),
        "function_calling": model | PydanticToolsParser(tools=[Trip], first_tool_only=True),
        "json_schema": model | PydanticOutputParser(pydantic_object=Trip),
        "json_mode": model | JsonOutputParser(),
    }


def made(mode: Any, function: Any, **options: Any) -> tuple[Any, Any, Any]:
    """Make a call with `output=Trip`; return its result, its review and its last record."""
    records: list[Any] = []
    given = {"output": Trip, "name": "ask", "on_attempt": records.append, **options}

    if mode.is_async:

        @entrypoint(checkpointer=InMemorySaver())
        async def graph(prompt: str) -> Any:
            return (await aretry_llm_call(function, {"prompt": prompt}, **given)).model_dump()
    else:

        @entrypoint(checkpointer=InMemorySaver())
        def graph(prompt: str) -> Any:
            return retry_llm_call(function, {"prompt": prompt}, **given).model_dump()

    result = mode.invoke(graph, "hi", thread())
    waiting = reviews(mode, graph, thread())
    return (None if waiting else result), (waiting[0] if waiting else None), records[-1]


def asking(mode: Any, chain: Any) -> Any:
    """Return a function that runs a chain, as users write it."""
    if not mode.is_async:
        return lambda params: chain.invoke(params["prompt"])

    async def ask(params: Any) -> Any:
        answer = await chain.ainvoke(params["prompt"])
        return answer  # noqa: RET504 - users write this

    return ask


@pytest.mark.parametrize("kind", ANSWERS)
@pytest.mark.parametrize("chain", chains(Model(answers=[], calls=[])))
def test_a_chain_in_a_function_is_read_like_the_bare_model(kind, chain, mode):
    """The value, the kind of failure, the text, the usage and the stop reason are the same."""
    plain = Model(answers=[ANSWERS[kind]], calls=[])
    bare, bare_review, bare_record = made(mode, asking(mode, plain))
    model = Model(answers=[ANSWERS[kind]], calls=[])
    value, review, record = made(mode, asking(mode, chains(model)[chain]))
    assert (value, len(model.calls)) == (bare, 1)
    assert record["usage"] == bare_record["usage"]
    assert record["finish_reason"] == bare_record["finish_reason"]
    assert (record["failure"] or {}).get("kind") == (bare_record["failure"] or {}).get("kind")
    # JSON mode parses what it can of a text; then the text of the record is of the parsed value.
    if review is not None and chain != "json_mode":
        assert review.raw_output == bare_review.raw_output


class StrictTrip(BaseModel):
    """A journey with a rule of its own."""

    city: str
    days: int


def loads(text: str) -> Any:
    """Read JSON in a helper."""
    return json.loads(text)


BROKEN = '{"city": "Oslo", "days": 3,}'


class OwnError(Exception):
    """An error of a client, with the answer in it."""

    def __init__(self, raw: str) -> None:
        super().__init__("the answer is not fine")
        self.raw = raw


def assigned(params: Any) -> Any:
    """Assign and return."""
    answer = json.loads(BROKEN)
    return answer  # noqa: RET504


def processed(params: Any) -> Any:
    """Change what was read."""
    answer = json.loads(BROKEN)
    return {**answer, "days": answer["days"] * 2}


def by_another_schema(params: Any) -> Any:
    """Read by a schema that is not the one of `output=`."""
    return StrictTrip.model_validate({"city": "Oslo"})


def refused_by_a_check(params: Any) -> Any:
    """Refuse a valid answer for a reason of the user's own."""
    raise OwnError(TRIP)


def from_a_cause(params: Any) -> Any:
    """Wrap the reader's error, as clients do."""
    return wrapping(BROKEN)


def wrapping(text: str) -> Any:
    """Read JSON, or raise an error of its own with the cause."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise OwnError(text) from error


@pytest.mark.parametrize(
    ("function", "is_read"),
    [
        (lambda _: json.loads(BROKEN), True),
        (lambda _: loads(BROKEN), True),
        (lambda _: Trip.model_validate_json(BROKEN), True),
        (assigned, True),
        (processed, False),
        (refused_by_a_check, False),
        (from_a_cause, False),
    ],
)
def test_the_answer_in_an_exception_is_shown_and_read_only_if_it_would_be_the_result(
    function, is_read
):
    """What the function does with an answer, or refuses, is never bypassed; the text is shown."""
    records: list[Any] = []
    options: Any = {"output": Trip, "review": False, "on_attempt": records.append}
    if is_read:
        assert retry_llm_call(function, {}, **options) == Trip(city="Oslo", days=3)
        return
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(function, {}, **options)
    assert records[-1]["raw"]["text"] in (BROKEN, TRIP)


def test_an_error_of_another_schema_is_no_answer_for_this_one():
    """A check by a schema of the user's own is not replaced by `output=dict`."""
    model = Model(answers=[said(TRIP)], calls=[])

    def ask(params: Any) -> Any:
        model.invoke(params["prompt"])
        return by_another_schema(params)

    with pytest.raises(AttemptsExhausted, match="StrictTrip") as caught:
        retry_llm_call(ask, {"prompt": "hi"}, output=dict, review=False)
    (record,) = caught.value.attempts
    assert record["raw"] == {"text": TRIP}
    assert record["usage"]["total_tokens"] == 10


def test_a_request_that_failed_after_an_answer_has_no_text():
    """The error of a second model is not about the first one's answer, which was paid."""
    model = Model(answers=[said("a draft"), ConnectionError("down")], calls=[])

    def ask(params: Any) -> Any:
        draft = model.invoke(params["prompt"])
        return model.invoke([draft])

    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(ask, {"prompt": "hi"}, output=Trip, review=False)
    (record,) = caught.value.attempts
    assert (record["raw"], record["failure"]["kind"]) == (None, "transient")
    assert record["usage"]["total_tokens"] == 10


def test_several_answers_are_in_the_ledger_and_their_usage_is_added():
    """The last one is the result; a call inside the call has its own ledger."""
    model = Model(answers=[said("a draft"), said("inner", tokens=500), said(TRIP)], calls=[])
    records: list[Any] = []

    def ask(params: Any) -> Any:
        model.invoke(params["prompt"])
        retry_llm_call(model.invoke, "inner", name="inner")
        return (model | StrOutputParser()).invoke(params["prompt"])

    options: Any = {"output": Trip, "on_attempt": records.append}
    assert retry_llm_call(ask, {"prompt": "hi"}, **options) == Trip(city="Oslo", days=3)
    assert records[-1]["usage"]["total_tokens"] == 20
    assert records[-1]["raw"] == {"text": TRIP, "earlier": ["a draft"]}


def test_a_function_that_forgets_to_return_is_told_so():
    """Its model's answer is not its result, because the function may have changed it."""
    model = Model(answers=[said(TRIP)], calls=[])

    def ask(params: Any) -> Any:
        model.invoke(params["prompt"])

    with pytest.raises(AttemptsExhausted, match="forgotten `return`"):
        retry_llm_call(ask, {"prompt": "hi"}, output=Trip, review=False)


def test_a_budget_counts_what_a_chain_used_and_says_once_what_it_cannot_count(caplog):
    """The tokens of `with_structured_output` reach the budget; without figures it warns."""
    model = Model(answers=[said("no", tokens=300)], calls=[])
    chain = model.with_structured_output(Trip)

    def again(error: Any, attempt: int, params: Any) -> Any:
        return {"prompt": f"{attempt}"}

    options: Any = {"output": Trip, "review": False, "auto_retries": 9, "on_retry": again}
    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(
            lambda p: chain.invoke(p["prompt"]),
            {"prompt": ""},
            budget=Budget(tokens=800),
            **options,
        )
    assert len(caught.value.attempts) == 3
    assert not [line for line in caplog.messages if "cannot count" in line]
    with pytest.raises(AttemptsExhausted):
        retry_llm_call(
            lambda _: "no", {"prompt": ""}, name="silent", budget=Budget(tokens=800), **options
        )
    (told,) = [line for line in caplog.messages if "cannot count" in line]
    assert "`silent`" in told
    assert "usage" in told


def test_an_answer_that_an_exception_has_in_its_message_as_well_is_shown():
    """For example the body of pydantic-ai's `UnexpectedModelBehavior`."""

    class UnexpectedError(Exception):
        def __init__(self, message, body):
            super().__init__(f"{message}, body:\n{body}")
            self.message, self.body = message, body

    def fails(_):
        raise UnexpectedError("Too many retries", '{"name": "Ada"}')

    with pytest.raises(AttemptsExhausted) as caught:
        retry_llm_call(fails, {}, output=dict[str, str], review=False)
    assert caught.value.attempts[-1]["raw"] == {"text": '{"name": "Ada"}'}


def test_the_answer_in_an_exception_is_neither_its_prompt_nor_a_part():
    """A client keeps its prompt beside the answer, and pydantic the whole object of a lost key."""

    class ParseError(Exception):
        def __init__(self, prompt, raw_output):
            super().__init__("no such city")
            self.prompt, self.raw_output = prompt, raw_output

    def fails(_):
        raise ParseError('Answer as {"city": "the name of the city", "days": 3}', "{'city': 1}")

    for function, raw in (
        (fails, {"text": "{'city': 1}"}),
        (lambda _: Trip.model_validate_json('{"town": "Oslo"}'), {"value": {"town": "Oslo"}}),
    ):
        with pytest.raises(AttemptsExhausted) as caught:
            retry_llm_call(function, {}, output=Trip, review=False)
        assert caught.value.attempts[-1]["raw"] == raw
    wrapped = f'{{"answer": {TRIP}}}'
    read = retry_llm_call(lambda _: Trip.model_validate_json(wrapped), {}, output=Trip)
    assert read == Trip(city="Oslo", days=3)
