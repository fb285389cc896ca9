"""Find suggestions that people always approve, and write a reviewer that approves them.

Nothing is applied automatically. A precedent shows its counts and the reviewer's code, so that a
person can read the code before using it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile
from operator import itemgetter
from typing import Annotated

from graph_retry.data._corrections.record import Correction
from graph_retry.plugins import Share, Within, checked
from graph_retry.reviews import SHOWN_ISSUES

_CODE = '''\
def {function}(review):
    """Approve what {by} suggests for this failure, as people did {this.in_a_row} times in a row."""
    issues = sorted({{(issue["path"], issue["code"]) for issue in review.issues}})
    like = (
        review.function_name == {this.call!r}
        and review.failure is not None
        and (review.failure["kind"], review.failure["type"]) == ({this.kind!r}, {this.type!r})
        and issues == {issues}
        and review.suggested_by == {this.suggested_by!r}
    )
    shown = int(review.review_id, 16) % 1000 < {share}  # a share that people still see
    return approve() if like and not shown else None
'''


_Like = tuple[str, str, str, str, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Precedent:
    """A suggestion that people approved unchanged many times in a row, after similar failures.

    Failures are similar if they have the same call name, kind and type, and the same issue codes at
    the same paths. Only the first 20 issues count, because a review shows no more.

    call: The name of the call.
    suggested_by: The author of the suggested params.
    kind: The failure kind.
    type: The class name of the error.
    issues: The issues, each as (path, code).
    in_a_row: The number of approvals since the last other decision.
    approved: The number of all approvals.
    decided: The number of all decisions.
    since: The time of the first of the `in_a_row` approvals (ISO 8601).
    """

    call: str
    suggested_by: str
    kind: str
    type: str
    issues: tuple[tuple[str, str], ...]
    in_a_row: int
    approved: int
    decided: int
    since: str | None

    @checked
    def code(self, share: Share = 0.05) -> str:
        """Return the Python code of a reviewer that approves suggestions like this one.

        Read the code before you pass its function as `reviewer=`. The code needs `from graph_retry
        import approve`. People still see a `share` of the reviews (0 to 1). The id of a review
        decides whether people see it.

        Raises:
            ValueError: If `share` is not from 0 to 1.
        """
        name = "".join(letter if letter.isalnum() else "_" for letter in f"{self.call}_{self.kind}")
        issues = [tuple(issue) for issue in self.issues]
        return _CODE.format(
            function=f"approve_{name}".lower() if name.isascii() else "approve_precedent",
            by=json.dumps(self.suggested_by),
            issues=issues,
            share=round(1000 * share),
            this=self,
        )

    def __str__(self) -> str:
        at = ", ".join(f"{path or 'the whole output'} ({code})" for path, code in self.issues)
        return (
            f"{self.call}: the params of {self.suggested_by} after {self.type}"
            f"{f' at {at}' if at else ''} were approved unchanged {self.in_a_row} times in a row "
            f"({self.approved} of {self.decided} in all)"
        )


@checked
def precedents(
    rows: Iterable[Correction], at_least: Annotated[int, Within(2)] = 20
) -> list[Precedent]:
    """Find suggestions that were approved unchanged at least `at_least` times in a row.

    The suggestion with the most approvals in a row comes first.

    Only decisions by people about suggested params count. An edit, a rejection or any other
    decision than an approval sets the number of approvals in a row to 0.

    Args:
        rows: Corrections, such as those of `corrections_of`: a row for each decision.
        at_least: The minimum number of approvals in a row.

    Raises:
        ValueError: If `at_least` is not a whole number of at least 2.

    Example:
        >>> row = {"call": "read", "role": "human", "suggested_by": "feedback", "how": "approved",
        ...        "failure": {"kind": "invalid_syntax", "type": "InvalidJSON", "message": "no"},
        ...        "issues": [], "at": "2030-01-01"}
        >>> (found,) = precedents([row, row, row], at_least=3)
        >>> print(found)
        read: the params of feedback after InvalidJSON were approved unchanged 3 times in a row \
(3 of 3 in all)
    """
    like_ones: dict[_Like, list[tuple[str, bool]]] = {}
    for row in rows:
        by, failure = row["suggested_by"], row["failure"]
        if by is not None and failure is not None and row["role"] == "human":
            shown = row["issues"][:SHOWN_ISSUES]  # A review shows no more to the reviewer.
            issues = sorted({(issue["path"], issue["code"]) for issue in shown})
            like = (row["call"], by, failure["kind"], failure["type"], tuple(issues))
            decided = (row["at"] or "", row["how"] == "approved")
            like_ones.setdefault(like, []).append(decided)
    found = [
        _precedent(like, sorted(decided, key=itemgetter(0))) for like, decided in like_ones.items()
    ]
    long = [each for each in found if each.in_a_row >= at_least]
    return sorted(long, key=lambda each: -each.in_a_row)


def _precedent(like: _Like, decided: list[tuple[str, bool]]) -> Precedent:
    """Count the decisions about similar failures, listed by time as (time, is approval)."""
    row = list(takewhile(lambda one: one[1], reversed(decided)))
    approved = sum(is_approved for _, is_approved in decided)
    since = row[-1][0] if row else None
    return Precedent(*like, len(row), approved, len(decided), since)
