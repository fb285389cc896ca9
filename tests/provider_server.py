"""A loopback server that speaks enough of OpenAI's, Anthropic's and Google's API to misbehave."""

import json
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Script:
    """What the server answers next, and what it was asked."""

    def __init__(self) -> None:
        self.steps: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.release = threading.Event()
        self.sent = 0
        self.closed = threading.Event()
        self._reading = threading.Condition()
        self._read = 0
        self.url = ""
        self.anthropic_url = ""

    def say(
        self,
        text: str | None,
        *calls: tuple[str, str],
        finish: str = "stop",
        refusal: str | None = None,
    ) -> None:
        """Add an answer: its text, and tool calls by name with their arguments as text."""
        self.steps.append({"text": text, "calls": calls, "finish": finish, "refusal": refusal})

    def write(self, text: str, tool: str | None = None) -> None:
        """Add an answer that comes in tokens of four characters, not faster than it is read.

        It is text, or the arguments of a tool call. The reader says `has_read` for each token.
        `sent` counts them, and `closed` is set when the other side has closed the connection.
        """
        self.say(None if tool else text, *([(tool, text)] if tool else []))
        self.steps[-1]["size"] = 4

    def has_read(self) -> None:
        """Say that one more token has arrived."""
        with self._reading:
            self._read += 1
            self._reading.notify_all()

    def wait_for_reader(self, connection: socket.socket) -> bool:
        """Wait until the reader is two tokens behind or less; tell whether it is still there."""
        with self._reading:
            while not self._reading.wait_for(lambda: self._read >= self.sent - 2, 0.01):
                if select.select([connection], [], [], 0)[0] and _is_closed(connection):
                    return False
        return True

    def break_off(
        self, text: str | None, *calls: tuple[str, str], error: str | None = None
    ) -> None:
        """Add a stream that is cut inside an event before its end, or ends with an error event."""
        step = {"text": text, "calls": calls, "finish": "stop", "refusal": None}
        self.steps.append({**step, "broken": True, "error": error})

    def fail(self, status: int, code: str | dict[str, Any], **headers: str) -> None:
        """Add an error response, by the code in it or with all of its body."""
        self.steps.append({"status": status, "code": code, "headers": headers})

    def hang(self) -> None:
        """Add a request that is not answered before the script is over."""
        self.steps.append({"hang": True})


class Token(dict[str, Any]):
    """An event that holds a piece of the answer."""


def _is_closed(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1, socket.MSG_PEEK)
    except ConnectionResetError:  # closed with events unread
        return True


def openai_answer(step: dict[str, Any]) -> dict[str, Any]:
    """Spell an answer as a chat completion."""
    calls = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(step["calls"])
    ]
    message = {"role": "assistant", "content": step["text"], "refusal": step["refusal"]}
    message |= {"tool_calls": calls} if calls else {}
    choice = {"index": 0, "message": message, "finish_reason": step["finish"]}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
    return {**body, "choices": [choice], "usage": usage}


def anthropic_answer(step: dict[str, Any]) -> dict[str, Any]:
    """Spell an answer as a message; the API itself parses the arguments of tool calls."""
    blocks = [{"type": "text", "text": step["text"]}] if step["text"] else []
    for n, (name, arguments) in enumerate(step["calls"]):
        call = {"type": "tool_use", "id": f"call_{n}", "name": name}
        blocks.append({**call, "input": json.loads(arguments)})
    usage = {"input_tokens": 7, "output_tokens": 3}
    body = {"id": "1", "type": "message", "role": "assistant", "model": "scripted"}
    return {**body, "content": blocks, "stop_reason": "end_turn", "usage": usage}


def openai_events(step: dict[str, Any]) -> Iterator[Any]:
    """Spell an answer as the chunks of a chat completion, texts and arguments in two pieces."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        body = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        return {**body, "choices": [choice]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(step["text"] or "", step):
        yield Token(chunk({"content": piece}))
    for n, (name, arguments) in enumerate(step["calls"]):
        call = {"index": n, "id": f"call_{n}", "type": "function"}
        yield chunk({"tool_calls": [{**call, "function": {"name": name, "arguments": ""}}]})
        for piece in pieces(arguments, step):
            yield Token(chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]}))
    if not step.get("broken"):
        yield chunk({}, step["finish"])
        yield "[DONE]"
    elif step["error"]:
        yield {"error": {"message": "no", "type": step["error"], "code": None}}


def anthropic_events(step: dict[str, Any]) -> Iterator[Any]:
    """Spell an answer as the events of a message."""
    empty = anthropic_answer({"text": None, "calls": ()}) | {"stop_reason": None}
    yield {"type": "message_start", "message": empty}
    blocks = [({"type": "text", "text": ""}, "text_delta", "text", step["text"])]
    for n, (name, arguments) in enumerate(step["calls"]):
        call = {"type": "tool_use", "id": f"call_{n}", "name": name, "input": {}}
        blocks.append((call, "input_json_delta", "partial_json", arguments))
    for index, (block, kind, key, content) in enumerate(block for block in blocks if block[3]):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        for piece in pieces(content, step):
            delta = {"type": kind, key: piece}
            yield Token({"type": "content_block_delta", "index": index, "delta": delta})
        if not step.get("broken"):
            yield {"type": "content_block_stop", "index": index}
    if not step.get("broken"):
        reason = {"stop": "end_turn", "length": "max_tokens"}[step["finish"]]
        delta = {"stop_reason": reason, "stop_sequence": None}
        yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}
        yield {"type": "message_stop"}
    elif step["error"]:
        yield {"type": "error", "error": {"type": step["error"], "message": "no"}}


def google_answer(step: dict[str, Any]) -> dict[str, Any]:
    """Spell an answer as Google does, which parses the arguments of function calls itself."""
    parts: list[dict[str, Any]] = [{"text": step["text"]}] if step["text"] else []
    parts += [
        {"functionCall": {"name": name, "args": json.loads(arguments)}}
        for name, arguments in step["calls"]
    ]
    usage = {"promptTokenCount": 7, "candidatesTokenCount": 3, "totalTokenCount": 10}
    if step["finish"] == "blocked":
        return {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": usage}
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": parts}, "index": 0}
    if step["finish"]:
        reasons = {"stop": "STOP", "length": "MAX_TOKENS"}
        candidate["finishReason"] = reasons.get(step["finish"], step["finish"])
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}


def google_events(step: dict[str, Any]) -> Iterator[Any]:
    """Spell an answer as a stream of such answers; every one counts the tokens so far."""
    empty = {"text": None, "calls": (), "finish": None}
    for piece in pieces(step["text"] or "", step):
        yield Token(google_answer({**empty, "text": piece}))
    if not step.get("broken"):
        yield google_answer({**step, "text": None})


def pieces(text: str, step: dict[str, Any]) -> list[str]:
    """Cut a text in two, or in pieces of the step's size."""
    size = step.get("size") or max(1, (len(text) + 1) // 2)
    return [text[start : start + size] for start in range(0, len(text), size)]


def encoded(event: Any) -> bytes:
    """Write an event as it goes over the wire."""
    kind = event.get("type") if isinstance(event, dict) else None
    data = event if isinstance(event, str) else json.dumps(event)
    return (f"event: {kind}\n" * bool(kind) + f"data: {data}\n\n").encode()


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the next step of its self.script."""

    script: Script

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        asked = json.loads(self.rfile.read(size))
        self.script.requests.append(asked)
        step = self.script.steps.pop(0)
        if step.get("hang"):
            self.script.release.wait(30)
        elif "status" in step:
            code = step["code"]
            body = {"error": {"message": code, "type": code, "code": code}}
            self._send(step["status"], code if isinstance(code, dict) else body, step["headers"])
        elif ":streamGenerateContent" in self.path:
            self._answer({"stream": True}, step, google_answer, google_events)
        elif ":generateContent" in self.path:
            self._answer(asked, step, google_answer, google_events)
        elif self.path.endswith("/messages"):
            self._answer(asked, step, anthropic_answer, anthropic_events)
        else:
            self._answer(asked, step, openai_answer, openai_events)

    def _answer(self, asked: Any, step: Any, spell: Any, events: Any) -> None:
        if "size" in step:
            self._write(events(step))
        elif asked.get("stream"):
            self._stream(events(step), cut="broken" in step and not step["error"])
        else:
            self._send(200, spell(step), {})

    def _stream(self, events: Iterator[Any], *, cut: bool) -> None:
        """Send events one by one; with `cut`, close the connection in the middle of one."""
        data = b"".join(map(encoded, events)) + b'data: {"id"' * cut
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", str(len(data) + cut))
        self.end_headers()
        self.wfile.write(data)

    def _write(self, events: Iterator[Any]) -> None:
        """Stream events until the last one, or until the other side closes the connection."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for event in events:
            if isinstance(event, Token):
                if not self.script.wait_for_reader(self.connection):
                    self.script.closed.set()
                    return
                self.script.sent += 1
            try:
                self.wfile.write(encoded(event))
            except ConnectionError:  # closed since the reader was last looked at
                self.script.closed.set()
                return

    def _send(self, status: int, body: dict[str, Any], headers: dict[str, str]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: Any) -> None:
        """Keep the test output quiet."""


@contextmanager
def provider_server() -> Iterator[Script]:
    """Serve a script on a free loopback port."""
    script = Script()

    handler = type("Scripted", (Handler,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    script.anthropic_url = f"http://127.0.0.1:{server.server_port}"
    script.url = f"{script.anthropic_url}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.release.set()
        server.shutdown()
        thread.join()
        server.server_close()
