"""A loopback server that speaks enough of OpenAI's and Anthropic's API to misbehave like them."""

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

    def write(self, text: str, size: int = 4) -> None:
        """Add an answer that comes in tokens of some characters, not faster than it is read.

        The reader says `has_read` for each. `sent` counts them, and `closed` is set when the other
        side has closed the connection.
        """
        tokens = [text[start : start + size] for start in range(0, len(text), size)]
        self.steps.append({"tokens": tokens})

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

    def break_off(self, text: str) -> None:
        """Add a stream that gives this text and is cut before its end."""
        self.steps.append({"stream": text})

    def fail(self, status: int, code: str, **headers: str) -> None:
        """Add an error response."""
        self.steps.append({"status": status, "code": code, "headers": headers})

    def hang(self) -> None:
        """Add a request that is not answered before the script is over."""
        self.steps.append({"hang": True})


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


class Handler(BaseHTTPRequestHandler):
    """Answers each request with the next step of its self.script."""

    script: Script

    def do_POST(self) -> None:
        size = int(self.headers["content-length"])
        self.script.requests.append(json.loads(self.rfile.read(size)))
        step = self.script.steps.pop(0)
        if step.get("hang"):
            self.script.release.wait(30)
        elif "status" in step:
            error = {"message": step["code"], "type": step["code"], "code": step["code"]}
            self._send(step["status"], {"error": error}, step["headers"])
        elif "stream" in step:
            self._break_off(step["stream"])
        elif "tokens" in step:
            self._write(step["tokens"])
        elif self.path.endswith("/messages"):
            self._send(200, anthropic_answer(step), {})
        else:
            self._send(200, openai_answer(step), {})

    def _break_off(self, text: str) -> None:
        """Stream a text in two pieces, and close the connection in the middle of an event."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("content-length", "100000")
        self.end_headers()
        for piece in (text[:5], text[5:]):
            self._event({"role": "assistant", "content": piece})
        self.wfile.write(b'data: {"id"')

    def _write(self, tokens: list[str]) -> None:
        """Stream tokens until the last one, or until the other side closes the connection."""
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for token in tokens:
            if not self.script.wait_for_reader(self.connection):
                self.script.closed.set()
                return
            self.script.sent += 1
            self._event({"role": "assistant", "content": token})
        self._event({}, finish="stop")
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        event = {"id": "1", "object": "chat.completion.chunk", "created": 1}
        event |= {"model": "scripted", "choices": [choice]}
        self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())

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
