"""What became of the calls: figures by call and day, what people changed, a thread's ledger."""

import re
from datetime import UTC, datetime, timedelta

from graph_retry import comment, edit, respond, resume
from graph_retry.desk.web import Access
from graph_retry.desk.web.pages import past_calls
from graph_retry.desk.web.pages.past_calls import figures_of, past_call
from graph_retry.threads import attempts_of
from tests.web.forms import Form, fields
from tests.web.test_answers import opened, sent


def at(thread):
    """Return the config of a thread."""
    return {"configurable": {"thread_id": thread}}


def ended(desk):
    """Let two calls end by an edit and by a person's output, and one wait."""
    for name in ("t1", "t2", "t3"):
        desk.wait(name)
    resume(desk.graph, at("t1"), edit(model="large", options={"top": 5, "tags": ["a"]}))
    resume(desk.graph, at("t2"), respond({"name": "Ada", "count": 7}))


def shown(client, path="/history"):
    """Return the page of the history once everything is read."""
    page = client.get(path).text
    while "Reading all threads" in page:
        page = client.get(path).text
    return page


def test_the_figures_of_all_threads_are_shown(desk):
    """Calls, attempts, the share with an output, and what people changed, of every thread."""
    ended(desk)
    with desk.client() as client:
        page = shown(client)
    assert ">3 calls</span></h1>" in page
    assert re.search(r"<dt>Attempts</dt><dd><b>4</b>", page)
    assert re.search(r"<dt>Calls with an output</dt><dd><b>100 %</b>", page)
    assert "<td>model</td><td>1</td>" in page
    assert "<td>options → top</td><td>1</td>" in page
    assert "<td>output → count</td><td>1</td>" in page
    assert page.count('<svg class="bars"') == 3  # nobody reports tokens
    assert "0 days ago: 4" in page


def test_figures_are_read_again_when_somebody_asks(desk):
    """A page shows what was read; one press reads anew."""
    desk.wait("t1")
    with desk.client() as client:
        assert ">1 call</span></h1>" in shown(client)
        desk.wait("t2")
        page = shown(client)
        assert ">1 call</span></h1>" in page
        client.post("/history", files=fields(again=""))
        assert ">2 calls</span></h1>" in shown(client)


def test_a_threads_ledger_is_found_by_its_id_and_from_its_review(desk):
    """Each attempt with what changed for it and who decided; its address tells nothing."""
    desk.wait("secret-thread")
    resume(desk.graph, at("secret-thread"), comment("Count the ships."))
    with desk.client() as client:
        shown(client)
        found = client.post("/t", files=fields(thread=" secret-thread "))
        assert "secret" not in str(found.url)
        assert "Attempt 2" in found.text
        assert "Then: commented" in found.text
        assert "waits for an answer" in found.text
        link = re.search(r'href="(/t/\w+)"', opened(client)[1])[1]
        assert client.get(link).text == found.text
        assert client.post("/t", files=fields(thread="no")).status_code == 404
        elsewhere = {"sec-fetch-site": "cross-site"}
        refused = client.post("/t", files=fields(thread="secret-thread"), headers=elsewhere)
        assert refused.status_code == 403


def test_a_tenant_sees_only_their_own_past(desk):
    """Figures, the last calls and ledgers are those of calls with one's own labels."""
    for number, tenant in enumerate(["acme", "umbrella"]):
        desk.options["labels"] = {"tenant": tenant}
        desk.wait(f"t{number}")
    with desk.client(authorize=lambda _: Access("ada", labels={"tenant": "acme"})) as client:
        page = shown(client)
        assert ">1 call</span></h1>" in page
        assert "umbrella" not in page
        assert client.post("/t", files=fields(thread="t0")).status_code == 200
        assert client.post("/t", files=fields(thread="t1")).status_code == 404


def test_a_storage_that_fails_is_told_on_the_page(desk, monkeypatch):
    """What could be read is shown, beside the reason why the rest is not."""

    async def fails(source, threads=None):
        raise OSError("the disk is gone")
        yield

    desk.wait()
    monkeypatch.setattr(past_calls, "aevery_ledger", fails)
    with desk.client() as client:
        assert "OSError: the disk is gone" in shown(client)


def test_figures_are_of_their_day(desk):
    """A call counts on the day it was started, one older than the plots in the totals alone."""
    ended(desk)
    calls = [
        past_call(ledger) for name in ("t1", "t2") for ledger in attempts_of(desk.graph, at(name))
    ]
    today = datetime.now(UTC).date()
    (one,) = figures_of(calls, today + timedelta(days=1))
    assert [day.attempts for day in one.days[-2:]] == [3, 0]
    (one,) = figures_of(calls, today + timedelta(days=past_calls.DAYS))
    assert (one.total.attempts, sum(day.attempts for day in one.days)) == (3, 0)
    assert all(call.waited[0] >= 0 for call in calls)


def test_a_team_sees_how_long_and_whether_it_is_asked_too_much(desk):
    """How many wait, by call, label and model, and the share of valid outputs left as they were."""
    desk.options |= {"review": "always", "labels": {"team": "red"}}
    for number in range(4):
        desk.wait(f"t{number}", {"model": "large"})
    desk.options["labels"] = {"team": "blue"}
    desk.wait("t4")
    with desk.client() as client:
        for decision in ("approve", "approve", "respond"):
            form = Form(opened(client, 1)[1])
            form.choose(decision)
            sent(client, form)
        page = client.get("/team").text
        told = {
            name: re.findall(r"</svg> (\d+)|<td[^>]*>([^<]*)</td>", row)
            for name, row in re.findall(
                r'<th scope="row" dir="auto">(.*?)</th>(.*?)</tr>', page, re.DOTALL
            )
        }
        figures = {name: (cells[0][0], cells[3][1], cells[4][1]) for name, cells in told.items()}
        assert figures == {
            "count": ("2", "3", "67 %"),
            "team: red": ("1", "3", "67 %"),
            "team: blue": ("1", "0", "–"),
            "large": ("1", "3", "67 %"),
            "small": ("1", "0", "–"),
        }
        seen = Access("bob", labels={"team": "blue"})
    with desk.client(authorize=lambda _: seen) as client:
        assert "team: red" not in client.get("/team").text
