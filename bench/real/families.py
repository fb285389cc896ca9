"""Twelve families of inputs with a known truth, drawn by programs.

Half of the families are for choosing between means, the other half for showing what was chosen.
"""

# A family is a type, a function that draws, and a row of `FAMILIES`, which names it.
# ruff: noqa: D103, E501

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

from pydantic import TypeAdapter

from bench.real import outputs

NAMES = [
    "Ada Byron",
    "Bo Lindqvist",
    "Chen Wei",
    "Dora Meyer",
    "Emeka Obi",
    "Farah Aziz",
    "Goro Ito",
    "Hana Novak",
]
CITIES = ["Oslo", "Lyon", "Porto", "Graz", "Turku", "Gdansk", "Bergen", "Leeds"]
GOODS = [
    "desk lamp",
    "office chair",
    "whiteboard",
    "kettle",
    "monitor arm",
    "paper shredder",
    "door stop",
]
MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
MONATE = "Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember"


@dataclass(frozen=True)
class Case:
    """One input: what is asked, of which type the answer is, and what is right."""

    family: str
    number: int
    prompt: str
    text: str
    output: Any
    truth: dict[str, Any]
    free: tuple[str, ...] = ()
    """Fields of free text, which are right if they are valid and not empty."""

    @property
    def id(self) -> str:
        """The name of the case."""
        return f"{self.family}-{self.number}"

    @property
    def is_for_choosing(self) -> bool:
        """Whether means are chosen on this case, and not shown on it."""
        return self.family in CHOOSING

    def is_right(self, value: Any) -> bool:
        """Return whether a validated value is the truth; case and outer spaces do not count."""
        said = _plain(TypeAdapter(self.output).dump_python(value, mode="json"))
        true = _plain(self.truth)
        if any(not said.get(field) for field in self.free):
            return False
        return all(said[field] == true[field] for field in true if field not in self.free)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value.strip().casefold() if isinstance(value, str) else value


def _day(draw: random.Random) -> date:
    return date(2031, 1, 1) + timedelta(days=draw.randrange(365))


def _said(day: date, months: str = MONTHS) -> str:
    return f"{day.day} {months.split('|')[day.month - 1]} {day.year}"


Drawn = tuple[str, dict[str, Any]]


def booking(draw: random.Random) -> Drawn:
    guest, room, day, nights = (
        draw.choice(NAMES),
        draw.choice(("single", "double", "suite")),
        _day(draw),
        draw.randint(2, 14),
    )
    told = {7: "a week", 14: "two weeks"}.get(nights, f"{nights} nights")
    text = f"Hello, I would like the {room}{'' if room == 'suite' else ' room'} from {_said(day)} for {told}. Regards, {guest}"
    return text, {"guest": guest, "room": room, "arrival": day.isoformat(), "nights": nights}


def invoice(draw: random.Random) -> Drawn:
    number, lines = f"INV-{draw.randrange(1000, 9999)}", list[dict[str, Any]]()
    lines.extend(
        {
            "item": item,
            "quantity": draw.randint(1, 6),
            "unit_price": draw.randrange(200, 9000) / 100,
        }
        for item in draw.sample(GOODS, draw.randint(1, 3))
    )
    total = round(sum(line["quantity"] * line["unit_price"] for line in lines), 2)
    said = "; ".join(
        f"{line['quantity']} x {line['item']} at {line['unit_price']:.2f} each" for line in lines
    )
    return f"Invoice {number}: {said}. Total {total:.2f} EUR.", {
        "number": number,
        "lines": lines,
        "total": total,
    }


def contact(draw: random.Random) -> Drawn:
    name, city, code = draw.choice(NAMES), draw.choice(CITIES), f"{draw.randrange(10000, 99999)}"
    land, local = draw.choice(("47", "33", "351", "43")), f"{draw.randrange(10**7, 10**8)}"
    phone = f"+{land} {local[:2]} {local[2:5]} {local[5:]}"
    return f"{name}, Harbour Road {draw.randint(1, 90)}, {code} {city}. Tel. {phone}", {
        "name": name,
        "phone": f"+{land}{local}",
        "postcode": code,
        "city": city,
    }


def tool(draw: random.Random) -> Drawn:
    city, unit, days = (
        draw.choice(CITIES),
        draw.choice(("celsius", "fahrenheit")),
        draw.randint(2, 7),
    )
    words = {2: "two", 3: "three", 4: "four", 5: "five", 6: "six", 7: "seven"}
    text = f"What will the weather be in {city} over the next {words[days]} days? In degrees {unit.capitalize()}, please."
    return text, {"tool": "get_forecast", "arguments": {"city": city, "unit": unit, "days": days}}


def bestellung(draw: random.Random) -> Drawn:
    wer, was, menge, preis, tag = (
        draw.choice(NAMES),
        draw.choice(("Bürostuhl", "Lampe", "Regal", "Teppich")),
        draw.randint(2, 40),
        draw.randrange(1000, 250000) / 100,
        _day(draw),
    )
    zahl = f"{preis:,.2f}".replace(",", " ").replace(".", ",").replace(" ", ".")
    return (
        f"{wer} bestellt {menge} Stück {was} zu je {zahl} Euro, Lieferung am {_said(tag, MONATE).replace(' ', '. ', 1)}.",
        {
            "kunde": wer,
            "artikel": was,
            "menge": menge,
            "preis": preis,
            "lieferdatum": tag.isoformat(),
        },
    )


def headline(draw: random.Random) -> Drawn:
    day, city = _day(draw), draw.choice(CITIES)
    topic, news = draw.choice(
        (
            (
                "sport",
                f"The rowing club of {city} won all four of its races at the regional championship",
            ),
            (
                "weather",
                f"A storm with winds of {draw.randint(90, 140)} km/h tore the roofs off three barns near {city}",
            ),
            (
                "traffic",
                f"The bridge into {city} is closed to all cars and lorries until the end of the month",
            ),
            (
                "culture",
                f"The museum of {city} shows {draw.randint(30, 90)} paintings that had been lost for a century",
            ),
        )
    )
    return f"{day.isoformat()}. {news}.", {"title": "", "topic": topic, "day": day.isoformat()}


def plan(draw: random.Random) -> Drawn:
    day, hours = _day(draw), sorted(draw.sample(range(8, 18), draw.randint(2, 3)))
    slots = [
        {
            "start": f"{hour:02}:{draw.choice((0, 15, 30)):02}",
            "room": f"{draw.choice('ABCD')}{draw.randint(1, 9)}",
            "speaker": name,
        }
        for hour, name in zip(hours, draw.sample(NAMES, len(hours)), strict=True)
    ]
    said = ", ".join(
        f"{slot['speaker']} at {slot['start'].lstrip('0')} in room {slot['room']}" for slot in slots
    )
    return f"On {_said(day)}: {said}.", {"day": day.isoformat(), "slots": slots}


def reading(draw: random.Random) -> Drawn:
    sensor, celsius, status, battery = (
        f"S-{draw.randrange(100, 999)}",
        draw.randrange(-200, 450) / 10,
        draw.choice(("ok", "warning", "alarm")),
        draw.randint(3, 99),
    )
    told = {
        "ok": "all normal",
        "warning": "please keep an eye on it: a warning was raised",
        "alarm": "the alarm went off",
    }[status]
    cold = f"{abs(celsius)} degrees below zero" if celsius < 0 else f"{celsius} degrees"
    return f"Sensor {sensor} reports {cold} (Celsius), battery at {battery} per cent, {told}.", {
        "sensor": sensor,
        "celsius": celsius,
        "status": status,
        "battery": battery,
    }


def transfer(draw: random.Random) -> Drawn:
    (one, two), cents, day = draw.sample(NAMES, 2), draw.randrange(500, 90000), _day(draw)
    return f"{two} should get {cents / 100:.2f} euros from {one}, by {_said(day)} at the latest.", {
        "sender": one,
        "receiver": two,
        "cents": cents,
        "due": day.isoformat(),
    }


def ticket(draw: random.Random) -> Drawn:
    component, what = draw.choice(
        (
            ("login", "I cannot sign in"),
            ("search", "Searching finds nothing"),
            ("billing", "I was charged twice"),
            ("export", "The CSV download is empty"),
        )
    )
    severity, versions = (
        draw.randint(1, 4),
        sorted(f"{draw.randint(2, 4)}.{n}" for n in draw.sample(range(10), draw.randint(1, 2))),
    )
    name = draw.choice(NAMES)
    return (
        f"{what} in version{'s' * (len(versions) > 1)} {' and '.join(versions)}. Severity {severity} of 4. {name}",
        {"component": component, "severity": severity, "versions": versions, "reporter": name},
    )


def minutes(draw: random.Random) -> Drawn:
    jobs = ("book the hall", "order chairs", "call the caterer", "print the badges")
    tasks, said = list[dict[str, Any]](), list[str]()
    for owner, job in zip(draw.sample(NAMES, 2), draw.sample(jobs, 2), strict=True):
        day, done = _day(draw), draw.random() < 0.4
        due = None if done or draw.random() < 0.3 else day
        told = "is finished" if done else f"is due on {_said(day)}" if due else "is still open"
        said.append(f"{owner}'s task, to {job}, {told}")
        tasks.append(
            {"owner": owner, "task": job, "done": done, "due": due.isoformat() if due else None}
        )
    return f"Minutes of Monday. {'. '.join(said)}.", {"tasks": tasks}


def search(draw: random.Random) -> Drawn:
    city, rooms, rent, limit = (
        draw.choice(CITIES),
        draw.choice((None, 2, 3, 4)),
        draw.choice((None, 700, 900, 1250)),
        draw.randint(3, 9),
    )
    sort, order = draw.choice(
        (("rent_rising", "cheapest"), ("rent_falling", "most expensive"), ("newest", "latest"))
    )
    wishes = [f"{rooms} rooms or more"] * bool(rooms) + [f"no more than {rent} a month"] * bool(
        rent
    )
    asked = f" with {' and for '.join(wishes)}" if rooms else f" for {wishes[0]}" if rent else ""
    return f"Show me the {limit} {order} flats in {city}{asked}.", {
        "city": city,
        "rooms_at_least": rooms,
        "rent_at_most": rent,
        "sort": sort,
        "limit": limit,
    }


FAMILIES: dict[str, tuple[Callable[[random.Random], Drawn], Any, str, tuple[str, ...]]] = {
    "booking": (booking, outputs.Booking, "Read the booking. Dates are YYYY-MM-DD.", ()),
    "invoice": (invoice, outputs.Invoice, "Read the invoice.", ()),
    "contact": (
        contact,
        outputs.Contact,
        'Read the address. Example: {"name": "Ann Lee", "phone": "+4512345678", "postcode": "80331", "city": "Aarhus"}',
        (),
    ),
    "tool": (
        tool,
        outputs.ToolCall,
        "Choose the tool that serves this request, and its arguments.",
        (),
    ),
    "bestellung": (
        bestellung,
        outputs.Bestellung,
        "Lies die Bestellung. Zahlen mit Dezimalpunkt, Datum als JJJJ-MM-TT.",
        (),
    ),
    "headline": (
        headline,
        outputs.Headline,
        "Write a headline of at most 30 characters for this report, and give its topic and day.",
        ("title",),
    ),
    "plan": (
        plan,
        outputs.Plan,
        'Read the plan. Times are HH:MM, dates YYYY-MM-DD. Example: {"day": "2030-02-01", "slots": [{"start": "09:30", "room": "A1", "speaker": "Ann Lee"}]}',
        (),
    ),
    "reading": (reading, outputs.Reading, "Read the report of the sensor.", ()),
    "transfer": (
        transfer,
        outputs.Transfer,
        "Read the transfer. Amounts are in cents, dates YYYY-MM-DD.",
        (),
    ),
    "ticket": (ticket, outputs.Ticket, "Sort the ticket.", ()),
    "minutes": (
        minutes,
        outputs.Minutes,
        "List the tasks in these minutes. Dates are YYYY-MM-DD, or null if there is none.",
        (),
    ),
    "search": (
        search,
        outputs.Search,
        "Turn the wish into a search. What is not asked for is null.",
        (),
    ),
}
CHOOSING = ("booking", "contact", "tool", "headline", "transfer")
"""The families on which means are chosen; the others show what was chosen. The last two were written
when everything was chosen."""


def cases(each: int = 12, families: Sequence[str] = tuple(FAMILIES)) -> Iterator[Case]:
    """Yield the cases, family by family in turn, so that a part of them is a fair part."""
    drawn = {name: random.Random(f"real {name}") for name in families}
    for number in range(each):
        for name in families:
            make, output, task, free = FAMILIES[name]
            text, truth = make(drawn[name])
            TypeAdapter(output).validate_python(truth | dict.fromkeys(free, "A title"))
            yield Case(name, number, task, text, output, truth, free)


COMPUTED = ("nights", "days", "cents", "title")
"""Fields whose values are made from the input, and need not occur in it."""
