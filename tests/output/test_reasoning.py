"""What a model writes to itself first is read, wherever a provider puts it."""

from types import SimpleNamespace as Made

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry._core.output.completion import read_result
from graph_retry._core.output.pieces import Pieces
from tests.loops import Model, one_call, reviews, thread

THOUGHT, ANSWER = "The total is below.", "7"
USAGE = {"usage": None}
CHAT = {"role": "assistant", "content": ANSWER}
RESULTS = {
    "Anthropic": Made(
        content=[Made(type="thinking", thinking=THOUGHT), Made(type="text", text=ANSWER)],
        stop_reason="end_turn",
    ),
    "Anthropic, JSON": {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": ANSWER}],
    },
    "Bedrock": {
        "output": {
            "message": {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": THOUGHT}}},
                    {"text": ANSWER},
                ],
            }
        },
        "stopReason": "end_turn",
    },
    "DeepSeek": {"choices": [{"message": {**CHAT, "reasoning_content": THOUGHT}}]},
    "OpenRouter": {"choices": [{"message": {**CHAT, "reasoning": THOUGHT}}]},
    "OpenAI": {
        "object": "response",
        "output": [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
            {"type": "message", "content": [{"type": "output_text", "text": ANSWER}]},
        ],
    },
    "Google": {
        "candidates": [
            {
                "content": {
                    "role": "model",
                    "parts": [{"text": THOUGHT, "thought": True}, {"text": ANSWER}],
                }
            }
        ]
    },
    "Ollama": {
        "created_at": "2030",
        "done": True,
        "message": {**CHAT, "thinking": THOUGHT},
    },
    "LangChain, Anthropic": AIMessage(
        [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": ANSWER}]
    ),
    "LangChain, OpenAI": AIMessage(
        [
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": THOUGHT}]},
            {"type": "text", "text": ANSWER},
        ]
    ),
    "LangChain, Bedrock": AIMessage(
        [
            {"type": "reasoning_content", "reasoning_content": {"text": THOUGHT}},
            {"type": "text", "text": ANSWER},
        ]
    ),
    "LangChain, standard": AIMessage(
        [{"type": "reasoning", "reasoning": THOUGHT}, {"type": "text", "text": ANSWER}]
    ),
    "LangChain, DeepSeek": AIMessage(ANSWER, additional_kwargs={"reasoning_content": THOUGHT}),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS)
def test_reasoning_is_read_beside_the_answer(result):
    """It is no part of the answer."""
    reading = read_result(result)
    assert (reading.text, reading.reasoning) == (ANSWER, THOUGHT)


def test_a_model_that_does_not_reason_has_none():
    """An empty text is no reasoning."""
    for result in (ANSWER, AIMessage(ANSWER), {"choices": [{"message": CHAT}]}):
        assert read_result(result).reasoning is None


STREAMS = {
    "DeepSeek": [
        Made(
            usage=None,
            choices=[Made(delta=Made(content=text, reasoning_content=thought), finish_reason=None)],
        )
        for text, thought in (("", "The total "), ("", "is below."), (ANSWER, None))
    ],
    "Anthropic": [
        Made(type="content_block_delta", index=0, delta=Made(thinking="The total ")),
        Made(type="content_block_delta", index=0, delta=Made(thinking="is below.")),
        Made(type="content_block_delta", index=1, delta=Made(text=ANSWER)),
    ],
    "LangChain": [
        AIMessageChunk("", additional_kwargs={"reasoning_content": "The total "}),
        AIMessageChunk("", additional_kwargs={"reasoning_content": "is below."}),
        AIMessageChunk(ANSWER),
    ],
}


@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS)
def test_streamed_reasoning_is_put_together(stream):
    """Piece by piece, as the answer is."""
    pieces = Pieces()
    for piece in stream:
        pieces.add(piece)
    reading = read_result(pieces.result())
    assert (reading.text, reading.reasoning) == (ANSWER, THOUGHT)


def test_a_person_sees_how_the_model_reasoned(mode):
    """The record has it bounded, the review shorter, and both redacted as the answer is."""
    thought = "Ada paid. " + "So " * 20_000
    said = AIMessage("none", additional_kwargs={"reasoning_content": thought})
    graph = one_call(
        "node", mode, Model(lambda _: said), InMemorySaver(),
        redact=lambda text: text.replace("Ada", "***"),
    )  # fmt: skip
    mode.invoke(graph, {"params": {"prompt": "x"}}, thread())
    (review,) = reviews(mode, graph, thread())
    assert review.reasoning.startswith("*** paid. So ")
    assert len(review.reasoning) <= 2_000
    assert "The model's reasoning:\n```text\n*** paid. So" in review.value["description"]
    assert 2_000 < len(review.history[0]["raw"]["reasoning"]) <= 20_000
    assert "Ada" not in str(review.history)
