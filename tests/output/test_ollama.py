"""Ollama's own client, from a loopback server: all that is known of it is in one file."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import ollama
import pytest
from pydantic import BaseModel

from graph_retry import AttemptsExhausted, aretry_llm_call, retry_llm_call
from graph_retry._core.output.providers import PROVIDERS


class Person(BaseModel):
    """Somebody."""

    name: str
    age: int


WHOLE = '{"name": "Ada", "age": 36}'
ASKED = [{"role": "user", "content": "Who?"}]
STAMP = {"model": "scripted", "created_at": "2026-11-23T00:00:00Z"}
COUNTS = {"prompt_eval_count": 7, "eval_count": 5}


def said(content="", calls=(), **more):
    """Return one line of an answer of `/api/chat`."""
    tools = [{"function": {"name": name, "arguments": args}} for name, args in calls]
    message = {"role": "assistant", "content": content, **({"tool_calls": tools} if tools else {})}
    return {**STAMP, "message": message, "done": False, **more}


def ending(content="", reason="stop", **more):
    """Return the last line."""
    return said(content, done=True, done_reason=reason, **COUNTS, **more)


@contextmanager
def serving(lines, status=200) -> Iterator[str]:
    """Answer each request with lines of JSON."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = "\n".join(map(json.dumps, lines)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def asked(url, *, stream=False, **options):
    """Make the call with Ollama's client; return the output and the attempts."""
    seen = []

    def ask(_):
        with ollama.Client(url) as client:
            answer = client.chat("scripted", ASKED, stream=stream)
            return iter([*answer]) if stream else answer

    options = {"output": Person, "review": False, "on_attempt": seen.append, **options}
    return retry_llm_call(ask, None, **options), seen


@pytest.mark.parametrize("content", [WHOLE, f"```json\n{WHOLE}\n```"])
def test_a_whole_answer_is_read(content):
    """Its text, its token counts and why it ended."""
    with serving([ending(content)]) as url:
        output, (attempt,) = asked(url)
    assert output == Person(name="Ada", age=36)
    assert attempt["usage"] == {"input_tokens": 7, "output_tokens": 5, "total_tokens": 12}
    assert attempt["finish_reason"] == "stop"


def test_a_stream_is_put_together():
    """The pieces are text; the last one has the counts."""
    with serving([*map(said, WHOLE), ending()]) as url:
        output, (attempt,) = asked(url, stream=True)
    assert output == Person(name="Ada", age=36)
    assert attempt["usage"]["total_tokens"] == 12
    assert attempt["finish_reason"] == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_the_arguments_of_a_tool_call_are_the_answer(stream):
    """Of a tool that is named after the type."""
    call = [("Person", {"name": "Ada", "age": 36})]
    with serving([said(calls=call), ending()] if stream else [ending(calls=call)]) as url:
        output, _ = asked(url, stream=stream)
    assert output == Person(name="Ada", age=36)


def test_a_stream_that_cannot_become_valid_is_stopped():
    """As of any provider."""
    text = '{"name": 5, "age": 36, "more": "' + "x" * 400 + '"}'
    with serving([*map(said, text), ending()]) as url, pytest.raises(AttemptsExhausted) as caught:
        asked(url, stream=True)
    assert caught.value.attempts[0]["stopped_early"]


def test_an_async_client_is_read():
    """Its answers are the same objects."""

    async def run(url):
        async def ask(_):
            async with ollama.AsyncClient(url) as client:
                return await client.chat("scripted", ASKED)

        return await aretry_llm_call(ask, None, output=Person)

    with serving([ending(WHOLE)]) as url:
        assert asyncio.run(run(url)) == Person(name="Ada", age=36)


@pytest.mark.parametrize("as_json", [False, True])
def test_generated_text_and_plain_json_are_read(as_json):
    """`/api/generate` gives text; what `requests` would give is JSON."""
    line = {**STAMP, "response": WHOLE, "done": True, "done_reason": "stop", **COUNTS}

    def ask(url):
        with ollama.Client(url) as client:
            return client.generate("scripted", "Who?")

    with serving([line]) as url:
        output = retry_llm_call(lambda _: line if as_json else ask(url), None, output=Person)
    assert output == Person(name="Ada", age=36)
    assert retry_llm_call(lambda _: ending(WHOLE), None, output=Person) == output


@pytest.mark.parametrize(
    ("lines", "status", "kind"),
    [
        ([ending(WHOLE[:12], "length")], 200, "truncated"),
        ([{"error": "model is loading"}], 503, "transient"),
        ([{"error": "model 'scripted' not found"}], 404, "rejected_input"),
    ],
)
def test_what_went_wrong_is_known(lines, status, kind):
    """A word for the end, and the status of an error."""
    with serving(lines, status) as url, pytest.raises(AttemptsExhausted) as caught:
        asked(url)
    assert caught.value.attempts[0]["failure"]["kind"] == kind


def test_no_word_for_the_end_has_two_meanings():
    """The files of all providers are read together."""
    words = {}
    for provider in PROVIDERS:
        for word, meaning in provider.finish_words.items():
            assert words.setdefault(word, meaning) == meaning
