"""The ways to ask for an answer: once, with constrained decoding, and with one more request."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from bench.real.families import Case
from bench.real.prompts import first, schema_of
from bench.real.served import Answer, Served, Unasked
from graph_retry import AttemptsExhausted, retry_llm_call
from graph_retry.hooks import feedback
from graph_retry.records import Attempt


class Outcome(NamedTuple):
    """What one way made of one case."""

    value: Any
    """The accepted value, or None."""
    is_right: bool
    attempts: list[Attempt]
    answers: list[Answer]
    sent: Sequence[dict[str, Any]] = ()
    """The requests of another library."""

    @property
    def is_valid(self) -> bool:
        """Whether an answer was accepted."""
        return self.value is not None

    @property
    def tokens(self) -> int:
        """The tokens of all requests."""
        return sum(answer["usage"]["total_tokens"] for answer in self.answers)


def as_chat(answer: Answer) -> dict[str, Any]:
    """Return a completion as OpenAI's API does, with the log-probabilities of its tokens."""
    usage = answer["usage"]
    return {
        "object": "chat.completion",
        "choices": [
            {
                "message": {"role": "assistant", "content": answer["text"]},
                "finish_reason": answer["finish_reason"],
                "logprobs": {
                    "content": [{"token": token, "logprob": p} for token, p in answer["tokens"]]
                },
            }
        ],
        "usage": {
            "prompt_tokens": usage["input_tokens"],
            "completion_tokens": usage["output_tokens"],
            "total_tokens": usage["total_tokens"],
        },
    }


Lane = Callable[[Served, Case], Outcome]


def judged(
    model: Callable[[Any], Any],
    given: Mapping[str, Any],
    case: Case,
    heard: list[Answer],
    *hooks: Any,
    **options: Any,
) -> Outcome:
    """Call the model by this library, and return what came of it; nobody is asked."""
    records = list[Attempt]()
    try:
        value = retry_llm_call(
            model, given, list(hooks), output=case.output, review=False,
            on_attempt=records.append, **options,
        )  # fmt: skip
    except AttemptsExhausted as error:
        # A request that was not made is no answer of the model.
        if (error.attempts[-1]["failure"] or {}).get("type") == "Unasked":
            raise Unasked(case.id) from None
        return Outcome(None, False, records, heard)
    return Outcome(value, case.is_right(value), records, heard)


def lane(
    *hooks: Any,
    constrained: bool = False,
    messages: bool = False,
    prompt: Callable[[Case], str] = first,
    sample: int | None = None,
    **options: Any,
) -> Lane:
    """Make a lane of this library with these hooks and options; nobody is asked."""

    def run(served: Served, case: Case) -> Outcome:
        heard = list[Answer]()

        def model(params: Mapping[str, Any]) -> dict[str, Any]:
            answer = served.ask(
                params.get("messages") or [{"role": "user", "content": params["prompt"]}],
                temperature=params.get("temperature", 0),
                seed=params.get("seed"),
                schema=schema_of(case) if params["constrained"] else None,
            )
            heard.append(answer)
            return as_chat(answer)

        given: dict[str, Any] = {"prompt": prompt(case), "constrained": constrained}
        if messages:
            given = {"messages": [{"role": "user", "content": given.pop("prompt")}], **given}
        if sample is not None:
            given |= {"temperature": 0.7, "seed": sample}
        return judged(model, given, case, heard, *hooks, **options)

    return run


def warmer(_: Any, attempt: int, params: Mapping[str, Any]) -> Any:
    """Ask the same again at another temperature, as a hook."""
    return {**params, "temperature": 0.7, "seed": attempt}


def constrain(_: Any, __: int, params: Mapping[str, Any]) -> Any:
    """Ask again with constrained decoding, as a hook."""
    return {**params, "constrained": True}


ONCE: dict[str, Lane] = {"free": lane(), "constrained": lane(constrained=True)}
RETRIES: dict[str, Lane] = {
    "feedback with the type": lane(feedback=feedback(), auto_retries=1),
    "the same, in messages": lane(feedback=feedback(), auto_retries=1, messages=True),
    "feedback without the type": lane(feedback=feedback(schema=False), auto_retries=1),
    "feedback as turns, with the wrong answer": lane(
        feedback=feedback("full", schema=False, turns=True), auto_retries=1, messages=True
    ),
    "no feedback, temperature 0.7": lane(warmer, auto_retries=1),
    "constrained, no feedback": lane(constrain, auto_retries=1),
    "constrained, with feedback": lane(constrain, feedback=feedback(schema=False), auto_retries=1),
}
"""The ways to use one more request after a refused answer."""
SECOND = lane(constrained=True, sample=1)
"""A second sample of the constrained answer, to compare it with."""
