"""Cohere's finish reasons and error texts.

LangChain's messages from Cohere are read. The objects of Cohere's own client are not.
"""

from __future__ import annotations

from graph_retry._output.providers.provider import ErrorWords, Provider, finishing

PROVIDER = Provider(
    finish_words={**finishing("stopped", "complete"), **finishing("truncated", "max_tokens")},
    error_words=ErrorWords(overflow_text=r"too many (?:input )?tokens"),
)
