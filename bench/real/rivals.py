"""Contenders at the real model: each with its own client and retries, two requests at most.

They are driven as their documentation shows, by the same code as on the ladder. A server on
loopback hands their requests to the model, with temperature 0, and keeps what it said.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from types import ModuleType
from typing import Any

from pydantic import TypeAdapter

from bench.ladder_rivals import Make, chat, instructor, pydantic_ai, retry_parser
from bench.ladder_server import RefusedRequestError, serving
from bench.real.families import Case
from bench.real.lanes import Lane, Outcome, judged
from bench.real.served import Answer, Served, Unasked
from graph_retry.hooks import feedback


@dataclass
class _Passing:
    """The model as a server's reply, and what it said for the present case."""

    served: Served
    said: list[Answer]
    sent: list[dict[str, Any]] = field(default_factory=list)
    unasked: bool = False

    def __call__(self, sent: dict[str, Any]) -> dict[str, Any]:
        self.sent.append(sent)
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
        return _judged(case, value, passing)

    return run


def _judged(case: Case, value: Any, passing: _Passing) -> Outcome:
    if passing.unasked:
        raise Unasked("no kept completion of a contender's request")
    is_right = value is not None and case.is_right(value)
    return Outcome(value, is_right, [], passing.said, passing.sent)


def after(rival: Lane) -> Lane:
    """Make a lane of this library that begins with a contender's request, so with its answer."""

    def run(served: Served, case: Case) -> Outcome:
        begun, passing = rival(served, case).sent[0], _Passing(served, [])
        outcome = judged(
            lambda params: passing({**begun, "messages": params["messages"]}),
            {"messages": begun["messages"]},
            case,
            passing.said,
            feedback=feedback(),
            auto_retries=1,
        )
        if passing.unasked:
            raise Unasked("no kept completion of a second request")
        return outcome

    return run


def structured(url: str, output: Any, _: int, /) -> Any:
    """Use LangChain's `with_structured_output`; the server holds the answer to the schema."""
    model = chat(url).with_structured_output(output, method="json_schema")
    return lambda task: model.invoke(task.prompt())


BAML = """
client<llm> Client {{
  provider openai-generic
  options {{
    base_url "http://127.0.0.1/v1"
    model "none"
  }}
}}

{classes}

function Read(task: string, text: string) -> {output} {{
  client Client
  prompt #"
    {{{{ _.role("user") }}}}
    {{{{ task }}}}

    {{{{ text }}}}

    {{{{ ctx.output_format }}}}
  "#
}}
"""
_PLAIN = {
    "string": "string",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}
_TOLD = ("pattern", "format", "minimum", "maximum", "minLength", "maxLength", "minItems")


def _type(schema: Any) -> str:
    if "anyOf" in schema:
        return " | ".join(_type(each) for each in schema["anyOf"])
    if "$ref" in schema:
        return str(schema["$ref"].rpartition("/")[2])
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if schema["type"] == "array":
        return f"({_type(schema['items'])})[]"
    return _PLAIN[schema["type"]]


def _class(name: str, schema: Any) -> str:
    """Spell an object's type in BAML; the limits are told in descriptions."""
    lines = list[str]()
    for key, of in schema["properties"].items():
        told = ", ".join(f"{limit} {of[limit]}" for limit in _TOLD if limit in of)
        described = f" @description({json.dumps(told)})" if told else ""
        lines.append(f"  {key} ({_type(of)}){described}")
    return "\n".join([f"class {name} {{", *lines, "}"])


def baml(served: Served, case: Case) -> Outcome:
    """Use BAML's prompt and parser; it has no second request for an answer that does not fit."""
    module, schema = import_module("baml_py"), TypeAdapter(case.output).json_schema()
    classes = schema.pop("$defs", {}) | {case.output.__name__: schema}
    source = BAML.format(
        classes="\n\n".join(_class(*each) for each in classes.items()),
        output=case.output.__name__,
    )
    runtime = module.BamlRuntime.from_files("baml_src", {"read.baml": source}, {})
    context, types, passing = (
        runtime.create_context_manager(),
        ModuleType("types"),
        _Passing(served, []),
    )
    given = {"task": case.prompt, "text": case.text}
    sent = runtime.build_request_sync("Read", given, context, None, None, {}, False).body.json()
    value = None
    with suppress(RefusedRequestError):
        passing(sent)
        with suppress(Exception):
            read = runtime.parse_llm_response(
                "Read", passing.said[0]["text"], types, types, types, False, context, None, None, {}
            )
            value = TypeAdapter(case.output).validate_python(read)
    return _judged(case, value, passing)


RIVALS: dict[str, Lane] = {
    "pydantic-ai, NativeOutput (constrained)": lane(pydantic_ai("NativeOutput")),
    "LangChain with_structured_output (constrained)": lane(structured),
    "pydantic-ai, PromptedOutput": lane(pydantic_ai("PromptedOutput")),
    "instructor, JSON": lane(instructor("JSON")),
    "BAML (one request)": baml,
    "LangChain RetryWithErrorOutputParser": lane(retry_parser("RetryWithErrorOutputParser")),
}
"""Contenders by name.

Their ways with tools are left out: this model writes a call as text in a fence, and the server
makes no call of it, so that they never have an answer.
"""
AFTER: dict[str, Lane] = {
    f"graph-retry, after the first answer of {name.partition(' (')[0]}": after(RIVALS[name])
    for name in ("pydantic-ai, PromptedOutput", "instructor, JSON", "BAML (one request)")
}
"""This library on the same first answers: what reading and the second request are worth."""
