"""A loopback server that speaks enough of OpenAI's and Anthropic's API to misbehave like them."""

import json
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

    def break_off(self, text: str) -> None:
        """Add a stream that gives this text and is cut before its end."""
        self.steps.append({"stream": text})

    def fail(self, status: int, code: str, **headers: str) -> None:
        """Add an error response."""
        self.steps.append({"status": status, "code": code, "headers": headers})

    def hang(self) -> None:
        """Add a request that is not answered before the script is over."""
        self.steps.append({"hang": True})


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


@contextmanager
def provider_server() -> Iterator[Script]:
    """Serve a script on a free loopback port."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            script.requests.append(json.loads(self.rfile.read(size)))
            step = script.steps.pop(0)
            if step.get("hang"):
                script.release.wait(30)
            elif "status" in step:
                error = {"message": step["code"], "type": step["code"], "code": step["code"]}
                self._send(step["status"], {"error": error}, step["headers"])
            elif "stream" in step:
                self._break_off(step["stream"])
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
                choice = {"index": 0, "delta": {"role": "assistant", "content": piece}}
                event = {"id": "1", "object": "chat.completion.chunk", "created": 1}
                event |= {"model": "scripted", "choices": [choice]}
                self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
            self.wfile.write(b'data: {"id"')

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

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
