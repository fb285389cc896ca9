"""The responses of Google's client `genai`, whose streamed pieces are responses as well."""

from __future__ import annotations

from graph_retry._core.output.providers.provider import Provider, Reply, meaning

BLOCKED = ("prompt_feedback.block_reason_message", "prompt_feedback.block_reason")
"""The places of the reason why a prompt was blocked, also in LangChain's metadata."""

_PARTS = "candidates.0.content.parts"
_RESPONSE = Reply(
    # The response to a blocked prompt has no candidate.
    as_object={"candidates": ..., "usage_metadata": ..., "prompt_feedback": ...},
    as_json={"candidates.0.content.role": "model"},
    # The message about a broken call quotes the call, and there are no parts beside it.
    text=(f"{_PARTS}.*!thought.text", "candidates.0.finish_message"),
    calls=(f"{_PARTS}.*.function_call",),
    arguments=("args",),
    id=(),
    reasoning=(f"{_PARTS}.*?thought.text",),
    finish_reason=("candidates.0.finish_reason",),
    blocked=BLOCKED,
    parsed=("parsed",),
    tokens=(
        ("usage_metadata.prompt_token_count",),
        ("usage_metadata.candidates_token_count",),
        ("usage_metadata.total_token_count",),
    ),
    thoughts=("usage_metadata.thoughts_token_count",),
    leaves_out_zero=True,
    is_streamed=True,
)

_WITHOUT_CONTENT = _RESPONSE._replace(
    as_object=None, as_json={"candidates.0.finish_reason": ..., "usage_metadata": ...}
)

PROVIDER = Provider(
    replies=(_RESPONSE, _WITHOUT_CONTENT),
    finish_words={
        **meaning("stopped", "stop"),
        **meaning("truncated", "max_tokens"),
        **meaning("refusal", "safety", "recitation", "blocklist", "prohibited_content"),
        **meaning("refusal", "spii", "language"),
        # The next attempt may correct a broken call.
        **meaning("invalid_syntax", "malformed_function_call", "unexpected_tool_call"),
        **meaning("invalid_syntax", "too_many_tool_calls"),
    },
    error_codes={
        **meaning("denied", "apikeyinvalid", "permissiondenied", "unauthenticated"),
        **meaning("busy", "aborted", "deadlineexceeded", "internal", "resourceexhausted"),
        **meaning("busy", "unavailable"),
        **meaning("rejected", "invalidargument"),
    },
    error_texts={
        r"(?:input )?token count.{0,60}exceeds": "overflow",
        r"exceeds? .{0,40}maximum number of (?:input )?tokens": "overflow",
    },
)
