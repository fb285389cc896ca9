"""The scripted model behind OpenAI's chat completions, on the loopback interface."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from bench.ladder_model import Answer, RefusedRequestError, ScriptedModel

Reply = Callable[[dict[str, Any]], dict[str, Any]]
"""Answers the body of a request, or raises `RefusedRequestError`."""


@contextmanager
def serving(model: ScriptedModel | Reply) -> Iterator[str]:
    """Serve a model, and yield the base URL that a client is given."""
    reply: Reply = partial(completion, model) if isinstance(model, ScriptedModel) else model

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                status, said = 200, reply(sent)
            except RefusedRequestError as error:
                told = {"message": str(error), "type": "invalid_request_error", "code": error.code}
                status, said = error.status, {"error": told}
            body = json.dumps(said).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("retry-after-ms", "1")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Print no line for each request."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        server.server_close()


def completion(model: ScriptedModel, sent: dict[str, Any]) -> dict[str, Any]:
    """Answer a request: with tools, the model's text is the arguments of the first one."""
    tools = sent.get("tools", [])
    asked = {name: sent[name] for name in ("tools", "response_format") if sent.get(name)}
    prompt = "\n".join(_text(message) for message in sent["messages"])
    answer = model(prompt, unseen=len(json.dumps(asked)) if asked else 0, asked=sent)
    message: dict[str, Any] = {"role": "assistant", "content": None if tools else answer.text}
    reason = answer.finish_reason
    if answer.refusal is not None:
        message |= {"content": None, "refusal": answer.refusal}
    elif tools:
        name = tools[0]["function"]["name"]
        arguments = _patches(answer, sent) if name == "PatchFunctionErrors" else answer.text
        call = {"name": name, "arguments": arguments}
        message["tool_calls"] = [{"id": "call_1", "type": "function", "function": call}]
        reason = "tool_calls" if reason == "stop" else reason
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def _text(message: dict[str, Any]) -> str:
    content = message.get("content") or ""
    parts = [content] if isinstance(content, str) else [part.get("text", "") for part in content]
    calls = message.get("tool_calls") or []
    return "\n".join([*parts, *(call["function"]["arguments"] for call in calls)])


def _patches(answer: Answer, sent: dict[str, Any]) -> str:
    """Spell a corrected object as trustcall asks for it: as patches to what was wrong."""
    call = next(m["tool_calls"][0] for m in sent["messages"] if m.get("tool_calls"))
    wrong = json.loads(call["function"]["arguments"])
    try:
        right = json.loads(answer.text)
    except ValueError:
        return answer.text
    patches = [
        {"op": "add", "path": f"/{key}", "value": value}
        for key, value in right.items()
        if wrong.get(key) != value
    ]
    return json.dumps({"json_doc_id": call["id"], "planned_edits": "", "patches": patches})
