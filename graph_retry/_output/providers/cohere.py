"""Cohere's words; its own client's objects are not read, LangChain's messages from it are."""

from __future__ import annotations

from graph_retry._output.providers.provider import ErrorWords, Provider, finishing

PROVIDER = Provider(
    finish_words={**finishing("stopped", "complete"), **finishing("truncated", "max_tokens")},
    error_words=ErrorWords(overflow_text=r"too many (?:input )?tokens"),
)
