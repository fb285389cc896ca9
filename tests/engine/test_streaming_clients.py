"""A streamed answer through the real clients: what is lost is not waited for, and not paid."""

import json
from contextlib import aclosing, closing
from inspect import isawaitable
from typing import Any, Literal

import anthropic
import httpx
import openai
import pytest
from google import genai
from langchain_anthropic import ChatAnthropic
from langchain_google_genai import ChatGoogleGenerativeAI
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


def opened(script, kind, client, aclient, *, is_async):
    """Open a stream with one of the clients; an async one of a provider's own is awaited."""
    key: dict[str, Any] = {"api_key": "not-a-key", "max_retries": 0}
    if kind == "langchain openai":
        chat = ChatOpenAI(
            model="scripted", base_url=script.url, http_client=client, http_async_client=aclient,
            **key,
        )  # fmt: skip
    elif kind == "langchain anthropic":
        chat = ChatAnthropic(
            model_name="scripted", base_url=script.anthropic_url, timeout=30, stop=None, **key
        )
    elif kind == "langchain google":
        chat = ChatGoogleGenerativeAI(
            model="scripted", base_url=script.anthropic_url, api_key="not-a-key", max_retries=1
        )
    elif kind == "google":
        google = genai.Client(api_key="not-a-key", http_options={"base_url": script.anthropic_url})
        return agoogle_chunks(google) if is_async else google_chunks(google)
    else:
        asked = {"model": "scripted", "messages": [{"role": "user", "content": "?"}]}
        if kind == "openai":
            own = openai.AsyncOpenAI if is_async else openai.OpenAI
            made = own(base_url=script.url, http_client=aclient if is_async else client, **key)
            return made.chat.completions.create(stream=True, **asked)
        own = anthropic.AsyncAnthropic if is_async else anthropic.Anthropic
        made = own(base_url=script.anthropic_url, **key)
        return made.messages.create(stream=True, max_tokens=9_000, **asked)
    chat = chat.bind_tools([Items])
    return chat.astream("?") if is_async else chat.stream("?")


def google_chunks(google):
    """Stream from Google's client, which is open as long as the stream."""
    with google:
        yield from google.models.generate_content_stream(model="scripted", contents="?")


async def agoogle_chunks(google):
    """Do the same with its async client."""
    async with google.aio as client:
        stream = await client.models.generate_content_stream(model="scripted", contents="?")
        async for chunk in stream:
            yield chunk


@pytest.fixture
def ask(mode):
    """Yield `(script, ask)`: the server's script and a way to stream one call from it."""
    with provider_server() as script, httpx.Client() as client:
        # A provider's own stream is closed by what it is, LangChain's by the generator it is.
        def chunks(stream):
            with closing(stream):
                for chunk in stream:
                    script.has_read()
                    yield chunk

        async def achunks(stream):
            async with aclosing(stream) if hasattr(stream, "aclose") else stream:
                async for chunk in stream:
                    script.has_read()
                    yield chunk

        def run(kind, **options):
            options = {"review": False, "output": Items, **options}
            if not mode.is_async:
                return retry_llm_call(
                    lambda prompt: chunks(opened(script, kind, client, None, is_async=False)),
                    "?", **options,
                )  # fmt: skip

            async def arun():
                async with httpx.AsyncClient() as aclient:

                    async def call(prompt):
                        stream = opened(script, kind, client, aclient, is_async=True)
                        return achunks(await stream if isawaitable(stream) else stream)

                    return await aretry_llm_call(call, "?", **options)

            return mode.run(arun)

        yield script, run


CLOSING = ["langchain openai", "openai", "anthropic"]
"""LangChain's models of Anthropic's and Google's leave their connection to Python's collector."""

IN_PIECES = [(kind, tool) for kind in CLOSING for tool in (None, "Items")]
"""Google sends the arguments of a call in one piece, after which nothing is left to stop."""


@pytest.mark.parametrize(("kind", "tool"), [*IN_PIECES, ("google", None)])
def test_the_connection_closes_within_twenty_tokens_of_the_error(ask, kind, tool):
    """Of 2,000 tokens, the 200th of which is wrong, the server sends 220 at most."""
    script, run = ask
    text = written(broken_at=200)
    assert len(text) // 4 in range(2_000, 2_100)
    assert text.index("song") == 4 * 200
    script.write(text, tool)
    records = []

    with pytest.raises(Exception, match="can no longer be a valid Items"):
        run(kind, on_attempt=records.append)

    assert script.closed.wait(10)
    assert 200 < script.sent <= 220
    (record,) = records
    assert record["stopped_early"] is True
    assert record["failure"]["kind"] == "invalid_schema"
    assert text.startswith(record["raw"]["text"])
    assert len(record["raw"]["text"]) > 4 * 200
    # OpenAI tells at the end what was read, which never came.
    assert (record["usage"] or {}).get("input_tokens") == (None if "openai" in kind else 7)


LEFT_OPEN = [("langchain anthropic", None), ("langchain anthropic", "Items")]
GOOGLE = [("google", None), ("langchain google", None)]


@pytest.mark.parametrize(("kind", "tool"), [*IN_PIECES, *LEFT_OPEN, *GOOGLE])
def test_a_good_stream_is_read_to_its_end(ask, kind, tool):
    """Every token is sent, and the answer is that of a call that does not stream."""
    script, run = ask
    text = written()[:400].rpartition(", {")[0] + "]}"
    script.write(text, tool)
    records = []
    assert run(kind, on_attempt=records.append) == Items.model_validate_json(text)
    assert script.sent == -(-len(text) // 4)
    end = {"openai": "stop", "anthropic": "end_turn", "google": "STOP"}[kind.split()[-1]]
    assert (records[0]["finish_reason"], "stopped_early" in records[0]) == (end, False)
