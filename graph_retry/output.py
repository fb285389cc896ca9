"""Read and validate outputs without a call.

`parse_output` reads a model's text, losslessly or not at all. `build_validator` makes the validator
of an `output=`. `SchemaOfParams` and `heuristic` are values for `output=`, and `Format` is one for
`format=`. `describe_format` tells a model in a prompt how to answer.
"""

from graph_retry._issues import format_issues
from graph_retry._output.build import SchemaOfParams, build_validator, heuristic
from graph_retry._output.formats.format import Format, describe_format
from graph_retry._output.reading import ParsedOutput, Refusal
from graph_retry._output.reading.parse import (
    extract_code_fence,
    extract_json_block,
    parse_output,
    remove_trailing_commas,
    repair_output,
)
from graph_retry._output.validator import Checked, Validator

__all__ = [
    "Checked",
    "Format",
    "ParsedOutput",
    "Refusal",
    "SchemaOfParams",
    "Validator",
    "build_validator",
    "describe_format",
    "extract_code_fence",
    "extract_json_block",
    "format_issues",
    "heuristic",
    "parse_output",
    "remove_trailing_commas",
    "repair_output",
]
