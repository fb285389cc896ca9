"""The messages and the stream events of Anthropic's client."""

from __future__ import annotations

from graph_retry._core.ground.functions.awaiting import raised_in
from graph_retry._core.output.providers.provider import Provider, Reply, meaning
from graph_retry.lossless._ground import lazy, text_of

_QUOTED = lazy(r"(?s)Unable to parse tool parameter JSON from model\b.*? JSON: (.*)")


def unparsed_arguments(error: BaseException) -> str | None:
    """Return the streamed tool arguments that Anthropic's client could not parse, or None.

    The arguments are only in the error's text, which is read if the client itself raised the error.
    """
    if not isinstance(error, ValueError) or not raised_in(error, "anthropic."):
        return None
    quoted = _QUOTED.match(text_of(error))
    return quoted[1] if quoted else None


_MESSAGE = Reply(
    as_object={"content": list, "stop_reason": ...},
    as_json={"type": "message", "role": "assistant"},
    text=("content.*:text.text",),
    calls=("content.*:tool_use",),
    arguments=("input",),
    reasoning=("content.*:thinking.thinking",),
    finish_reason=("stop_reason",),
    tokens=(("usage.input_tokens",), ("usage.output_tokens",), ("usage.total_tokens",)),
)
_EVENTS = (
    Reply(
        as_object={"type": "content_block_delta"},
        text=("delta.text",),
        calls=("delta?partial_json",),
        arguments=("partial_json",),
        reasoning=("delta.thinking",),
    ),
    Reply(
        as_object={"type": "content_block_start"},
        calls=("content_block:tool_use",),
        arguments=(),
    ),
    Reply(
        as_object={"type": "message_start"},
        tokens=(("message.usage.input_tokens",), (), ()),
        leaves_out_zero=True,
    ),
    Reply(
        as_object={"type": "message_delta"},
        finish_reason=("delta.stop_reason",),
        tokens=((), ("usage.output_tokens",), ()),
        leaves_out_zero=True,
    ),
    *(Reply(as_object={"type": kind}) for kind in ("content_block_stop", "message_stop", "ping")),
    # The SDK's stream helper adds events that repeat the others. A user's own model may have a
    # field `type` with the same value, so such an event needs a second field to be recognized.
    *(
        Reply(as_object={"type": kind, "snapshot": ...})
        for kind in ("text", "input_json", "thinking", "citation")
    ),
    Reply(as_object={"type": "signature", "signature": ...}),
)

PROVIDER = Provider(
    replies=(_MESSAGE,),
    pieces=_EVENTS,
    finish_words={
        **meaning("stopped", "end_turn", "stop_sequence", "tool_use"),
        **meaning("truncated", "max_tokens"),
        **meaning("context_overflow", "model_context_window_exceeded"),
        **meaning("refusal", "refusal"),
    },
    error_codes={
        **meaning("quota", "billingerror"),
        **meaning("overflow", "modelcontextwindowexceeded"),
        **meaning("denied", "authenticationerror", "permissionerror"),
        **meaning("busy", "apierror", "overloaded", "overloadederror", "ratelimiterror"),
        **meaning("busy", "timeouterror"),
        **meaning("rejected", "invalidrequesterror", "notfounderror"),
    },
    error_texts={
        r"(?:prompt|input) is too long": "overflow",
        r"credit balance is too low": "no_credit",
    },
)
