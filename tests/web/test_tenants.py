"""Users with limited rights: nothing of a page, a text or a version tells about other calls."""

import asyncio
import re

import pytest

from graph_retry.desk.web import Access
from graph_retry.desk.web.pages.listing import Listings
from graph_retry.desk.web.runs import Run, Runs
from graph_retry.desk.web.waiting import Waiting
from graph_retry.errors import AnswerRefused, StaleDecision
from graph_retry.threads import list_reviews
from tests.web.forms import Form
from tests.web.test_answers import opened

BOB = Access("bob", labels={"tenant": "umbrella"})
CANARY = "the canary of acme"


def version_in(page):
    """Return the version that a page asks with."""
    return re.search(r"since=([^\"&]+)", page)[1]


def test_the_version_of_a_list_counts_no_other_calls(desk):
    """Reviews of others come and go without a change; one of the user's own changes it."""
    desk.options["labels"] = {"tenant": "umbrella"}
    desk.wait("mine")

    async def versions():
        waiting = Waiting(desk.graph)
        listings, seen = Listings(waiting), []
        for thread, tenant in (("a", "acme"), ("b", "acme"), ("c", "umbrella")):
            await waiting.refresh()
            seen.append(listings.version(BOB))
            desk.options["labels"] = {"tenant": tenant}
            await asyncio.to_thread(desk.wait, thread)
            waiting = listings._waiting = Waiting(desk.graph)
        await waiting.refresh()
        return [*seen, listings.version(BOB)]

    first, *others, last = asyncio.run(versions())
    assert others == [first, first]
    assert last != first


@pytest.mark.parametrize(
    "error",
    [AnswerRefused(CANARY, reasons={"r": CANARY}), StaleDecision(CANARY), ValueError(CANARY)],
    ids=lambda error: type(error).__name__,
)
def test_the_outcome_tells_a_limited_user_of_no_other_call(desk, monkeypatch, error):
    """The graph's errors may name any call of the thread; who sees all of them reads the text."""
    desk.wait()
    (review,) = list_reviews(desk.graph)

    async def fails(*_):
        raise error

    async def told():
        waiting = Waiting(desk.graph)
        monkeypatch.setattr(waiting, "answer", fails)
        run = Run([review], {review.review_id: {"type": "approve"}})
        outcome = await Runs(waiting)._apply(run)
        return [
            f"{each.title} {each.text} {each.problem}"
            for each in (outcome.seen_by(Access("ada")), outcome.seen_by(BOB))
        ]

    whole, limited = asyncio.run(told())
    assert CANARY in whole
    assert "canary" not in limited


def test_a_form_takes_no_name_of_another_users_form(desk):
    """A form without a name, or with a name in use, is refused: its answer is never dropped."""
    desk.wait()
    users = {"authorize": lambda request: request.headers["x-user"]}
    with desk.client(**users) as client:
        client.headers["x-user"] = "ada"
        statuses, form = list[int](), Form(opened(client)[1])
        form.choose("reject")
        for user, name in (("ada", ""), ("ada", "n"), ("ada", "n"), ("bob", "n")):
            client.headers["x-user"] = user
            form.fill("answer", name)
            done = client.post(form.action, files=form.posted(), follow_redirects=False)
            statuses.append(done.status_code)
    assert statuses == [400, 303, 303, 400]
