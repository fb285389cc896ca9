"""One question to answer, and a browser that handles its form as real ones do."""

import json
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, Field

from graph_retry._core.ground.functions.awaiting import run_sync
from graph_retry._core.params.codec import ParamsCodec
from graph_retry._core.review import judge as judging
from graph_retry._core.review.decisions import BY_DEFAULT
from graph_retry._core.review.effects import Accepted
from graph_retry._core.review.review_record import Question, Refused
from graph_retry.output import build_validator

TITLE = "extract failed (attempt 2): RateLimitError [r2]"


class Color(Enum):
    RED = "red"
    BLUE = "blue"


class Style(BaseModel):
    tone: str = "plain"
    length: int = Field(default=100, le=1000)
    ratio: float = 1.0


class Params(BaseModel):
    prompt: str = "Read the invoice."
    temperature: float = 1.0
    top_k: int = Field(default=5, ge=1)
    stream: bool = False
    stop: list[str] = []
    system: str | None = None
    seed: int | None = None
    request_id: int = 2**60 + 1
    style: Style = Style()
    labels: dict[str, str] = {}
    ids: list[int] = []
    mode: Literal["fast", "exact"] = "fast"
    due: date | None = None
    price: Decimal = Decimal("1.10")
    color: Color = Color.RED
    code: int | str = 7


class Person(BaseModel):
    name: str
    age: int


def judge(answer: Any, asked: Question) -> Accepted | Refused:
    """Judge an answer in a sync run."""
    return run_sync(judging.judge(answer, asked))


def question(
    params: Any = None, suggested: Any = None, output: Any = Person, **more: Any
) -> Question:
    """Ask about `params` (a full `Params` unless given) after a rate limit in attempt 2."""
    params = Params() if params is None else params
    codec = more.pop("codec", None) or ParamsCodec.for_value(params)
    view, types = codec.encode(params)
    proposal = (None, {}) if suggested is None else codec.encode(suggested)
    validator = None if output is None else build_validator(output)
    return Question(
        **{
            "function_name": "extract",
            "attempt": 2,
            "review_id": "r2",
            "failure": {"kind": "transient", "type": "RateLimitError", "message": "429 quota"},
            "params": view,
            "types": types,
            "allowed": (*BY_DEFAULT, "accept"),
            "codec": codec,
            "suggested_params": proposal[0],
            "suggested_types": proposal[1],
            "schema_of_output": validator.schema if validator else None,
            **({"check_output": validator.acheck} if validator else {}),
            **more,
        }
    )


def through_browser(value: Any) -> Any:
    """Read JSON as JavaScript does, and write it again: numbers become doubles."""
    return json.loads(_stringified(value))


def reset_form(args: dict[str, Any]) -> dict[str, Any]:
    """Turn every field into the text of its box, as the Reset button of both UIs does."""
    return {k: v if isinstance(v, str) else _stringified(v) for k, v in args.items()}


def _stringified(value: Any) -> str:
    if isinstance(value, dict):
        inner = ",".join(f"{json.dumps(k)}:{_stringified(v)}" for k, v in value.items())
        return "{" + inner + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_stringified, value)) + "]"
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value)
        whole = number.is_integer() and abs(number) < 1e21
        return str(int(Decimal(repr(number)))) if whole else repr(number)
    return json.dumps(value)
