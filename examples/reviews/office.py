"""An office whose model calls fail in several ways; the model is scripted and needs no key."""

import base64
import json
import operator
import struct
import zlib
from datetime import date
from typing import Annotated, Any, Final, Literal

from langgraph.graph import START, StateGraph
from langgraph.types import Send
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from graph_retry import AttemptFailed, Completion, retry_llm_call

WAYS: Final = ("approve", "edit", "comment", "respond", "reject", "defer", "assign")
"""What a person of the office may decide: all but taking an output that is not valid."""

FORMATS = "Write numbers as plain numbers and dates as YYYY-MM-DD."


class Invoice(BaseModel):
    """What is read from an invoice."""

    vendor: str
    total: float = Field(description="With tax, in euros")
    due_date: date
    paid: bool = False


class Reading(BaseModel):
    """How the model is asked to read."""

    prompt: str = Field(
        default="Read the invoice. Answer with one JSON object.",
        description="What the model is told to do",
    )
    document: str = Field(description="The text to read")
    model: Literal["small", "large"] = "small"
    temperature: float = Field(default=1.0, ge=0, le=2, description="How freely it chooses")


class Chat(BaseModel):
    """A conversation that the model goes on with."""

    messages: list[dict[str, Any]]
    model: Literal["small", "large"] = "small"
    max_tokens: int | None = None


class Ticket(BaseModel):
    """Where a message of a customer belongs."""

    topic: Literal["invoice", "delivery", "damage", "other"]
    urgent: bool
    tags: list[str] = Field(default_factory=list)


class QuotaExceededError(RuntimeError):
    """What a provider raises when an account has no requests left."""

    status_code = 429


def read(params: Reading) -> str:
    """Read an invoice as a model would: as it stands there, unless it is told otherwise."""
    lines = dict(line.split(": ", 1) for line in params.document.splitlines() if ": " in line)
    total: Any = lines["Total"]
    due = lines["Due"]
    if FORMATS in params.prompt or params.model == "large":
        total, due = float(total.removeprefix("EUR ").replace(",", "")), lines["Day"]
    answer = {"vendor": lines["Vendor"], "total": total, "due_date": due}
    return f"Here is what I found:\n{json.dumps(answer, indent=2)}"


def sort(params: Chat) -> str:
    """Sort a message; what the picture shows is told by the large model only."""
    topic = "damage" if params.model == "large" else "broken parcel"
    return json.dumps({"topic": topic, "urgent": True, "tags": ["photo"]})


def translate(params: dict[str, Any]) -> str:
    """Translate: always with success, and always looked at before it is sent."""
    return f"Guten Tag! Ihre Lieferung kommt {params['day']}."


def summarise(params: dict[str, Any]) -> Completion:
    """Summarise, if there is quota, and as long as there is room."""
    if params["model"] == "small":
        raise QuotaExceededError("quota of model 'small' is used up: 0 of 500 requests left today")
    return Completion('{"summary": "All parcels of the week are', {}, "length")


def formats(error: AttemptFailed, attempt: int, params: Reading) -> Reading | None:
    """Suggest to ask for a format, where the output does not fit."""
    del attempt
    if error.kind != "invalid_schema" or FORMATS in params.prompt:
        return None
    return params.model_copy(update={"prompt": f"{params.prompt} {FORMATS}"})


class Work(TypedDict):
    """What one part of a job is given."""

    text: str
    messages: list[dict[str, Any]]
    labels: dict[str, str]


class Job(TypedDict, total=False):
    """A job: its parts, by the node that does them, and what came of them."""

    parts: list[tuple[str, Work]]
    results: Annotated[list[Any], operator.add]


def invoice(work: Work) -> Job:
    """Read an invoice."""
    params, labels = Reading(document=work["text"]), work["labels"]
    result = retry_llm_call(
        read, params, formats, output=Invoice, labels=labels, allowed_decisions=WAYS
    )
    return {"results": [result.model_dump(mode="json")]}


def ticket(work: Work) -> Job:
    """Sort a message of a customer."""
    params = Chat(messages=work["messages"])
    result = retry_llm_call(
        sort,
        params,
        output=Ticket,
        labels=work["labels"],
        name="sort ticket",
        allowed_decisions=WAYS,
    )
    return {"results": [result.model_dump()]}


def translation(work: Work) -> Job:
    """Translate a message: a person looks at each."""
    params: dict[str, Any] = {"text": work["text"], "day": "am Dienstag"}
    result = retry_llm_call(translate, params, output=str, labels=work["labels"], review="always")
    return {"results": [result]}


def summary(work: Work) -> Job:
    """Summarise a text; one that is cut off may be taken as it is."""
    params = {"model": "small", "document": work["text"]}
    result = retry_llm_call(
        summarise,
        params,
        output=dict[str, str],
        labels=work["labels"],
        allowed_decisions=("approve", "edit", "reject", "respond", "accept"),
    )
    return {"results": [result]}


def build() -> StateGraph[Any, Any, Any, Any]:
    """Put the office together: a node for each kind of work, for all parts of a job at once."""
    builder = StateGraph(Job)
    nodes: dict[str, Any] = {"invoice": invoice, "ticket": ticket}
    nodes |= {"translation": translation, "summary": summary}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_conditional_edges(START, _parts)
    return builder


def _parts(job: Any) -> list[Send]:
    return [Send(node, work) for node, work in job["parts"]]


graph = build()


def _picture() -> str:
    """Draw a small picture, as a photo that came with a message."""
    rows = b""
    for y in range(60):
        line = [
            (200 - y, 150, 90) if 20 < x < 76 and 15 < y < 50 else (235, 240, 242)
            for x in range(96)
        ]
        rows += b"\0" + bytes(part for pixel in line for part in pixel)

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 96, 60, 8, 2, 0, 0, 0))
    png = b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return "data:image/png;base64," + base64.b64encode(png).decode()


def _invoice(vendor: str, total: str, due: str, day: str) -> str:
    return f"Vendor: {vendor}\n400 posters, two colours\nTotal: EUR {total}\nDue: {due}\nDay: {day}"


def _work(text: str = "", messages: Any = (), **labels: str) -> Work:
    return {"text": text, "messages": list(messages), "labels": labels}


_PARCEL = [
    {"role": "system", "content": "Say where the message belongs. Answer in JSON."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "This is how the parcel arrived. What now?"},
            {"type": "image_url", "image_url": {"url": _picture()}},
        ],
    },
]
_NOVEMBER = (
    _invoice("Elbe Papier", "96.20", "1 December 2026", "2026-12-01"),
    _invoice("Harz Holz", "2,310.00", "15 January 2027", "2027-01-15"),
    _invoice("Isar Licht", "48.00", "24 December 2026", "2026-12-24"),
)
_POSTERS = _invoice("Nordlicht Druck, Hamburg", "1,240.50", "3 March 2027", "2027-03-03")
_WEEK = "Parcels of week 47: 312 sent, 309 delivered, 3 damaged."
_HELLO = "Hello! Your delivery arrives on Tuesday."

JOBS: dict[str, Job] = {
    "week-47": {"parts": [("summary", _work(_WEEK, team="logistics"))]},
    "mail-301": {"parts": [("translation", _work(_HELLO, team="support", assignee="ada"))]},
    "mail-302": {"parts": [("ticket", _work("", _PARCEL, team="support", customer="Meyer"))]},
    "november": {"parts": [("invoice", _work(text, team="accounts")) for text in _NOVEMBER]},
    "invoice-7": {"parts": [("invoice", _work(_POSTERS, team="accounts", customer="Nordlicht"))]},
}
"""What the office has to do, by thread."""
