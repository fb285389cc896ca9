"""The protocol `Format`, the built-in formats by name, and a function that reads an answer."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal, Protocol, cast, runtime_checkable

from langgraph.errors import GraphBubbleUp

from graph_retry._core.ground.functions.kinds import misfit
from graph_retry._core.ground.issues import describe, json_problem
from graph_retry._core.ground.json import as_floats, spelled_json
from graph_retry._core.output.formats.fences import whole_fence
from graph_retry.lossless import ParsedOutput
from graph_retry.lossless._ground import EscapedText, text_of
from graph_retry.lossless.results import Unreadable
from graph_retry.records import Repair, RepairLevel

FormatName = Literal["json", "yaml", "jsonl", "xml"]

_FILES = {"yaml": "yaml_format:Yaml", "jsonl": "json_lines:JsonLines", "xml": "tagged:Tagged"}
"""The module and class of each format, loaded at first use."""


@runtime_checkable
class Format(Protocol):
    """The notation of an answer: how to parse it, repair it and explain it to a model."""

    name: str
    """A short word that also names the failure: `yaml` gives `InvalidYAML`."""

    def parse(self, text: str, schema: dict[str, Any] | None) -> Any:
        """Read a text to a JSON value, losslessly or not at all.

        Args:
            text: The answer, as `repair` returned it.
            schema: The JSON Schema of the wanted output, or None if it is unknown. A format may
                need it to tell, for example, a number from a text.

        Raises:
            ValueError: If the answer is not in this format. The model reads the error's message in
                its next attempt. An exception of another class is treated like a `ValueError`.
        """
        ...

    def repair(self, text: str) -> tuple[str, list[Repair]]:
        """Return the answer in a text, such as the content of a code fence, and the repairs.

        Only the repair levels `standard` and `aggressive` call this method. The level `minimal`
        only removes a code fence around the whole text.
        """
        ...

    def describe(self) -> str:
        """Return a sentence for the prompt that tells a model to write this format."""
        ...


def format_named(given: FormatName | Format | None) -> Format | None:
    """Return the built-in format of a name, or the given format.

    JSON gives None, because it has its own reader and is not a `Format`.
    """
    if not isinstance(given, str):
        return given
    module, _, name = _FILES.get(given, "").partition(":")
    return getattr(import_module(f"{__package__}.{module}"), name)() if module else None


class FormatMistakeError(EscapedText, TypeError):
    """A method of a user's format returned a wrong type, so another answer cannot help."""


def read_as(
    written: Format,
    text: str,
    level: RepairLevel,
    *,
    schema: dict[str, Any] | None,
    complete: bool | None,
) -> ParsedOutput:
    """Read an answer in a format other than JSON.

    The `text` of a successful result is JSON, so that later steps need not know the format.

    Raises:
        FormatMistakeError: If a method of the format returns something of the wrong type.
    """
    repairs, inside = list[Repair](), text
    try:
        # Most formats have no end mark, so the text cannot show whether the text was cut off.
        if complete is False:
            raise Unreadable("truncated", len(text), "The answer was cut off.")
        inside = whole_fence(text).strip("\ufeff") if level == "minimal" else text
        if level in {"standard", "aggressive"}:
            inside, repairs = _pair(written.name, written.repair(text))
        exact = written.parse(inside, schema)
        value = as_floats(exact)
    except Unreadable as error:
        refusal = error.refusal
    except (GraphBubbleUp, FormatMistakeError):
        raise
    except Exception as error:  # noqa: BLE001 - a user's format may raise anything
        kind = "" if type(error) is ValueError else f"{type(error).__name__}: "
        refusal = Unreadable("syntax", 0, f"{kind}{text_of(error)}".removesuffix(": ")).refusal
    else:
        problem = json_problem(value)
        if problem is None:
            return ParsedOutput(True, value, spelled_json(exact), repairs)
        place = problem["path"]
        if problem["code"] == "not_json":
            came = f"{place}: {problem['message']}" if place else describe(value)
            raise FormatMistakeError(
                f"`parse` of the format `{written.name}` returned {came}; return plain JSON data."
            )
        refusal = Unreadable("syntax", 0, f"{place or 'the answer'}: {problem['message']}").refusal
    refusal["excerpt"] = inside[max(0, refusal["position"] - 40) : refusal["position"] + 40]
    return ParsedOutput(False, None, text, [], lossless=False, failure=cast("Any", refusal))


def _pair(name: str, returned: Any) -> tuple[str, list[Repair]]:
    """Return a format's repaired text and its repairs, after a check of their types."""
    if misfit(returned, tuple[str, list[Any]], "repair") is None:
        return cast("tuple[str, list[Repair]]", returned)
    raise FormatMistakeError(
        f"`repair` of the format `{name}` returned {describe(returned)}; return a tuple of a text "
        "and a list of repairs, such as `(text, [])`."
    )
