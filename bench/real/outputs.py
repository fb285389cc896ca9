"""The types of the answers, with the limits and checks that the families try."""

# A type is explained by its fields.
# ruff: noqa: D101, D102

from datetime import date
from typing import Annotated, Literal

from pydantic import BaseModel, Field, model_validator


class Strict(BaseModel, extra="forbid"):
    """Forbids unknown keys, as tools and providers do."""


class Booking(Strict):
    guest: str
    room: Literal["single", "double", "suite"]
    arrival: date
    nights: Annotated[int, Field(ge=1, le=21)]


class Line(Strict):
    item: str
    quantity: Annotated[int, Field(ge=1)]
    unit_price: float


class Invoice(Strict):
    number: Annotated[str, Field(pattern=r"^INV-\d{4}$")]
    lines: list[Line]
    total: float

    @model_validator(mode="after")
    def adds_up(self) -> "Invoice":
        total = sum(line.quantity * line.unit_price for line in self.lines)
        if abs(total - self.total) > 0.01:
            raise ValueError(f"total is {self.total:g}, but the lines add up to {total:g}")
        return self


class Contact(Strict):
    name: str
    phone: Annotated[str, Field(pattern=r"^\+\d{8,14}$")]
    postcode: Annotated[str, Field(pattern=r"^\d{5}$")]
    city: str


class Forecast(Strict):
    city: str
    unit: Literal["celsius", "fahrenheit"]
    days: Annotated[int, Field(ge=1, le=7)]


class ToolCall(Strict):
    tool: Literal["get_forecast", "cancel_forecast"]
    arguments: Forecast


class Bestellung(Strict):
    kunde: str
    artikel: str
    menge: int
    preis: float
    lieferdatum: date


class Headline(Strict):
    title: Annotated[str, Field(max_length=30)]
    topic: Literal["sport", "weather", "traffic", "culture"]
    day: date


class Slot(Strict):
    start: Annotated[str, Field(pattern=r"^\d\d:\d\d$")]
    room: Annotated[str, Field(pattern=r"^[A-D]\d$")]
    speaker: str


class Plan(Strict):
    day: date
    slots: list[Slot]


class Reading(Strict):
    sensor: Annotated[str, Field(pattern=r"^S-\d{3}$")]
    celsius: float
    status: Literal["ok", "warning", "alarm"]
    battery: Annotated[int, Field(ge=0, le=100)]


class Transfer(Strict):
    sender: str
    receiver: str
    cents: Annotated[int, Field(ge=1)]
    due: date

    @model_validator(mode="after")
    def goes_elsewhere(self) -> "Transfer":
        if self.sender == self.receiver:
            raise ValueError("sender and receiver are the same person")
        return self


class Ticket(Strict):
    component: Literal["login", "search", "billing", "export"]
    severity: Annotated[int, Field(ge=1, le=4)]
    versions: Annotated[list[str], Field(min_length=1)]
    reporter: str


class Task(Strict):
    owner: str
    task: str
    done: bool
    due: date | None


class Minutes(Strict):
    tasks: list[Task]


class Search(Strict):
    city: str
    rooms_at_least: int | None
    rent_at_most: int | None
    sort: Literal["rent_rising", "rent_falling", "newest"]
    limit: Annotated[int, Field(ge=1, le=20)]
