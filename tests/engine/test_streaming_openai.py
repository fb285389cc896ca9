"""A streamed answer through the real OpenAI client: what is lost is not waited for."""

import json
from contextlib import aclosing, closing
from typing import Literal

import httpx
import openai
import pytest
from langchain_openai import ChatOpenAI
from pydantic import BaseModel

from graph_retry import aretry_llm_call, retry_llm_call
from tests.provider_server import provider_server


class Item(BaseModel):
    """One of many."""

    id: int
    kind: Literal["book", "film"]


class Items(BaseModel):
    """What is asked for."""

    items: list[Item]


def written(*, broken_at=0):
    """Write an answer of 2,000 tokens, one of which begins a wrong value (0: none)."""
    items = ", ".join(json.dumps({"id": number, "kind": "book"}) for number in range(280))
    text = '{"items": [' + items + "]}"
    if broken_at:
        at = text.index("book", 4 * broken_at - 40)
        text = text[:11] + " " * (4 * broken_at - at) + text[11:at] + "song" + text[at + 4 :]
    return text


@pytest.fixture
def ask(mode):
    """Yield `(script, ask)`: the server's script and a way to stream one call from it."""
    with provider_server() as script, httpx.Client() as client:
        # OpenAI's stream is a context manager; a generator around one that is left is not enough.
        def chunks(stream):
            with closing(stream):
                for chunk in stream:
                    script.has_read()
                    yield chunk

        async def achunks(stream):
            async with stream if isinstance(stream, openai.AsyncStream) else aclosing(stream):
                async for chunk in stream:
                    script.has_read()
                    yield chunk

        def run(kind, **options):
            options = {"review": False, "output": Items, **options}
            where = {"base_url": script.url, "api_key": "not-a-key", "max_retries": 0}
            chat = {"model": "scripted", "messages": [{"role": "user", "content": "?"}]}
            if not mode.is_async:
                model = ChatOpenAI(model="scripted", http_client=client, **where)
                raw = openai.OpenAI(http_client=client, **where)

                def call(prompt):
                    if kind == "langchain":
                        return chunks(model.stream(prompt))
                    return chunks(raw.chat.completions.create(stream=True, **chat))

                return retry_llm_call(call, "?", **options)

            async def arun():
                async with httpx.AsyncClient() as aclient:
                    model = ChatOpenAI(
                        model="scripted", http_client=client, http_async_client=aclient, **where
                    )
                    raw = openai.AsyncOpenAI(http_client=aclient, **where)

                    async def call(prompt):
                        if kind == "langchain":
                            return achunks(model.astream(prompt))
                        return achunks(await raw.chat.completions.create(stream=True, **chat))

                    return await aretry_llm_call(call, "?", **options)

            return mode.run(arun)

        yield script, run


@pytest.mark.parametrize("kind", ["langchain", "openai"])
def test_the_connection_closes_within_twenty_tokens_of_the_error(ask, kind):
    """Of 2,000 tokens, the 200th of which is wrong, the server sends 220 at most."""
    script, run = ask
    text = written(broken_at=200)
    assert len(text) // 4 in range(2_000, 2_100)
    assert text.index("song") == 4 * 200
    script.write(text)
    records = []

    with pytest.raises(Exception, match="can no longer be a valid Items"):
        run(kind, on_attempt=records.append)

    assert script.closed.wait(10)
    assert 200 < script.sent <= 220
    (record,) = records
    assert record["stopped_early"] is True
    assert record["failure"]["kind"] == "invalid_schema"
    assert text.startswith(record["raw"]["text"])


@pytest.mark.parametrize("kind", ["langchain", "openai"])
def test_a_good_stream_is_read_to_its_end(ask, kind):
    """Every token is sent, and the answer is that of a call that does not stream."""
    script, run = ask
    text = written()[:400].rpartition(", {")[0] + "]}"
    script.write(text)
    records = []
    assert run(kind, on_attempt=records.append) == Items.model_validate_json(text)
    assert script.sent == -(-len(text) // 4)
    assert (records[0]["finish_reason"], "stopped_early" in records[0]) == ("stop", False)
