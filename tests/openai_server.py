"""A loopback server that speaks enough of OpenAI's API to misbehave like the real one."""

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

    def say(self, text: str | None, *, finish: str = "stop", refusal: str | None = None) -> None:
        """Add a completion to the script."""
        self.steps.append({"text": text, "finish": finish, "refusal": refusal})

    def fail(self, status: int, code: str, **headers: str) -> None:
        """Add an error response."""
        self.steps.append({"status": status, "code": code, "headers": headers})

    def hang(self) -> None:
        """Add a request that is not answered before the script is over."""
        self.steps.append({"hang": True})


@contextmanager
def openai_server() -> Iterator[Script]:
    """Serve a script on a free loopback port."""
    script = Script()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["content-length"])
            script.requests.append(json.loads(self.rfile.read(size)))
            step = script.steps.pop(0)
            if step.get("hang"):
                script.release.wait(30)
                return
            if "status" in step:
                error = {"message": step["code"], "type": step["code"], "code": step["code"]}
                self._send(step["status"], {"error": error}, step["headers"])
                return
            message = {"role": "assistant", "content": step["text"], "refusal": step["refusal"]}
            choice = {"index": 0, "message": message, "finish_reason": step["finish"]}
            usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
            body = {"id": "1", "object": "chat.completion", "created": 1, "model": "scripted"}
            self._send(200, {**body, "choices": [choice], "usage": usage}, {})

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
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        script.release.set()
        server.shutdown()
        thread.join()
        server.server_close()
