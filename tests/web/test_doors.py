"""Hostile bodies at each door of the page: nobody else waits, and each refusal names its limit."""

import asyncio
import base64
import json
import re
import time

import httpx
import pytest

from graph_retry.desk.web import Access, create_app
from graph_retry.desk.web.posted import (
    ARRIVING,
    BODY,
    DEPTH,
    FIELDS,
    VALUES,
    NotAllowedError,
    check_json,
)
from graph_retry.threads import list_reviews
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form, fields
from tests.web.test_answers import opened, sent

MOST = BODY.most
HELD = 20
"""How much longer one callback may hold the loop than the longest one of ordinary pages."""


def part(name, text):
    """Write a field of a form."""
    return f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'.encode()


def shapes(key):
    """Return eleven hostile bodies of the largest allowed size, each as its type and its bytes."""
    form = "multipart/form-data; boundary=x"
    start = part("review", key) + part("answer", "a") + part(f"{key}.way", "respond")
    field = f"{key}.output.json:"

    def filled(name, unit, before="", after=""):
        room = MOST - len(start) - len(part(name, before + after)) - len(b"--x--\r\n")
        text = before + unit * (room // len(unit.encode())) + after
        return form, start + part(name, text) + b"--x--\r\n"

    return {
        "ampersands": ("application/x-www-form-urlencoded", b"&" * MOST),
        "a wide list": filled(field, "1,", "[", "1]"),
        "as wide as allowed": filled(field, " ", "[" + "1," * 49_900, "1]"),
        "a deep list": filled(field, "["),
        "strings": filled(field, '"\\\\",', "[", "1]"),
        "digits": filled(f"{key}.output.number:/count", "9"),
        "many fields": (
            form,
            start + part("a", "") * (MOST // len(part("a", "")) - 5) + b"--x--\r\n",
        ),
        "almost ends": filled(f"{key}.words.reject", "\r\n--"),
        "a long name": (form, start + part("a" * (MOST - 500), "") + b"--x--\r\n"),
        "turned text": filled(f"{key}.words.respond", "\u202e"),
        "a slow charset": (f"{form}; charset=punycode", b"-" * MOST),
    }


class Beats:
    """Measures how much work the event loop does between two turns of a task."""

    def __init__(self):
        self.longest = 0.0
        self._task = None

    async def _beat(self):
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - before)

    async def __aenter__(self):
        self._task = asyncio.create_task(self._beat())
        return self

    async def __aexit__(self, *raised):
        self._task.cancel()


async def attacked(app, address, kind, body):
    """Post a body while another user reads; return its answer, and how often that user read."""
    transport = httpx.ASGITransport(app)
    async with (
        httpx.AsyncClient(transport=transport, base_url="http://page", headers=SAME_SITE) as mine,
        httpx.AsyncClient(transport=transport, base_url="http://page") as other,
    ):
        for _ in range(3):
            await other.get("/")
        async with Beats() as ordinary:
            for _ in range(3):
                assert (await other.get("/")).status_code == 200
        async with Beats() as hostile:
            headers = {"content-type": kind}
            posting = asyncio.create_task(mine.post(address, content=body, headers=headers))
            statuses = [(await other.get("/")).status_code for _ in range(3)]
            done = await posting
    return done, statuses, hostile.longest / ordinary.longest


@pytest.mark.parametrize("shape", shapes("k"))
def test_a_hostile_body_holds_nobody_up(desk, shape):
    """At each door, a second user is answered, and no callback of the loop is longer than usual."""
    desk.wait()
    key = list_reviews(desk.graph)[0].key
    kind, body = shapes(key)[shape]
    assert MOST - 600 <= len(body) <= MOST
    app = create_app(desk.graph, authorize=lambda _: "ada")

    async def at_each_door():
        for door in (f"/r/{key}", f"/r/{key}/alike", "/t", "/history"):
            done, statuses, ratio = await attacked(app, door, kind, body)
            assert done.status_code in {303, 400, 413, 415, 422}, (door, done.status_code)
            assert statuses == [200] * 3
            assert ratio < HELD, (door, ratio)

    asyncio.run(at_each_door())


def test_who_may_not_answer_sends_nothing(desk):
    """The rights, the origin and the type of a body are checked before its first byte is read."""
    desk.wait()
    key = list_reviews(desk.graph)[0].key
    read = []

    def body():
        read.append(1)
        yield b"--x--\r\n"

    form = {"content-type": "multipart/form-data; boundary=x"}
    reader = {"authorize": lambda _: Access("bob", may_decide=False)}
    for options, headers, status in (
        (reader, form, 403),
        ({"authorize": lambda _: None}, form, 403),
        ({}, {**form, "sec-fetch-site": "cross-site"}, 403),
        ({}, {"content-type": "application/x-www-form-urlencoded"}, 415),
        ({}, {"content-type": "application/json"}, 415),
        ({}, {**form, "content-length": str(MOST + 1)}, 413),
    ):
        scope = asked(f"/r/{key}", {**SAME_SITE, **headers})
        got = []

        async def receive():
            read.append(1)
            return {"type": "http.request", "body": b"--x--\r\n", "more_body": False}

        async def send(message, got=got):
            got.append(message.get("status"))

        app = create_app(desk.graph, **{"authorize": lambda _: "ada", **options})
        asyncio.run(app(scope, receive, send))
        assert (got[0], read) == (status, [])


def test_the_forms_of_one_user_are_bounded_while_they_arrive(desk):
    """Many slow forms fill no memory: one more is refused, others may send, all are forgotten."""
    desk.wait()
    address = f"/r/{list_reviews(desk.graph)[0].key}"
    app = create_app(desk.graph, authorize=lambda request: request.headers["x-user"])

    async def statuses():
        go, arrived = asyncio.Event(), asyncio.Semaphore(0)

        async def slow():
            yield b" " * MOST
            arrived.release()
            await go.wait()

        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as client:

            async def post(user, body):
                kind = {"content-type": "multipart/form-data; boundary=x"}
                headers = {**SAME_SITE, **kind, "x-user": user}
                return (await client.post(address, content=body, headers=headers)).status_code

            many = [asyncio.create_task(post("ada", slow())) for _ in range(ARRIVING.most // MOST)]
            for _ in many:
                await arrived.acquire()
            now = [await post("ada", slow()), await post("bob", b"--x--\r\n")]
            go.set()
            return *now, {*await asyncio.gather(*many)}, await post("ada", b"--x--\r\n")

    refused, other, later, after = asyncio.run(statuses())
    assert (refused, later) == (413, {400})
    assert other == after != 413


def asked(path, headers):
    """Make the scope of a posted form."""
    raw = [(name.encode(), text.encode()) for name, text in {"host": "page", **headers}.items()]
    return {
        "type": "http",
        "method": "POST",
        "path": path,
        "query_string": b"",
        "headers": raw,
        "scheme": "http",
        "server": ("page", 80),
        "root_path": "",
    }


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("[" * 101, DEPTH),
        ('{"a":' * 101, DEPTH),
        ("[" + "1," * 50_000 + "1]", VALUES),
        ('"a",' * 150_000, VALUES),
    ],
)
def test_json_is_measured_before_it_is_parsed(text, bound):
    """A refusal names the limit; as many, or as deep, as the limit allows is taken."""
    with pytest.raises(NotAllowedError, match=f"{bound.most:,}"):
        check_json(text)
    assert check_json("[" * DEPTH.most + "]" * DEPTH.most)
    assert check_json(json.dumps(["[[{,"] * 40_000)) < VALUES.most


def test_a_refusal_names_its_limit(desk):
    """Too many fields, a name that is too long or too deep, too many values over several fields."""
    desk.wait()
    with desk.client() as client:
        form = Form(opened(client)[1])
        form.choose("respond")
        wide = json.dumps([0] * 30_000)
        for added, told in (
            ([("a", "")] * FIELDS.most, "at most 5,000 fields"),
            ([("a" * 5_000, "")], "at most 4,000 bytes"),
            ([("x.json:" + "/a" * 101, "1")], "at most 100 levels"),
            ([("x.do", "remove:" + "/a" * 101)], "at most 100 levels"),
            ([("x.json:/a", wide), ("x.json:/b", wide)], "at most 50,000 JSON values"),
        ):
            posted = [*form.posted(), *((name, (None, text)) for name, text in added)]
            page = client.post(form.action, files=posted)
            assert (page.status_code, told in page.text) == (413, True), told


@pytest.mark.parametrize("depth", [90, 500, 5_000])
def test_a_deep_answer_of_a_model_has_a_page(desk, depth):
    """What a model nests deeply is shown, and can be answered."""
    nested = {}
    for _ in range(90):
        nested = {"a": nested}
    desk.wait("deep params", {"extra": nested})
    desk.says = lambda _: '{"name": "Ada", "count": ' + "[" * depth + "]" * depth + "}"
    desk.wait()
    with desk.client() as client:
        while list_reviews(desk.graph):
            form = Form(opened(client)[1])
            form.choose("reject")
            assert "The call is stopped." in sent(client, form).text


@pytest.mark.parametrize("text", ["[" * 1_900, "[" * 100_000, '{"text":' * 500])
def test_a_deep_cookie_shows_the_list(desk, text):
    """A cookie that somebody changed is no filter, or is refused by its limit."""
    desk.wait()
    with desk.client() as client:
        client.cookies.set("graph-retry-view", text.encode().hex())
        assert client.get("/").status_code in (200, 413)


def test_no_page_shows_another_tenants_calls_of_the_same_thread(desk):
    """After a refused answer, too: the list, the review, history, the ledger, all say nothing."""
    desk.options["labels"] = {"tenant": "acme"}
    desk.wait("shared", {"prompt": "the canary of acme"})
    desk.options["labels"] = {"tenant": "umbrella"}
    desk.wait("shared", {"prompt": "mine"}, {"prompt": "mine as well"})
    with desk.client(authorize=lambda _: Access("bob", labels={"tenant": "umbrella"})) as client:
        address, page = opened(client)
        form = Form(page)
        form.choose("respond")
        form.fill("output.number:/count", "1.5")
        pages = [page, client.get("/").text, sent(client, form).text]
        pages += [client.get("/history").text]
        pages += [client.post("/t", files=fields(thread="shared")).text]
        assert all(re.search("umbrella|bob", text) for text in pages)
        assert not [text for text in pages if "acme" in text]
        assert address


@pytest.mark.parametrize(
    ("name", "text", "status"),
    [
        ("params.do", "remove:/extra/z/" + "9" * 5_000, 413),
        ("params.text:", "the params are a text", 422),
        ("params.list:", "", 422),
        ("params.do", "remove:/%FF", 400),
        ("params.do", "old:/%FF", 400),
        ("params.text:/%FF", "a", 400),
        ("params.number:/temperature", "1e-99999999999999999999999", 422),
        ("params.json:/extra", '{"a": -0.0e-99999999999999999999999}', 422),
        ("params.json:/extra", '{"\\ud800": "\\udfff"}', 422),
    ],
)
def test_a_forged_field_is_no_error_of_the_server(desk, name, text, status):
    """Places that no page writes, and numbers that no float holds, are refused."""
    desk.wait("t1", {"extra": {"z": [1, 2]}})
    key = list_reviews(desk.graph)[0].key
    given = [
        ("review", key),
        ("answer", "n"),
        (f"{key}.way", "edit"),
        (f"{key}.params.object:", ""),
    ]
    posted = [(part, (None, value)) for part, value in [*given, (f"{key}.{name}", text)]]
    with desk.client() as client:
        assert client.post(f"/r/{key}", files=posted, follow_redirects=False).status_code == status
        asked = base64.b64encode(json.dumps([[a, b[1]] for a, b in posted]).encode()).decode()
        alike = client.post(f"/r/{key}/alike", files=fields(answer="m", asked=asked))
        assert alike.status_code < 500


def test_many_ticks_read_no_more_reviews_than_one_page_shows(desk):
    """The same tick counts once, and a form with more is refused before a thread is read."""
    desk.wait()
    key = list_reviews(desk.graph)[0].key
    asked = base64.b64encode(json.dumps([["review", key], [f"{key}.way", "reject"]]).encode())
    with desk.client() as client:
        for ticks, status in (([f"{key}:x"] * 3_000, 303), (map(str, range(101)), 413)):
            posted = [("answer", (None, f"n{status}")), ("asked", (None, asked.decode()))]
            posted += [("tick", (None, tick)) for tick in ticks]
            done = client.post(f"/r/{key}/alike", files=posted, follow_redirects=False)
            assert done.status_code == status


def test_a_long_answer_is_previewed_on_fewer_reviews(desk):
    """What one page compares is bounded, however long the answer is."""
    for number in range(4):
        desk.wait(f"t{number}")
    with desk.client() as client:
        shown = []
        for text in ("short", "a b " * 150_000):
            form = Form(opened(client)[1])
            form.choose("edit")
            form.fill("text:/prompt", text)
            page = client.post(form.action, files=[*form.posted(), ("alike", (None, "1"))]).text
            shown.append(page.count('name="tick"'))
    assert shown == [4, 3]
