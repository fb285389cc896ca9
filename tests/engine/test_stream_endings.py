"""How a stream ends that does not end by itself: stalled, cancelled, or with the process."""

import asyncio
import threading

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry import AttemptsExhausted, Completion, aretry_llm_call, retry_llm_call
from graph_retry.data import replay
from graph_retry.testing import from_ledger
from tests.loops import Model, one_call, reviews, thread
from tests.streams import BAD, GOOD, Person, call


class PowerCut(BaseException):
    """Ends a run as nothing else does: no code handles it."""


def test_a_stalled_stream_hits_the_timeout(mode):
    """The attempt fails as transient, and the stream is closed when it moves again."""
    moves, closed = threading.Event(), threading.Event()

    def stalls(_):
        try:
            yield '{"n": '
            moves.wait(30)
            yield "1"
            yield "}"
        finally:
            closed.set()

    async def astalls(_):
        try:
            yield '{"n": '
            await asyncio.Event().wait()
        finally:
            closed.set()

    options = {"output": dict[str, int], "review": False, "timeout": 0.2}
    with pytest.raises(AttemptsExhausted) as caught:
        call(mode, astalls if mode.is_async else stalls, None, **options)
    assert caught.value.attempts[0]["failure"]["kind"] == "transient"
    assert "0.2 s" in caught.value.attempts[0]["failure"]["message"]
    moves.set()
    assert closed.wait(10)


class Unclosable:
    """A stream whose `close` fails, as a client's may in another task than it was opened in."""

    def __init__(self, text):
        self._pieces = iter([text[:30], text[30:]])

    def __iter__(self):
        return self

    def __aiter__(self):
        return self

    def __next__(self):
        return next(self._pieces)

    async def __anext__(self):
        try:
            return next(self._pieces)
        except StopIteration:
            raise StopAsyncIteration from None

    def close(self):
        raise RuntimeError("not in this task")

    async def aclose(self):
        self.close()


class UnclosableIterator(Unclosable):
    """The same for a sync run, where an async one would be refused."""

    __aiter__ = None


@pytest.mark.parametrize("text", [GOOD, BAD])
def test_an_error_of_closing_loses_nothing(mode, text, caplog):
    """What had come is the answer, or the failed attempt, that it would be; the log tells."""
    stream = Unclosable if mode.is_async else UnclosableIterator
    records = []
    options = {"output": Person, "review": False, "on_attempt": records.append}
    if text == GOOD:
        assert call(mode, lambda _: stream(text), None, **options).age == 36
    else:
        with pytest.raises(AttemptsExhausted):
            call(mode, lambda _: stream(text), None, **options)
        assert records[0]["issues"][0]["path"] == "/age"
    assert text.startswith(records[0]["raw"]["text"])
    assert "could not be closed: RuntimeError" in caplog.text


PIECES = {
    "text": ['{"n": ', "12"],
    "messages": [AIMessageChunk('{"n": '), AIMessageChunk("12")],
    "completions": [Completion('{"n": 12', usage={"output_tokens": 4})],
    "values": [{"n": 1}, {"n": 12}],
}


@pytest.mark.parametrize("kind", PIECES)
def test_a_stream_that_breaks_off_leaves_what_came_to_the_reviewer(form, mode, checkpointer, kind):
    """It is shown and kept, and neither read as an answer nor told as one by a replay."""

    def breaks(_):
        yield from PIECES[kind]
        raise ConnectionError("reset by peer")

    async def abreaks(_):
        for piece in PIECES[kind]:
            yield piece
        raise ConnectionError("reset by peer")

    model = Model(abreaks if mode.is_async else breaks)
    graph = one_call(form, mode, model, checkpointer, output=dict[str, int])
    mode.invoke(graph, {"params": {"n": 0}}, thread())

    (review,) = reviews(mode, graph, thread())
    (record,) = review.history
    text = '{"n": 12}' if kind == "values" else '{"n": 12'
    assert record["raw"] == {"received": text}
    assert review.value["raw_output"] == f"{text} (the stream broke off here)"
    assert review.failure["kind"] == "transient"
    assert record["usage"] == ({"output_tokens": 4} if kind == "completions" else None)
    (again,) = replay(review.history, output=dict[str, int], check=True)
    assert again.attempt["failure"]["kind"] == "transient"
    with pytest.raises(Exception, match="reset by peer"):
        from_ledger(review.history)({})


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_a_cancelled_run_closes_the_stream(kind):
    """Cancellation passes through, and neither kind of stream is left open behind it."""
    begun, closed, moves = threading.Event(), threading.Event(), threading.Event()

    def sync_stream(_):
        try:
            yield "a"
            begun.set()
            moves.wait(30)
            yield "b"
        finally:
            closed.set()

    async def async_stream(_):
        try:
            yield "a"
            begun.set()
            await asyncio.Event().wait()
        finally:
            closed.set()

    async def main():
        stream = {"sync": sync_stream, "async": async_stream}[kind]
        task = asyncio.create_task(aretry_llm_call(stream, None))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        moves.set()
        await asyncio.to_thread(closed.wait, 30)

    asyncio.run(main())
    assert closed.is_set()


def test_a_run_cut_off_in_mid_stream_repeats_the_call_in_flight(form, mode):
    """Only the call under way is made again, with the same idempotency key."""
    keys, saver = [], InMemorySaver()

    def pieces(key):
        keys.append(key)
        if len(keys) == 1:
            yield BAD
            return
        yield from (GOOD[:20], GOOD[20:40])
        if len(keys) == 2:
            raise PowerCut
        yield GOOD[40:]

    def ask(params, context):
        return pieces(context.idempotency_key)

    async def aask(params, context):
        for piece in pieces(context.idempotency_key):
            yield piece

    model = aask if mode.is_async else ask
    options = {"auto_retries": 1, "feedback": lambda error, attempt, params: {"n": attempt}}
    graph = one_call(form, mode, model, saver, output=Person, **options)
    with pytest.raises(PowerCut):
        mode.invoke(graph, {"params": {"n": 0}}, thread())
    state = mode.invoke(graph, None, thread())
    assert dict(state["output"])["age"] == 36
    assert keys[0] != keys[1] == keys[2]


def test_an_async_stream_in_a_sync_run_is_refused():
    """The error says what to use instead."""

    async def ask(_):
        yield "a"

    with pytest.raises(TypeError, match=r"ask` is async"):
        retry_llm_call(ask, None)
