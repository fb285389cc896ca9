"""Cohere's finish reasons and error texts.

LangChain's messages from Cohere are read. The objects of Cohere's own client are not read.
"""

from __future__ import annotations

from graph_retry._core.output.providers.provider import Provider, meaning

PROVIDER = Provider(
    finish_words={**meaning("stopped", "complete"), **meaning("truncated", "max_tokens")},
    error_texts={r"too many (?:input )?tokens": "overflow"},
)
