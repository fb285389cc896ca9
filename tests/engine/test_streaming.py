"""Calls that stream: what they give, what stops them, what is seen of them on the way."""

import json
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver

import graph_retry.threads
from graph_retry import (
    AttemptsExhausted,
    Completion,
    edit,
    retry_llm_call,
)
from graph_retry.data import replay
from tests.loops import answer, one_call, reviews, thread
from tests.parts import draws
from tests.streams import BAD, GOOD, Person, Stream, call


def test_a_stream_gives_what_the_whole_text_gives(mode):
    """The pieces are put together, read and validated as any answer is."""
    stream = Stream(mode)
    assert call(mode, stream, f"```json\n{GOOD}\n```", output=Person).age == 36
    assert call(mode, stream, "as it is") == "as it is"
    assert stream.closed == 2


def test_a_lost_answer_is_stopped_and_goes_up_the_ladder(form, mode):
    """The stream is closed, the attempt is on record with what had come, and a person may edit."""
    stream = Stream(mode)
    graph = one_call(form, mode, stream, InMemorySaver(), output=Person)
    mode.invoke(graph, {"params": {"text": BAD}}, thread())
    assert stream.closed == 1
    assert stream.taken < len(BAD) / 8 / 2

    (review,) = reviews(mode, graph, thread())
    assert review.failure["kind"] == "invalid_schema"
    assert review.value["issues"][0]["path"] == "/age"
    state = answer(mode, graph, thread(), edit(text=GOOD))
    assert dict(state["output"])["age"] == 36
    assert len(stream.calls) == 2

    (ledger,) = mode.call(graph_retry.threads, "attempts_of", graph, thread())
    first, second = ledger.attempts
    assert first["stopped_early"] is True
    assert BAD.startswith(first["raw"]["text"])
    assert "stopped_early" not in second


def test_the_model_is_told_where_it_was_stopped(mode):
    """Feedback names the error, and says that the rest was not read."""
    stream, prompts = Stream(mode), []

    def ask(prompt):
        prompts.append(prompt)
        return stream(GOOD if "stopped there" in prompt else BAD)

    options = {"output": Person, "feedback": "errors_only", "auto_retries": 1}
    assert call(mode, ask, "Who?", **options).age == 36
    assert "/age: Input should be a valid integer" in prompts[1]


def test_early_stop_can_be_switched_off(mode):
    """With `stop_early=False` the whole of a wrong answer is there to see."""
    stream = Stream(mode)
    with pytest.raises(AttemptsExhausted) as caught:
        call(mode, stream, BAD, output=Person, stop_early=False, review=False)
    assert caught.value.attempts[0]["raw"] == {"text": BAD}
    with pytest.raises(AttemptsExhausted) as caught:  # nobody knows what a function makes of it
        call(mode, stream, BAD, output=Person, repair=lambda text: text, review=False)
    assert caught.value.attempts[0]["raw"] == {"text": BAD}


def test_a_stopped_attempt_is_replayed_as_it_was(mode):
    """The ledger says the same when it is judged again, and something else of another type."""
    with pytest.raises(AttemptsExhausted) as caught:
        call(mode, Stream(mode), BAD, output=Person, review=False)
    (again,) = replay(caught.value.attempts, output=Person)
    assert again.differs == []
    (other,) = replay(caught.value.attempts, output=dict)
    assert other.attempt["status"] == "failed"
    assert other.attempt["failure"]["kind"] == "truncated"


def chunked(text, cuts):
    """Cut a text at the given places."""
    places = sorted({0, len(text), *(cut % (len(text) + 1) for cut in cuts)})
    return [text[low:high] for low, high in pairwise(places)]


HALVES = [
    ('{"name": "\ud83d', '\ude00", "age": 36, "notes": []}'),
    ('{"name": "\\ud83d', '\\ude00", "age": 36, "notes": []}'),
    ("\ufeff", '{"name": "\U0001f600", "age":', ' 36, "notes": []}'),
]


@pytest.mark.parametrize("pieces", HALVES)
@pytest.mark.parametrize("as_chunks", [False, True])
def test_a_character_may_come_in_two_pieces(mode, pieces, as_chunks):
    """Some servers cut an emoji in the middle, and some begin with a byte order mark."""

    def ask(_):
        return (AIMessageChunk(content=piece) if as_chunks else piece for piece in pieces)

    assert call(mode, ask, None, output=Person).name == "\U0001f600"
    text = call(mode, ask, None)
    assert as_chunks or text == "".join(pieces).replace("\ud83d\ude00", "\U0001f600")


def test_half_a_character_that_stays_alone_is_told(mode):
    """The whole text says so, as for a call that does not stream."""
    pieces = ['{"name": "\ud83d', 'A", "age": 36}']
    with pytest.raises(AttemptsExhausted) as caught:
        call(mode, lambda _: iter(pieces), None, output=Person, review=False)
    (record,) = caught.value.attempts
    assert record["failure"]["kind"] == "invalid_schema"
    assert record["raw"] == {"text": "".join(pieces)}


TEXTS = [GOOD, BAD, f"```json\n{BAD}\n```", "Sure: " + GOOD, "no", GOOD[:-9], GOOD + "\n" + BAD]


@pytest.mark.drawn
@settings(max_examples=draws(25, 300))
@given(st.sampled_from(TEXTS), st.lists(st.integers(0, 1_000), max_size=30))
def test_the_cuts_change_nothing(text, cuts):
    """However the text is cut, the result is that of the whole text."""

    def result(llm_call):
        try:
            return retry_llm_call(llm_call, None, output=Person, review=False)
        except AttemptsExhausted as error:
            failure = error.attempts[0]["failure"]
            return failure["kind"], [issue["path"] for issue in error.attempts[0]["issues"]]

    assert result(lambda _: iter(chunked(text, cuts))) == result(lambda _: text)


@pytest.mark.parametrize("returned", ["chunks", "model.stream", "stream of a coroutine"])
def test_messages_are_merged(mode, returned):
    """Usage, finish reason and tool calls of chunks are those of the whole message."""
    usage = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}
    chunks = [
        AIMessageChunk(content='{"name": "Ada",'),
        AIMessageChunk(content=' "age": 36}', usage_metadata=usage),
        AIMessageChunk(content="", response_metadata={"finish_reason": "stop"}),
    ]
    model = GenericFakeChatModel(messages=iter([AIMessage('{"name": "Ada", "age": 36}')]))

    async def later(_):
        for chunk in chunks:
            yield chunk

    async def coroutine(_):
        return iter(chunks)

    calls = {
        "chunks": later if mode.is_async else lambda _: iter(chunks),
        "model.stream": lambda _: model.astream("?") if mode.is_async else model.stream("?"),
        "stream of a coroutine": coroutine if mode.is_async else lambda _: iter(chunks),
    }
    records = []
    options = {"output": Person, "on_attempt": records.append}
    assert call(mode, calls[returned], None, **options).name == "Ada"
    if returned != "model.stream":
        assert (records[0]["usage"], records[0]["finish_reason"]) == (usage, "stop")


def test_a_completion_may_end_a_stream(mode):
    """A generator tells usage and finish reason with its last piece."""
    records = []

    def ask(_):
        yield '{"n":'
        yield Completion(" 1}", {"total_tokens": 7}, "stop")

    assert call(mode, ask, None, output=dict[str, int], on_attempt=records.append) == {"n": 1}
    assert (records[0]["usage"], records[0]["finish_reason"]) == ({"total_tokens": 7}, "stop")


def test_of_objects_the_last_one_counts(mode):
    """LangChain's parsers stream the value as far as it is known, again and again."""
    values = [{"n": 1}, {"n": 1, "m": 2}]
    assert call(mode, lambda _: iter(values), None, output=dict[str, int]) == values[-1]


def test_a_piece_of_no_known_kind_is_named(mode):
    """The failure says what came and what may come."""
    with pytest.raises(AttemptsExhausted, match="a piece must be text"):
        call(mode, lambda _: iter([1, 2]), None, review=False)


def test_a_generator_that_also_returns_a_value_is_told():
    """Python drops the value, so the answer would be another one than the function gives."""

    def answer(params):
        yield "[1"
        return [2]

    with pytest.raises(AttemptsExhausted, match="yields pieces and then returns `list`"):
        retry_llm_call(answer, {}, output=list[int], review=False)


@pytest.mark.parametrize("output", [None, Person])
@pytest.mark.parametrize(
    ("pieces", "told"),
    [
        ([GOOD[:9], GOOD[:11], GOOD], True),
        ([GOOD[:9], GOOD], True),
        (["1", "12", "123"], False),
        (["=" * 9, "=" * 9], False),
        ([GOOD], False),
        ([GOOD[:9], GOOD[9:]], False),
    ],
)
def test_pieces_that_each_repeat_the_piece_before_are_told(caplog, output, pieces, told):
    """They are joined like all pieces, because a text may repeat itself; the log says so."""
    name = f"{output} from {pieces}"
    with suppress(AttemptsExhausted):
        retry_llm_call(lambda _: iter(pieces), {}, output=output, review=False, name=name)
    assert ("begins with the piece before" in caplog.text) == told


def test_without_output_a_message_is_a_message(mode):
    """What a plain call returns as a message comes as one, not as a chunk of one."""
    chunks = [AIMessageChunk(content="Hello"), AIMessageChunk(content=", Ada")]
    result = call(mode, lambda _: iter(chunks), None)
    assert (type(result), result.content) == (AIMessage, "Hello, Ada")


def test_progress_and_tokens_are_seen_as_from_a_plain_node(form, mode):
    """Partial values come as custom events of the node that called, tokens as its messages."""
    model = GenericFakeChatModel(messages=iter([AIMessage(GOOD)]))
    stream = model.astream if mode.is_async else model.stream
    graph = one_call(form, mode, lambda params: stream("?"), InMemorySaver(), output=Person)
    modes = ["custom", "messages"]
    parts = mode.call(graph, "stream", {"params": {}}, thread(), stream_mode=modes)
    events = [part for kind, part in parts if kind == "custom"]
    values = [event["value"] for event in events if event["event"] == "partial_output"]
    assert values[0] == {}
    assert values[-1]["notes"][0] == "wrote the first program"
    assert len(values) <= len(GOOD) / 32 + 1
    messages = [part for kind, part in parts if kind == "messages"]
    assert "".join(message.content for message, _ in messages) == GOOD
    assert {about["langgraph_node"] for _, about in messages} == {"ask"}


def partial_values(mode, text, **options):
    """Stream a text from a call; return the values that its progress told."""
    graph = one_call("function", mode, Stream(mode), InMemorySaver(), **options)
    given = {"params": {"text": text}}
    events = mode.call(graph, "stream", given, thread(), stream_mode="custom")
    return [event["value"] for event in events if event["event"] == "partial_output"]


@pytest.mark.parametrize("output", [None, str])
def test_plain_text_is_seen_while_it_comes(mode, output):
    """A text is its own beginning; with a redactor it is not shown before its end."""
    text = "It was the best of times, it was the worst of times. " * 9
    values = partial_values(mode, text, output=output)
    assert all(text.startswith(value) for value in values)
    assert len(text) / 2 < len(values[-1])
    assert 9 < len(values) <= len(text) / 32 + 1
    assert partial_values(mode, text, output=output, redact=str.upper) == []


@pytest.mark.parametrize("prose", ["Sure! ```json\n", "Sure:\n", "Sure: ", "Of [1]:\n~~~\n"])
def test_a_document_behind_prose_is_seen_while_it_comes(mode, prose):
    """It is shown, and is not judged: what stands in prose need not be the answer."""
    values = partial_values(mode, prose + GOOD, output=Person)
    assert values[-1]["notes"][0] == "wrote the first program"
    wrong = 'Not {"name": 1, "age": "old", "notes": 5, "more": 1} but:\n```json\n' + GOOD + "\n```"
    assert partial_values(mode, wrong, output=Person)[-1]["age"] == "old"


def test_a_private_text_does_not_come_out_while_it_grows(mode):
    """Its beginning is not what a redactor looks for, so a text is shown once it has ended."""
    private = "Augusta Ada King, Countess of Lovelace, born Byron, of London" * 2
    text = json.dumps({"name": private, "age": 36, "notes": [private, "wrote a program"]})
    options = {"output": Person, "redact": lambda given: given.replace(private, "***")}
    graph = one_call("function", mode, Stream(mode), InMemorySaver(), **options)
    given = {"params": {"text": text}}
    events = mode.call(graph, "stream", given, thread(), stream_mode="custom")
    values = [event["value"] for event in events if event["event"] == "partial_output"]
    assert values[0] == {}
    assert {"name": "***", "age": 36, "notes": ["***"]} in values
    assert "Augusta" not in json.dumps(events)


def test_progress_is_redacted(mode):
    """What is private stays private on the way, too."""
    options = {"output": Person, "redact": lambda text: text.replace("Ada", "***")}
    graph = one_call("function", mode, Stream(mode), InMemorySaver(), **options)
    given = {"params": {"text": GOOD}}
    events = mode.call(graph, "stream", given, thread(), stream_mode="custom")
    assert "***" in json.dumps(events)
    assert "Ada" not in json.dumps(events)
