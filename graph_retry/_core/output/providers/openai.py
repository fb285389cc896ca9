"""OpenAI's Chat Completions API and Responses API.

LiteLLM, Groq, vLLM, OpenRouter, Mistral's server and others return the same shapes.
"""

from __future__ import annotations

from graph_retry._core.output.providers.provider import Provider, Reply, meaning

_TOKENS = (
    ("usage.input_tokens", "usage.prompt_tokens"),
    ("usage.output_tokens", "usage.completion_tokens"),
    ("usage.total_tokens",),
)
_SAID = "choices.0.message"
_CHAT = Reply(
    as_object={f"{_SAID}.content": ...},
    as_json={f"{_SAID}.role": "assistant"},
    text=(f"{_SAID}.content",),
    calls=(f"{_SAID}.tool_calls.*?function", f"{_SAID}.function_call"),
    name=("function.name", "name"),
    arguments=("function.arguments", "arguments"),
    # DeepSeek, vLLM, OpenRouter and other servers add the model's reasoning to a message.
    reasoning=(f"{_SAID}.reasoning_content", f"{_SAID}.reasoning"),
    finish_reason=("choices.0.finish_reason",),
    refusal=(f"{_SAID}.refusal",),
    parsed=(f"{_SAID}.parsed",),
    tokens=_TOKENS,
)
_DELTA = "choices.0.delta"
_CHAT_PIECE = Reply(
    as_object={_DELTA: ..., "usage": ...},
    text=(f"{_DELTA}.content",),
    calls=(f"{_DELTA}.tool_calls.*",),
    name=("function.name",),
    arguments=("function.arguments",),
    reasoning=(f"{_DELTA}.reasoning_content", f"{_DELTA}.reasoning"),
    finish_reason=("choices.0.finish_reason",),
    refusal=(f"{_DELTA}.refusal",),
    tokens=_TOKENS,
)
_USAGE_PIECE = Reply(as_object={"choices": [], "usage": ...}, tokens=_TOKENS)
_RESPONSE = Reply(
    as_object={"output_text": str, "output": list},
    as_json={"object": "response", "output": list},
    text=("output_text", "output.*.content.*:output_text.text"),
    calls=("output.*:function_call",),
    id=("call_id",),
    reasoning=("output.*:reasoning.summary.*.text",),
    finish_reason=("incomplete_details.reason", "status"),
    refusal=("output.*.content.*:refusal.refusal",),
    parsed=("output_parsed",),
    tokens=_TOKENS,
)

PROVIDER = Provider(
    replies=(_CHAT, _RESPONSE),
    pieces=(_CHAT_PIECE, _USAGE_PIECE),
    finish_words={
        **meaning("stopped", "stop", "completed", "tool_calls", "function_call"),
        **meaning("stopped", "eos"),  # TGI's server uses this word.
        **meaning("truncated", "length", "max_output_tokens", "incomplete"),
        **meaning("truncated", "model_length"),  # Mistral's server uses this word.
        **meaning("refusal", "content_filter"),
    },
    error_codes={
        **meaning("quota", "insufficientquota", "billinghardlimitreached", "accountdeactivated"),
        **meaning("overflow", "contextlengthexceeded", "contextwindowexceeded"),
        **meaning("overflow", "exceedcontextsizeerror"),
        **meaning("filtered", "contentfilter", "contentpolicyviolation", "moderationblocked"),
        **meaning("filtered", "responsibleaipolicyviolation"),
        **meaning("denied", "invalidapikey"),
        **meaning("busy", "internalerror", "internalservererror", "ratelimitexceeded"),
        **meaning("busy", "servererror"),
        **meaning("rejected", "invalidrequesterror"),
    },
    error_texts={
        # xAI, Moonshot, Together and Alibaba, whose APIs have OpenAI's shape, use some of these.
        r"context (?:length|limit|size|window)|maximum prompt length|model token limit": "overflow",
        r"tokens.{0,40} must be <=|range of input length should be": "overflow",
        r"request too large for": "too_large",
        r"content (?:filtering|management) policy|(?:by|of) (?:our|the) safety system": "filtered",
        r"(?:prompt|input) was flagged": "filtered",
    },
)
