"""Who may see and decide, what a page lets a browser do, and what stays out of sight."""

import logging
import re

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Mount
from starlette.testclient import TestClient

from graph_retry.desk.web import Access, create_app
from graph_retry.desk.web.pages.arranged import View, view_of
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form, fields
from tests.web.test_answers import opened, sent


def test_nobody_sees_anything_before_it_is_said_who_may(desk):
    """An app that was mounted without a word about access shows nothing, and says what to pass."""
    desk.wait()
    with TestClient(create_app(desk.graph)) as client:
        page = client.get("/")
    assert page.status_code == 403
    assert "authorize=" in page.text
    assert "count" not in page.text.partition("<main")[2]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"token": ""}, "`token`: give a random text of 22 characters .* not a text of 0 char"),
        ({"user": ""}, "`user`: give a text that is not empty or None; not ''"),
        (
            {"secret": ""},
            "`secret`: give a random text of 22 characters or more, .* or None; not a text of 0",
        ),
        ({"secret": "sesame"}, "`secret`: give .*; not a text of 6 characters"),
        ({"token": "sesame"}, "`token`: give .*; not a text of 6 characters"),
        ({"token": "x" * 30}, "`token`: give .*; not a text of 30 .* if its characters repeat"),
        ({"secret": b"a long random text of your own"}, "`secret`: give .*; not a `bytes`"),
    ],
)
def test_a_key_that_anybody_could_guess_is_refused_at_once(desk, options, told):
    """An empty token would open the app to everybody; the error does not show a secret."""
    with pytest.raises(ValueError, match=told) as refused:
        create_app(desk.graph, **options)
    assert "sesame" not in str(refused.value)


@pytest.mark.parametrize("name", ["", None])
def test_an_empty_name_is_nobody(desk, name):
    """A proxy may pass on an empty header for people who have not logged in."""
    desk.wait()
    with desk.client(authorize=lambda _: name) as client:
        assert client.get("/").status_code == 403


def test_an_answer_that_names_nobody_is_refused(desk):
    """Whoever returns True would otherwise read of an attribute that it lacks."""
    with (
        desk.client(authorize=lambda _: True) as client,
        pytest.raises(TypeError, match="`authorize` returned True: return the user's name, an"),
    ):
        client.get("/")


def test_the_printed_token_lets_in(desk):
    """The token becomes a cookie that no script reads, and leaves the address at once."""
    desk.wait()
    with desk.client(authorize=None, token="Qd7-vK2m_Zt9LxW4bN8sRc", user="ada") as client:
        assert client.get("/").status_code == 401
        assert client.get("/?token=simsala").status_code == 401
        opening = client.get("/?token=Qd7-vK2m_Zt9LxW4bN8sRc", follow_redirects=False)
        assert (opening.status_code, opening.headers["location"]) == (303, "/")
        cookie = opening.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "Qd7-vK2m_Zt9LxW4bN8sRc" not in cookie
        assert "waits for an answer" in client.get("/").text
        away = client.get("//evil.example/?token=Qd7-vK2m_Zt9LxW4bN8sRc", follow_redirects=False)
        assert not away.headers.get("location", "").startswith("//")


def test_the_mounting_apps_login_counts(desk):
    """Under Starlette's own authentication the user of the app is the one who answers."""

    class Known(AuthenticationBackend):
        async def authenticate(self, conn):
            name = conn.headers.get("x-user")
            return (AuthCredentials(), SimpleUser(name)) if name else None

    desk.wait()
    app = Starlette(
        routes=[Mount("/reviews", create_app(desk.graph))],
        middleware=[Middleware(AuthenticationMiddleware, backend=Known())],
    )
    with TestClient(app, headers=SAME_SITE) as client:
        assert client.get("/reviews/").status_code == 401
        client.headers["x-user"] = "grace"
        page = client.get("/reviews/").text
        (address,) = re.findall(r'href="(/reviews/r/\w+)"', page)
        form = Form(client.get(address).text)
        form.choose("reject")
        assert "The call is stopped." in sent(client, form).text
    state = desk.graph.get_state({"configurable": {"thread_id": "t1"}})
    assert "grace" in str(state.tasks or state.values) or len(desk.calls) == 1


@pytest.mark.parametrize("how", ["read_only", "access"])
def test_who_may_only_look_cannot_answer(desk, how):
    """No button is shown, and a form that is sent nevertheless is refused."""
    desk.wait()
    looks = {"read_only": True} if how == "read_only" else {}
    looks |= {"authorize": lambda _: Access("bob", may_decide=how == "read_only")}
    with desk.client(**looks) as client, desk.client() as other:
        page = opened(client)[1]
        assert "What should happen?" not in page
        form = Form(opened(other)[1])
        form.choose("approve")
        assert sent(client, form).status_code == 403
    assert len(desk.calls) == 1


def test_a_tenant_sees_only_their_own(desk):
    """A review without the labels of whoever asks is in no list, and at no address."""
    desk.options["labels"] = {"tenant": "acme"}
    desk.wait()
    with desk.client(authorize=lambda _: Access("bob", labels={"tenant": "umbrella"})) as client:
        assert "No review waits" in client.get("/").text
        with desk.client(authorize=lambda _: Access("eve", labels={"tenant": "acme"})) as other:
            address, _ = opened(other)
        assert client.get(address).status_code == 410


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"sec-fetch-site": "same-origin", "origin": "http://testserver"}, 303),
        ({"sec-fetch-site": "none"}, 303),  # a form that is loaded again
        ({"origin": "http://testserver"}, 303),  # without HTTPS
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "same-site", "origin": "http://testserver"}, 403),
        ({"origin": "http://other.example"}, 403),
        ({"origin": "http://testserver.other.example"}, 403),
        ({"origin": "null"}, 403),
        ({}, 403),
    ],
)
def test_a_form_from_elsewhere_is_refused(desk, headers, status):
    """A form counts only if the browser says that a page of this site sent it."""
    desk.wait()
    with desk.client() as client:
        client.follow_redirects = False
        form = Form(opened(client)[1])
        form.choose("reject")
        del client.headers["sec-fetch-site"]
        client.headers.update(headers)
        assert client.post("/t", files=fields(thread="t1")).status_code == status
        assert client.post(form.action, files=form.posted()).status_code == status
    assert len(desk.calls) == 1


def test_pages_forbid_everything_from_elsewhere(desk):
    """Each answer, errors included, forbids scripts in the page, frames, and foreign requests."""
    desk.wait()
    with desk.client() as client:
        for address in ("/", opened(client)[0], "/nowhere", "/static/page.css", "/r/none"):
            headers = client.get(address).headers
            policy = headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert headers["cache-control"] == "no-store"
        page = client.get("/").text
    assert not re.search(r"\son\w+=|style=|<script>|https?://", page)


def test_a_form_has_a_bound(desk):
    """More than `max_body` bytes are not read, whether or not their number is told."""
    desk.wait()
    with desk.client(max_body=20_000) as client:
        form = Form(opened(client)[1])
        form.choose("edit")
        form.fill("text:/prompt", "x" * 30_000)
        assert sent(client, form).status_code == 413

        def streamed():
            for _ in range(100):
                yield b"x" * 1_000

        kind = {"content-type": "multipart/form-data; boundary=x"}
        assert client.post(form.action, content=streamed(), headers=kind).status_code == 413


HOSTILE = (
    "</textarea></pre><script>document.title='owned'</script><img src=x onerror=alert(1)>"
    '" onfocus=alert(1) autofocus x="\x1b[2J\u202eevil\u202c{{7*7}}\ud800'
)


def test_what_a_model_wrote_is_only_text(desk):
    """HTML, scripts, templates, terminal codes and turned text are shown, and do nothing."""
    desk.says = lambda params: HOSTILE.replace("\ud800", "")
    desk.options["labels"] = {"team": HOSTILE[:100]}
    desk.wait(
        "t1", {"prompt": HOSTILE.replace("\ud800", ""), "extra": {HOSTILE[:40]: HOSTILE[:60]}}
    )
    with desk.client() as client:
        inbox = client.get("/").text
        page = opened(client)[1]
    for shown in (inbox, page):
        assert "<script>document" not in shown
        assert "<img src=x" not in shown
        assert not re.search("[\x00-\x08\x1b\u202a-\u202e]", shown)
    assert r"\u202eevil" in page
    assert "{{7*7}}" in page
    form = Form(page)
    assert not any("onfocus" in name for name, _ in form.controls)


def test_addresses_and_logs_tell_nothing(desk, caplog):
    """No text, label, thread or id of a review is in an address, unless somebody filters by it."""
    caplog.set_level(logging.DEBUG)
    desk.options["labels"] = {"customer": "secret-customer"}
    desk.wait("secret-thread", {"prompt": "secret-prompt"})
    with desk.client() as client:
        address, page = opened(client)
        form = Form(page)
        form.choose("approve")
        done = sent(client, form)
        seen = [address, str(done.url), str(client.cookies)]
    # The library's own log names threads, as it always does.
    seen += [each.getMessage() for each in caplog.records if each.name != "graph_retry.reviews"]
    assert not [text for text in seen if "secret" in text]


def test_redacted_texts_stay_redacted(desk):
    """A call with `redact` shows no original on any page, and its output form begins empty."""
    desk.options["redact"] = lambda text: text.replace("Ada", "***").replace("Hopper", "***")
    desk.wait("t1", {"prompt": "Mrs Hopper"})
    with desk.client() as client:
        page = opened(client)[1]
        form = Form(page)
        assert not [text for name, text in form.controls if "output.text:" in name and text]
        form.choose("edit")
        form.fill("choice:/model", '"large"')
        done = sent(client, form).text
    assert "Hopper" not in page + done
    assert "Ada" not in page + done
    assert desk.calls[1].prompt == "Mrs Hopper"


def test_a_checkpointer_alone_can_be_looked_at(desk):
    """Without the graph nobody can answer; the page says what is missing."""
    desk.wait()
    with TestClient(create_app(desk.graph.checkpointer, authorize=lambda _: "ada")) as client:
        page = opened(client)[1]
    assert "start it with their graph" in page
    assert "many" in page


def test_a_view_survives_anything_in_its_address():
    """It is the same again from its own address; what nobody knows shows everything."""
    view = View("later", "oldest", text="ä & b", label=("a: b", "c"))
    assert view_of(view.query) == view
    assert View().query == ""
    for broken in ("", "zz", "order=sideways&tab=up", "label=", "%ff=%00&like"):
        assert view_of(broken) == View()
    assert len(view_of("label=a&" * 99 + "&".join(f"label={n}" for n in range(99))).label) == 10


@pytest.mark.parametrize("cookie", ["zz", "ff", "5b5d", b"order=up".hex()])
def test_a_broken_cookie_of_a_view_shows_everything(desk, cookie):
    """The list beside a review is then that of a first visit."""
    desk.wait()
    with desk.client() as client:
        address, _ = opened(client, order="oldest")
        name = next(iter(client.cookies))
        client.cookies.clear()
        client.cookies.set(name, cookie)
        assert client.get(address).status_code == 200


def test_an_empty_source_is_calm():
    """No review waits: that is what the page says."""
    with TestClient(create_app(InMemorySaver(), authorize=lambda _: "ada")) as client:
        assert "No review waits" in client.get("/").text


@pytest.mark.parametrize("source", [{"configurable": {}}, "reviews.sqlite", None])
def test_a_source_without_reviews_is_refused_at_once(source):
    """The app is not made, and no first visitor meets the mistake."""
    with pytest.raises(TypeError, match=r"`source` is an? `(dict|str|NoneType)`: give"):
        create_app(source, authorize=lambda _: "ada")
