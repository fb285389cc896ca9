"""A user of one tenant at every door of the page: nothing of another tenant is told or changed.

The doors are the routes of the app itself, so that a new one is tried without a change here.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Send
from starlette.routing import Route
from starlette.testclient import TestClient

from graph_retry import retry_llm_call
from graph_retry.desk.web import Access, applying, create_app
from graph_retry.desk.web.rows import thread_key
from graph_retry.observers import Links
from graph_retry.threads import every_ledger, list_reviews
from tests.web.conftest import SAME_SITE, Answer
from tests.web.forms import Form, fields

pytestmark = pytest.mark.slow

SECRET = "7f3q"
"""What each text of the other tenant ends with."""
OTHERS = f"probe-{SECRET}"
LINK_SECRET = "a text that nobody else knows"
BOB = Access("bob", labels={"tenant": "umbrella"})
QUERIES = [
    *("", "since=0", "since=x-0", "together=1", "page=2", "from=here", "token=x"),
    *(f"tab={tab}" for tab in ("mine", "running", "later", "decided")),
    *("order=alike", "order=due", "text=probe", "call=probe", "label=tenant%3A+probe", "model=m"),
]


class Office:
    """A graph whose calls belong to two tenants, also in one thread, and its page."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        builder = StateGraph(dict)
        builder.add_node("ask", self._ask)
        builder.add_conditional_edges(START, lambda job: [Send("ask", one) for one in job["parts"]])
        self.graph = builder.compile(checkpointer=InMemorySaver())
        self.app = create_app(
            self.graph,
            authorize=lambda request: {"ada": "ada", "bob": BOB}.get(request.headers.get("x-user")),
            secret=LINK_SECRET,
        )

    def _ask(self, part: dict[str, Any]) -> None:
        text = part["text"]

        def call(params: dict[str, Any]) -> str:
            self.calls.append(params["prompt"])
            return f'{{"name": "{text}", "count": "{text}"}}'

        retry_llm_call(
            call,
            {"prompt": text, "model": text},
            output=Answer,
            name=f"call_{text}",
            labels={"tenant": "umbrella" if text == "own" else text, "kind": text},
            subject=lambda params: f"about {params['prompt']}",
        )

    def wait(self, thread: str, *texts: str) -> None:
        """Start a thread with a call of each text."""
        parts = [{"text": text} for text in texts]
        self.graph.invoke({"parts": parts}, {"configurable": {"thread_id": thread}})

    @contextmanager
    def opened(self) -> Iterator["Office"]:
        """Serve the page in this process."""
        with TestClient(self.app, headers=SAME_SITE, follow_redirects=False) as self.client:
            yield self

    def browser(self, user: str) -> TestClient:
        """Return a fresh browser of a user."""
        self.client.cookies.clear()
        self.client.headers["x-user"] = user
        return self.client

    def others(self) -> dict[str, str]:
        """Return the open reviews of the other tenant, by key, and the thread of each."""
        found = list_reviews(self.graph)
        return {each.key: each.thread_id for each in found if SECRET in each.function_name}


def answered(client, key, name, **typed):
    """Answer a review as a browser does; `typed` are changes of the form."""
    form = Form(client.get(f"/r/{key}").text)
    form.fill("answer", name)
    form.choose("reject")
    for field, text in typed.items():
        form.controls.append([field, text])
    return client.post(form.action, files=form.posted())


def applied(client, address):
    """Return the page of an outcome as soon as it is known."""
    while 'http-equiv="refresh"' in (page := client.get(address).text):
        pass
    return page


@pytest.fixture(scope="module")
def office():
    """Let both tenants have open, decided and missed reviews, and outcomes that the page keeps."""
    with pytest.MonkeyPatch.context() as patched, Office().opened() as made:
        patched.setattr(applying, "HELD_S", 0.0)
        made.wait("mine", "own")
        made.wait("shared", "own", OTHERS)
        for number in range(5):
            made.wait(f"thread-{number}-{OTHERS}", OTHERS)
        ada = made.browser("ada")
        decided, late, *alike = made.others()
        answered(ada, decided, "ada-decided")
        applied(ada, f"/r/{decided}/a/ada-decided")
        stale = Form(ada.get(f"/r/{late}").text)
        answered(ada, late, "ada-first")
        applied(ada, f"/r/{late}/a/ada-first")
        stale.choose("reject")
        stale.fill("words.reject", OTHERS)
        ada.post(stale.action, files=stale.posted())
        ticks = Form(answered(ada, alike[0], "ada-preview", alike="1").text, "answer")
        ticks.fill("answer", "ada-alike")
        ada.post(ticks.action, files=ticks.posted())
        assert OTHERS in applied(ada, f"{ticks.action}/ada-alike")
        made.wait(f"thread-again-{OTHERS}", OTHERS)
        for page in ("/", "/history"):
            while OTHERS not in ada.get(page).text:
                pass
        made.closed = [decided, late]
        yield made


def doors(app, keys, names):
    """Yield each method and address of the app, with each key and name in it."""
    for route in app.routes:
        if isinstance(route, Route):
            for method in sorted(route.methods - {"HEAD"}):
                for key in keys if "{key}" in route.path else [""]:
                    for name in names if "{name}" in route.path else [""]:
                        yield method, route.path.format(key=key, name=name, token="a.b")


def forms(own, others):
    """Return the forms that a user of one tenant could send, by hand, about the other's reviews."""
    return [
        fields(thread=f"thread-0-{OTHERS}"),
        fields(undo="1"),
        fields(stop="1"),
        fields(go_on="1"),
        {**fields(review=others, answer="b1"), f"{others}.way": (None, "reject")},
        {**fields(review=own, answer="b2", tick=f"{others}:x"), f"{others}.way": (None, "reject")},
        [("review", (None, own)), ("review", (None, others)), ("answer", (None, "b3")),
         (f"{others}.way", (None, "reject")), (f"{others}.words.reject", (None, "no"))],
        {**fields(review=others, answer="b4", alike="1"), f"{others}.way": (None, "reject")},
        {**fields(tick=f"{others}:x", asked="W10=", answer="b5")},
        {**fields(review=others, answer="ada-decided"), f"{others}.way": (None, "reject")},
    ]  # fmt: skip


@pytest.mark.parametrize("who", ["bob", "link"])
def test_no_door_tells_of_another_tenant(office, who):
    """Every route, with every key, name and form: nothing is in the page, a header or a thread."""
    (own,) = [each for each in list_reviews(office.graph) if each.thread_id == "mine"]
    open_ones = office.others()
    keys = [own.key, *list(open_ones)[:2], *office.closed]
    keys += [thread_key(each) for each in ("shared", f"thread-0-{OTHERS}")]
    names = ["ada-decided", "ada-alike", "none"]
    before, calls, told = ledgers(office), list(office.calls), []
    client = office.browser(who)
    if who == "link":
        link = Links("http://testserver", secret=LINK_SECRET).url_for(own)
        assert client.get(link).headers["location"] == f"/r/{own.key}"
        assert client.get(f"/r/{own.key}").status_code == 200
    for method, address in doors(office.app, keys, names):
        if method == "GET":
            told += [client.get(f"{address}?{query}") for query in QUERIES]
            told.append(client.get(address, headers={"hx-request": "true"}))
        else:
            told += [
                client.post(address, files=form) for form in forms(own.key, next(iter(open_ones)))
            ]
    found = [
        f"{each.request.method} {each.request.url}: {each.status_code}"
        for each in told
        if SECRET in each.text + str(each.headers)
    ]
    assert (found, len(told) > 500) == ([], True)
    assert ledgers(office) == before
    assert office.calls == calls


def ledgers(office):
    """Return all that is saved of the other tenant's calls."""
    return [each.attempts for each in every_ledger(office.graph) if SECRET in each.name]


def test_pages_are_the_same_whatever_another_tenant_has():
    """Not even a number tells: each page is what it would be if the other tenant had nothing."""
    shown = []
    for others in ((), (OTHERS, OTHERS + "2", OTHERS + "3")):
        with Office().opened() as office:
            office.wait("mine", "own")
            for number, text in enumerate(others):
                office.wait(f"t{number}", text)
            ada = office.browser("ada")
            ada.get("/history")
            for key in office.others():
                answered(ada, key, f"ada-{key}")
                applied(ada, f"/r/{key}/a/ada-{key}")
            bob = office.browser("bob")
            key = next(iter(re.findall(r"/r/(\w{24})", bob.get("/").text)))
            pages = [f"/?tab={tab}" for tab in ("waiting", "mine", "running", "later", "decided")]
            pages += ["/history", "/team", f"/r/{key}", f"/t/{thread_key('mine')}"]
            shown.append([plain(bob.get(page)) for page in pages])
    assert shown[0] == shown[1]


def plain(page):
    """Return a page without its random names, its times and its version."""
    text = re.sub(r"[\w-]{16,}|since=[\w-]+", "…", page.text)
    return page.status_code, re.sub(
        r"[\d.]+ (s|seconds?|minutes?)\b( ago)?|\d{4}-\d\d-\S+", "…", text
    )
