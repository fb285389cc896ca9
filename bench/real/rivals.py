"""Contenders at the real model: each with its own client and retries, two requests at most.

They are driven as their documentation shows, by the same code as on the ladder. A server on
loopback hands their requests to the model, with temperature 0, and keeps what it said.
"""

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from bench.ladder_rivals import Make, chat, instructor, pydantic_ai, retry_parser
from bench.ladder_server import RefusedRequestError, serving
from bench.real.families import Case
from bench.real.lanes import Lane, Outcome
from bench.real.served import Answer, Served, Unasked


@dataclass
class _Passing:
    """The model as a server's reply, and what it said for the present case."""

    served: Served
    said: list[Answer]
    unasked: bool = False

    def __call__(self, sent: dict[str, Any]) -> dict[str, Any]:
        try:
            told = self.served.pass_on(sent)
        except Unasked as error:
            self.unasked = True
            raise RefusedRequestError(400, str(error), "unasked") from None
        (choice,), usage = told["choices"], told["usage"]
        calls = choice["message"].get("tool_calls") or []
        texts = [call["function"]["arguments"] for call in calls]
        answer: Answer = {
            "text": "".join(texts) or choice["message"]["content"] or "",
            "finish_reason": choice["finish_reason"],
            "usage": {"total_tokens": usage["total_tokens"]},
            "tokens": [],
        }
        self.said.append(answer)
        return told


@dataclass(frozen=True)
class _Task:
    case: Case

    def prompt(self, instructions: str = "", /) -> str:
        parts = (self.case.prompt, self.case.text, instructions)
        return "\n\n".join(part for part in parts if part)


def lane(make: Make) -> Lane:
    """Make a lane of a contender; whatever it raises is an answer that it did not accept."""

    def run(served: Served, case: Case) -> Outcome:
        passing, value = _Passing(served, []), None
        with serving(passing) as url:
            do = make(url, case.output, 1)
            with suppress(Exception):
                value = do(_Task(case))
        if passing.unasked:
            raise Unasked("no kept completion of a contender's request")
        return Outcome(value, value is not None and case.is_right(value), [], passing.said)

    return run


def structured(url: str, output: Any, _: int, /) -> Any:
    """Use LangChain's `with_structured_output`; the server holds the answer to the schema."""
    model = chat(url).with_structured_output(output, method="json_schema")
    return lambda task: model.invoke(task.prompt())


RIVALS: dict[str, Lane] = {
    "instructor, JSON": lane(instructor("JSON")),
    "pydantic-ai, PromptedOutput": lane(pydantic_ai("PromptedOutput")),
    "LangChain RetryWithErrorOutputParser": lane(retry_parser("RetryWithErrorOutputParser")),
    "pydantic-ai, NativeOutput (constrained)": lane(pydantic_ai("NativeOutput")),
    "LangChain with_structured_output (constrained)": lane(structured),
    "pydantic-ai, ToolOutput": lane(pydantic_ai("ToolOutput")),
    "instructor, TOOLS": lane(instructor("TOOLS")),
}
"""Contenders by name."""
