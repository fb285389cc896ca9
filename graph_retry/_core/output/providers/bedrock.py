"""The JSON answers of Bedrock's `converse`, and botocore's error codes."""

from __future__ import annotations

from graph_retry._core.output.providers.provider import Provider, Reply, meaning

_BLOCKS = "output.message.content.*"
_ANSWER = Reply(
    as_json={"output.message.role": "assistant", "stop_reason": ...},
    text=(f"{_BLOCKS}.text",),
    calls=(f"{_BLOCKS}.tool_use",),
    arguments=("input",),
    id=("tool_use_id",),
    reasoning=(f"{_BLOCKS}.reasoning_content.reasoning_text.text",),
    finish_reason=("stop_reason",),
    tokens=(("usage.input_tokens",), ("usage.output_tokens",), ("usage.total_tokens",)),
)

PROVIDER = Provider(
    replies=(_ANSWER,),
    finish_words=meaning("refusal", "guardrail_intervened", "content_filtered"),
    error_codes={
        **meaning("quota", "servicequotaexceeded"),
        **meaning("denied", "accessdenied", "expiredtoken", "invalidsignature"),
        **meaning("denied", "unrecognizedclient"),
        **meaning("busy", "internalfailure", "internalserver", "modelerror", "modelnotready"),
        **meaning("busy", "modelstreamerror", "modeltimeout", "provisionedthroughputexceeded"),
        **meaning("busy", "requestlimitexceeded", "requesttimeout", "serviceunavailable"),
        **meaning("busy", "slowdown", "throttling", "toomanyrequests"),
        **meaning("rejected", "validation"),
    },
)
