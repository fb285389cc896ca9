"""Reading and judging outputs on their own, without a call.

`parse_output` reads what a model wrote, losslessly or not at all; `build_validator` makes what
`output=` is made into; `SchemaOfParams` and `heuristic` are values for `output=`.
"""

from graph_retry._output.build import build_validator, heuristic
from graph_retry._output.repair.parse import (
    extract_code_fence,
    extract_json_block,
    parse_output,
    remove_trailing_commas,
    repair_output,
)
from graph_retry._output.repair.report import ParsedOutput, Refusal
from graph_retry._output.schema_of_params import SchemaOfParams
from graph_retry._output.validator import Checked, Validator

__all__ = [
    "Checked",
    "ParsedOutput",
    "Refusal",
    "SchemaOfParams",
    "Validator",
    "build_validator",
    "extract_code_fence",
    "extract_json_block",
    "heuristic",
    "parse_output",
    "remove_trailing_commas",
    "repair_output",
]
