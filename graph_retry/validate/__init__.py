"""Judge a value against what the caller asked for, and say exactly what is wrong with it."""

from graph_retry.validate.build import build_validator, heuristic
from graph_retry.validate.caught import wrap_error
from graph_retry.validate.issues import format_issues
from graph_retry.validate.validator import Checked, Validator

__all__ = ["Checked", "Validator", "build_validator", "format_issues", "heuristic", "wrap_error"]
