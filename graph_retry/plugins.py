"""Tools for writing a plug-in: your own hook, budget, observer, messenger, page or data set.

`graph_retry.hooks`, `observers`, `data` and `desk` use these tools themselves. So your plug-in
refuses wrong arguments, and shortens and quotes texts, in the same way as the library. You write
your code once, for sync and async use.

Example:
    A messenger that refuses a negative number of seconds, and never posts more than one line:

    >>> @checked
    ... class Pager:
    ...     def __init__(self, number: Name, wait: Seconds = 5.0) -> None:
    ...         self.number, self.wait = number, wait
    ...     def __call__(self, review) -> str:
    ...         return one_line(f"{self.number}: {review.error}", 80)
    >>> Pager("112", wait=-1)
    Traceback (most recent call last):
    ...
    graph_retry._core.ground.functions.arguments.WrongArgumentError: `wait`: give a number ...
"""

from graph_retry._core.ground.functions.arguments import (
    Amount,
    Count,
    Moment,
    Name,
    Seconds,
    Secret,
    Share,
    Size,
    WrongArgumentError,
    async_twin,
    check_argument,
    checked,
    in_sync,
)
from graph_retry._core.ground.functions.awaiting import (
    arun_steps,
    as_run,
    is_sync,
    run_async,
    run_steps,
    run_sync,
    sync_or_async,
)
from graph_retry._core.ground.functions.calling import call
from graph_retry._core.ground.functions.kinds import Within
from graph_retry._core.ground.issues import cut, excerpt, literal
from graph_retry._core.ground.json import (
    ABSENT,
    NotJsonError,
    as_text,
    digest,
    drawn,
    is_array,
    is_number,
    is_object,
    json_lines,
    known_sum,
    pointer,
    pointer_parts,
    read_json,
    replacing,
)
from graph_retry._core.ground.quoting import one_line
from graph_retry._core.ground.redact import Redact, redacted, redacted_fields
from graph_retry._core.ground.schemas import kind_of
from graph_retry._core.ground.wording import (
    closest,
    counted,
    did_you_mean,
    in_words,
    passed_as,
    since,
)
from graph_retry._core.params.patch import apply_patch, changes
from graph_retry._core.review.deadline import utc
from graph_retry.lossless._ground import as_repr, error_text, escaped, identical

__all__ = [
    "ABSENT",
    "Amount",
    "Count",
    "Moment",
    "Name",
    "NotJsonError",
    "Redact",
    "Seconds",
    "Secret",
    "Share",
    "Size",
    "Within",
    "WrongArgumentError",
    "apply_patch",
    "arun_steps",
    "as_repr",
    "as_run",
    "as_text",
    "async_twin",
    "call",
    "changes",
    "check_argument",
    "checked",
    "closest",
    "counted",
    "cut",
    "did_you_mean",
    "digest",
    "drawn",
    "error_text",
    "escaped",
    "excerpt",
    "identical",
    "in_sync",
    "in_words",
    "is_array",
    "is_number",
    "is_object",
    "is_sync",
    "json_lines",
    "kind_of",
    "known_sum",
    "literal",
    "one_line",
    "passed_as",
    "pointer",
    "pointer_parts",
    "read_json",
    "redacted",
    "redacted_fields",
    "replacing",
    "run_async",
    "run_steps",
    "run_sync",
    "since",
    "sync_or_async",
    "utc",
]
