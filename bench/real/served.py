"""Ask a served model, and keep each completion: nothing is asked twice, and all read the same."""

import gzip
import hashlib
import json
import os
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import TypedDict

KEPT = Path.home() / ".cache" / "graph-retry" / "completions.jsonl"
"""Completions of this machine."""
RECORDED = Path(__file__).parent / "recorded.jsonl.gz"
"""Completions that the repository has, which the tests replay; `bench.real.record` writes it.

The model is that of `serve.py` (its name and hash stand there), with one thread and one slot, at
most 200 tokens, temperature 0, or 0.7 with the seed that the request has.
"""
MOST_TOKENS = 200
CLIENTS_TOKENS = 400
"""The limit of other libraries' requests, whose prompts do not ask for an answer on one line."""


class Answer(TypedDict):
    """A completion as it is kept."""

    text: str
    finish_reason: str
    usage: dict[str, int]
    tokens: list[tuple[str, float]]
    """The tokens of the answer, each with its log-probability."""


class Unasked(LookupError):
    """No completion of this request is kept, and no model answers."""


class Served:
    """A model at an OpenAI-compatible address, behind the completions that are kept.

    Args:
        url: The address, such as `http://127.0.0.1:8095/v1`; None for kept completions only.
        model: The name that the requests have.
        kept: The file with the completions of this machine; None for those of the repository.
    """

    def __init__(
        self,
        url: str | None,
        model: str = "qwen2.5-coder-0.5b-instruct-q4_k_m",
        kept: Path | None = KEPT,
    ) -> None:
        self.url, self.model, self.asked = url, model, 0
        self._lock, self._kept = threading.Lock(), dict[str, Any]()
        self.read = dict[str, Any]()
        if RECORDED.exists():
            self._read(gzip.decompress(RECORDED.read_bytes()).decode())
        self._file = kept
        if kept is not None and kept.exists():
            self._read(kept.read_text("utf-8"))

    def _read(self, lines: str) -> None:
        for line in lines.splitlines():
            row = json.loads(line)
            self._kept[row["key"]] = row["answer"]

    def ask(
        self,
        messages: Sequence[Mapping[str, str]],
        *,
        temperature: float = 0,
        seed: int | None = None,
        schema: Any = None,
    ) -> Answer:
        """Return the completion of a chat; with `schema`, the server allows only what fits it."""
        request: dict[str, Any] = {
            "model": self.model,
            "messages": [*messages],
            "temperature": temperature,
            "max_tokens": MOST_TOKENS,
        }
        if seed is not None:
            request["seed"] = seed
        if schema is not None:
            given = {"name": "answer", "schema": schema, "strict": True}
            request["response_format"] = {"type": "json_schema", "json_schema": given}
        answer: Answer = self._once(request, self._answer)
        return answer

    def pass_on(self, sent: Mapping[str, Any]) -> dict[str, Any]:
        """Return the server's own response to a client's request, with our settings."""
        request = {**sent, "model": self.model, "temperature": 0, "max_tokens": CLIENTS_TOKENS}
        request.pop("max_completion_tokens", None)
        told: dict[str, Any] = self._once(request, self._asked)
        return told

    def _once(self, request: dict[str, Any], ask: Callable[[dict[str, Any]], Any]) -> Any:
        key = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()[:20]
        with self._lock:
            if key not in self._kept:
                self._kept[key] = ask(request)
                self._keep({"key": key, "request": request, "answer": self._kept[key]})
            self.read[key] = self._kept[key]
            return self._kept[key]

    def _keep(self, row: dict[str, Any]) -> None:
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            with self._file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _answer(self, request: dict[str, Any]) -> Answer:
        told = self._asked(request | {"logprobs": True})
        (choice,) = told["choices"]
        tokens = (choice.get("logprobs") or {}).get("content") or []
        return Answer(
            text=choice["message"]["content"] or "",
            finish_reason=choice["finish_reason"],
            usage={
                "input_tokens": told["usage"]["prompt_tokens"],
                "output_tokens": told["usage"]["completion_tokens"],
                "total_tokens": told["usage"]["total_tokens"],
            },
            tokens=[(each["token"], round(each["logprob"], 4)) for each in tokens],
        )

    def _asked(self, request: dict[str, Any]) -> dict[str, Any]:
        if self.url is None:
            raise Unasked("no kept completion of this request: give the address of a model")
        self.asked += 1
        body = json.dumps(request).encode()
        headers = {"content-type": "application/json"}
        if key := os.environ.get("OPENAI_API_KEY"):
            headers["authorization"] = f"Bearer {key}"
        sent = urllib.request.Request(f"{self.url}/chat/completions", body, headers)  # noqa: S310
        try:
            with urllib.request.urlopen(sent, timeout=600) as response:  # noqa: S310
                told: dict[str, Any] = json.load(response)
        except OSError as error:  # A server that fails says nothing about a way to ask it.
            raise Unasked(f"the model's server did not answer: {error}") from error
        return told
