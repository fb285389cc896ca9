"""The page of a team: how many reviews wait, how long, and whether people are asked too often."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from starlette.requests import Request
from starlette.responses import Response

from graph_retry.desk.web.page import Site
from graph_retry.desk.web.pages.past_calls import PastCall
from graph_retry.desk.web.rows import Row, texts_of
from graph_retry.desk.web.safety import Access
from graph_retry.plugins import since

MOST = 12
"""Maximum number of groups of each kind on the page."""


@dataclass(frozen=True)
class Share:
    """A group's waiting reviews, and the decisions about the group's earlier reviews.

    `median` and `oldest` are waiting times in seconds. `valid` counts the valid outputs that a
    person reviewed, and `unchanged` those that the person approved.
    """

    name: str
    waiting: int
    median: float
    oldest: float
    decided: int
    valid: int
    unchanged: int

    @property
    def percent(self) -> float | None:
        """The percentage of valid outputs that were approved unchanged; None if there are none."""
        return 100 * self.unchanged / self.valid if self.valid else None


def share_of(name: str, rows: Sequence[Row], calls: Iterable[PastCall]) -> Share:
    """Sum up the waiting reviews and the past calls of a group."""
    ages = [since(row.review.asked_at) for row in rows if row.review.asked_at]
    people = [one for call in calls for one in call.decided if one.who]
    valid = [one for one in people if one.was_valid]
    return Share(
        name,
        len(rows),
        median(ages) if ages else 0.0,
        max(ages, default=0.0),
        len(people),
        len(valid),
        sum(one.word == "approve" for one in valid),
    )


def shares(
    rows: Sequence[Row],
    calls: Sequence[PastCall],
    of_row: Callable[[Row], Iterable[str]],
    of_call: Callable[[PastCall], Iterable[str]],
) -> list[Share]:
    """Sum up the reviews by group (`of_row`, `of_call`), the largest group first."""
    named: dict[str, tuple[list[Row], list[PastCall]]] = {}
    for row in rows:
        for name in of_row(row):
            named.setdefault(name, ([], []))[0].append(row)
    for call in calls:
        for name in of_call(call):
            named.setdefault(name, ([], []))[1].append(call)
    made = [share_of(name, *group) for name, group in named.items() if name]
    return sorted(made, key=lambda each: (-each.waiting, -each.decided))[:MOST]


async def team(site: Site, request: Request, access: Access) -> Response:
    """Show how many reviews wait, how long, and how often valid outputs were approved unchanged."""
    await site.waiting.refresh()
    await site.past.started()
    rows, calls = access.seen(site.waiting.rows.values()), site.past.calls(access)
    groups = {
        "Calls": shares(rows, calls, lambda row: [row.review.function_name], lambda c: [c.call]),
        "Labels": shares(rows, calls, lambda row: row.labels, lambda c: texts_of(c.labels)),
        "Models": shares(rows, calls, lambda row: [row.model], lambda call: [call.model]),
    }
    return await site.page(
        request, access, "team.html",
        groups=groups, all=share_of("All", rows, calls), past=site.past,
        is_whole=site.waiting.is_whole,
    )  # fmt: skip
