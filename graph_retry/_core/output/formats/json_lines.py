"""The format JSON Lines: a list, with each element as JSON on a line of its own."""

from __future__ import annotations

from typing import Any

from graph_retry._core.ground.json import is_array, read_digits, spelled_json
from graph_retry._core.output.formats.fences import answer_in
from graph_retry._core.output.formats.place import Place
from graph_retry.lossless.parse import read_output
from graph_retry.lossless.results import Unreadable, refuse_if, repair
from graph_retry.records import Repair

_TAGS = frozenset({"jsonl", "ndjson", "json"})


class JsonLines:
    """Answers in JSON Lines."""

    name = "jsonl"

    def parse(self, text: str, schema: dict[str, Any] | None) -> list[Any]:
        """Read each line that is not empty as strict JSON."""
        elements: list[Any] = []
        position = 0
        for number, line in enumerate(text.split("\n"), start=1):
            if line.strip():
                read = read_output(line, "none")
                if read.failure is not None:
                    at = position + read.failure["position"]
                    message = f"Line {number} is not a JSON value: {read.failure['message']}"
                    raise Unreadable("syntax", at, message)
                elements.append(read_digits(read.text))
            position += len(line) + 1
        refuse_if(not elements, "no_json", 0, "There is no line: a list without elements is [].")
        wanted = Place.of(schema).element(0).kinds
        if len(elements) == 1 and is_array(elements[0]) and wanted and "array" not in wanted:
            return elements[0]  # The model wrote the whole list on one line.
        return elements

    def repair(self, text: str) -> tuple[str, list[Repair]]:
        """Find the answer in the text around it, and repair each line separately."""
        inside, repairs = answer_in(text, _TAGS)
        lines = inside.split("\n")
        for place, line in enumerate(lines):
            if not line.strip():  # Refusing thousands of empty lines one by one takes seconds.
                continue
            read = read_output(line, "standard")
            if not read.ok:
                return _whole(inside, repairs)
            if read.text != line:
                lines[place] = read.text
                repairs += read.repairs
        return "\n".join(lines), repairs

    def describe(self) -> str:
        """Return the instruction to the model."""
        return (
            "Write JSON Lines and nothing else: one element of the list on each line as JSON, "
            "without brackets or commas between the lines; [] alone if there is none."
        )


def _whole(text: str, repairs: list[Repair]) -> tuple[str, list[Repair]]:
    """If a text is a JSON list over several lines, rewrite it with one element a line."""
    read = read_output(text, "standard")
    if not read.ok or not is_array(read.value):
        return text, repairs
    spread = repair("array", 0, "a list over several lines written one element a line")
    lines = [spelled_json(element) for element in read_digits(read.text)]
    return "\n".join(lines), [*repairs, *read.repairs, spread]
