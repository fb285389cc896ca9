"""Read and validate outputs without a call.

- `parse_output` reads a model's text, losslessly or not at all.
- `build_validator` makes a validator, as a call does for its option `output`.
- `SchemaOfParams` and `heuristic` make validators for the option `output`.
- `Format` is the protocol of your own answer format, for the option `format`.
- `describe_type` writes a JSON Schema as a short notation of the type.
- `describe_format` writes the part of a prompt that tells the model how to answer.
- `wrap_error` turns an exception into issues.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from graph_retry._core.ground import issues
from graph_retry._core.ground.functions.arguments import checked
from graph_retry._core.ground.issues import issue
from graph_retry._core.ground.json import ABSENT
from graph_retry._core.ground.quoting import fenced
from graph_retry._core.output import build
from graph_retry._core.output.build import SchemaOfParams, heuristic
from graph_retry._core.output.completion import Reading, read_result
from graph_retry._core.output.failures import syntax_issue
from graph_retry._core.output.formats.format import Format, FormatName, format_named
from graph_retry._core.output.json_schema.notation import describe_type
from graph_retry._core.output.unwrapped import check_inside
from graph_retry._core.output.validator import Checked, Validator, format_issues
from graph_retry.lossless import ParsedOutput, Refusal, read
from graph_retry.lossless._ground import lazy
from graph_retry.lossless.parse import document_in, read_output
from graph_retry.lossless.results import NOTHING_KNOWN, Unreadable
from graph_retry.records import Issue, RepairLevel

__all__ = [
    "Checked",
    "Format",
    "ParsedOutput",
    "Reading",
    "Refusal",
    "SchemaOfParams",
    "Validator",
    "build_validator",
    "check_inside",
    "describe_format",
    "describe_type",
    "extract_code_fence",
    "extract_json_block",
    "format_issues",
    "heuristic",
    "issue",
    "parse_output",
    "read_result",
    "remove_trailing_commas",
    "repair_output",
    "syntax_issue",
    "wrap_error",
]

_FENCE = lazy(r"(?ms)^ *(`{3,}|~{3,}) *([^\s`]*)[^\n`]*\n(.*?)(?:\n?^ *\1[`~]* *$|\Z)")
_STRING_OR_COMMA = lazy(r"\"(?:[^\"\\]|\\.)*+\"?|,(?=\s*[}\]])", re.DOTALL)


@checked
def parse_output(
    text: str,
    level: RepairLevel = "standard",
    *,
    complete: bool | None = None,
    wants_list: bool | None = None,
    fits: Callable[[Any], bool] | None = None,
) -> ParsedOutput:
    """Read the JSON value in a model's output, losslessly or not at all.

    The arguments are the same as those of `graph_retry.lossless.read`, and are described there.

    Raises:
        TypeError: If `text` is not a string.
        ValueError: If `level` is not one of the four levels.

    Example:
        >>> parse_output("Sure: {'total': 3,}").value
        {'total': 3}
    """
    return read(text, level, complete=complete, wants_list=wants_list, fits=fits)


@checked
def repair_output(text: str, level: RepairLevel = "standard") -> str:
    r"""Return the JSON that `text` holds, or `text` unchanged if it cannot be read.

    Example:
        >>> repair_output("```json\n{a: 1}\n```")
        '{"a": 1}'
    """
    return read_output(text, level).text


@checked
def extract_code_fence(text: str, lang: str | None = None) -> str | None:
    r"""Return the contents of the first code fence. With `lang`, only fences with this tag count.

    Example:
        >>> extract_code_fence("Here:\n```json\n{}\n```", "json")
        '{}'
    """
    fences = [(fence[2].lower(), fence[3]) for fence in _FENCE.finditer(text)]
    return next((inside for tag, inside in fences if lang is None or tag == lang.lower()), None)


@checked
def extract_json_block(text: str) -> str | None:
    """Return the only JSON document in `text`, without repair; None if there is no document.

    Example:
        >>> extract_json_block("Sure: {'a': 1,} Anything else?")
        "{'a': 1,}"
    """
    try:
        document = document_in(text, NOTHING_KNOWN)
    except (Unreadable, RecursionError):
        return None
    return text[document.start : document.end]


@checked
def remove_trailing_commas(text: str) -> str:
    """Remove the commas before closing brackets. Commas inside strings stay.

    Example:
        >>> remove_trailing_commas('{"a": [1, 2,], "b": ",]",}')
        '{"a": [1, 2], "b": ",]"}'
    """
    return _STRING_OR_COMMA.sub(lambda match: match[0] if match[0] != "," else "", text)


@checked
def describe_format(given: FormatName | Format = "json", output: Any = None) -> str:
    """Return a text for a prompt that tells a model how to write its answer.

    Args:
        given: The value of the option `format`.
        output: The value of `output=`. If it has a JSON Schema, the text quotes this schema.

    Example:
        >>> print(describe_format("yaml", dict[str, int]))
        Write one YAML document and nothing else: no prose, no anchors, no tags.
        It must fit this JSON Schema:
        ```
        {"additionalProperties": {"type": "integer"}, "type": "object"}
        ```
    """
    known = format_named(given)
    plain = "Write JSON and nothing else: no prose, no code fence."
    lines = [plain if known is None else known.describe()]
    schema = None if output is None else build.build_validator(output).schema
    if schema is not None:
        lines += ["It must fit this JSON Schema:", fenced(json.dumps(schema))]
    return "\n".join(lines)


@checked
def wrap_error(error: Exception, value: Any = ABSENT) -> list[Issue]:
    """Turn an exception into issues. A pydantic or jsonschema validation error may give several.

    Pass the validated `value`: without it, paths of a pydantic error may contain tags of unions.

    Example:
        >>> format_issues(wrap_error(ValueError("the total is too low")))
        '1. (whole value): the total is too low'
    """
    return issues.wrap_error(error, value)


@checked
def build_validator(output: Any, *, strict: bool = False, check_formats: bool = False) -> Validator:
    """Make a validator from a type, a JSON Schema, a function, or another validator.

    - pydantic validates a type. `strict` refuses a value that needs a conversion, such as `"30"`
      for an `int`. A conversion that would only guess is always refused: `true` for a number, and a
      number or a text of digits for a date or a time (pydantic reads `"20250702"` as seconds). The
      type's own validators may run several times for one value.
    - A union may have a type that you accept as second best, such as `Person | Name`. The value
      becomes the type that fits it best. For a union, type checkers infer `Any` as the result of a
      call, so annotate the variable that gets the result.
    - A `dict` is a JSON Schema. Validation by a schema neither converts values nor fetches other
      documents. With `check_formats`, a `format` such as `date` or `email` is checked.
    - Any other callable judges the value: see `FunctionValidator`. To run a function on a typed
      value, pass `Annotated[Type, AfterValidator(function)]`. If no other call can help, the
      function puts `hopeless: True` into the dict or the issue that it returns, or raises an
      exception whose attribute `hopeless` is True. The failure is then `permanent`.

    Raises:
        TypeError: If `output` is of another kind, or pydantic cannot validate the type.
        ValueError: If the JSON Schema is invalid, or refers to another document.

    Example:
        >>> build_validator(dict[str, int]).check({"age": "30"}).repairs[0]["detail"]
        '/age: "30" (str) → 30 (int)'
    """
    return build.build_validator(output, strict=strict, check_formats=check_formats)
