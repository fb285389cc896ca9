"""The answers of Ollama's client to `chat` and `generate`: whole, streamed, or as JSON."""

from __future__ import annotations

from graph_retry._core.output.providers.provider import Provider, Reply, meaning

_CHAT = Reply(
    # An answer and a piece of one both have the attribute `done`.
    as_object={"done": ..., "eval_count": ..., "message": ...},
    as_json={"message.role": "assistant", "created_at": ..., "done": ...},
    text=("message.content",),
    calls=("message.tool_calls.*.function",),
    id=(),
    reasoning=("message.thinking",),
    finish_reason=("done_reason",),
    tokens=(("prompt_eval_count",), ("eval_count",), ()),
    leaves_out_zero=True,
    is_streamed=True,
)
_TEXT = _CHAT._replace(
    as_object={"done": ..., "eval_count": ..., "response": ...},
    as_json={"response": str, "created_at": ..., "done": ...},
    text=("response",),
    calls=(),
    reasoning=("thinking",),
)

PROVIDER = Provider(
    replies=(_CHAT, _TEXT),
    finish_words={**meaning("stopped", "stop"), **meaning("truncated", "length")},
)
