"""Extract structured data from a text, as a JSON Schema says. Chat: send the text.

The scripted model reads lines like `Due: 3 March 2027` and copies values as they stand unless the
prompt asks for a format. `small` has quota for one request only, `large` is chatty. The schema is
`params.output_schema`: give your own with the input, or change it in a review.
"""

import json
import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from langgraph.graph import StateGraph
from pydantic import AfterValidator, BaseModel, Field

from graph_retry import AttemptContext, AttemptFailed, create_retry_node
from graph_retry.output import SchemaOfParams, build_validator
from nodes.serving import Messages, around, chat_model, is_real

INVOICE = """Vendor: Nordlicht Druck, Hamburg
400 posters, two colours
Total: EUR 1,240.50
Due: 3 March 2027"""
INVOICE_SCHEMA = {
    "title": "Invoice",
    "type": "object",
    "properties": {
        "vendor": {"type": "string"},
        "total": {"type": "number"},
        "due_date": {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
    },
    "required": ["vendor", "total", "due_date"],
}
FORMATS = "Write numbers as plain numbers and dates as YYYY-MM-DD."


def _usable(schema: dict[str, Any]) -> dict[str, Any]:
    """Refuse an invalid JSON Schema before the model is called."""
    build_validator(schema)
    return schema


class Extraction(BaseModel):
    """All params of the call that a person might want to change."""

    prompt: str = Field(
        default="Read the document. Answer with one JSON object.",
        description="What the model is told to do",
    )
    document: str = Field(
        default=INVOICE, description="The text to read; a chat message takes its place"
    )
    output_schema: Annotated[dict[str, Any], AfterValidator(_usable)] = Field(
        default=INVOICE_SCHEMA, description="JSON Schema of what the model must give"
    )
    model: str = Field(
        default="small",
        description="`small` or `large` (scripted), or a real one such as `openai:gpt-4.1-mini`",
    )
    temperature: float = Field(default=1.0, ge=0, le=2, description="How freely the model chooses")


class Input(Messages, total=False):
    """A message with the text, or params, or both."""

    params: Extraction


class QuotaExceededError(RuntimeError):
    """The error of a provider whose customer has no requests left."""

    status_code = 429


def ask_script(params: Extraction, context: AttemptContext) -> str:
    """Answer like a model would. The answer depends only on the params and the attempt."""
    if params.model not in ("small", "large"):
        msg = f"unknown model {params.model!r}: there are 'small' and 'large'"
        raise ValueError(msg)
    if params.model == "small" and context.attempt > 1:
        msg = "quota of model 'small' is used up (1 request per call): use 'large'"
        raise QuotaExceededError(msg)
    read: dict[str, Any] = {}
    properties: dict[str, Any] = params.output_schema.get("properties", {})
    for name, wanted in properties.items():
        label = re.escape(name.partition("_")[0])
        line = rf"(?im)^{label}\b[^:\n]*:[ \t]*(.+)$"
        found = re.search(line, params.document)
        if found:
            read[name] = _formatted(found[1], wanted) if FORMATS in params.prompt else found[1]
    if not read:
        lines = ", ".join(f"`{name.partition('_')[0].capitalize()}: …`" for name in properties)
        return f"I see nothing of this in the text. I can read lines such as {lines}."
    text = json.dumps(read)
    return text if params.model == "small" else f"Here it is:\n```json\n{text}\n```"


def _formatted(text: str, wanted: Any) -> Any:
    """Write a number or a date in the format that the schema wants, if possible."""
    number = re.search(r"-?\d[\d,]*(?:\.\d+)?", text)
    if number and "type" in wanted and wanted["type"] in ("number", "integer"):
        return json.loads(number[0].replace(",", ""))
    try:
        return datetime.strptime(text, "%d %B %Y").date().isoformat()  # noqa: DTZ007 (only a day)
    except ValueError:
        return text


def ask_model(params: Extraction, context: AttemptContext) -> Any:
    """Ask the scripted model, or a real model if the name contains a provider."""
    if not is_real(params.model):
        return ask_script(params, context)
    schema = json.dumps(params.output_schema)
    return chat_model(params.model, params.temperature).invoke(
        f"{params.prompt} It must fit this JSON Schema:\n{schema}\n\nDocument:\n{params.document}"
    )


def revise(error: AttemptFailed, attempt: int, params: Extraction) -> Extraction | None:
    """Propose params for the next attempt. A person approves or edits them."""
    del attempt
    if error.kind == "invalid_schema" and FORMATS not in params.prompt:
        return params.model_copy(update={"prompt": f"{params.prompt} {FORMATS}"})
    if error.type == "QuotaExceededError":
        return params.model_copy(update={"model": "large"})
    return None


def build(
    ask: Callable[[Extraction, AttemptContext], Any] = ask_model,
) -> StateGraph[Any, Any, Any, Any]:
    """Put the graph together around a model call."""
    output = SchemaOfParams("output_schema")
    return around(
        "extract",
        create_retry_node(ask, Extraction, revise, output=output, name="extract"),
        Input,
        lambda params, messages: params.model_copy(update={"document": messages[-1].text}),
        json.dumps,
    )


graph = build().compile()
