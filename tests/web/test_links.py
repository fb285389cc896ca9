"""Links to one review: signed, for a while, for nothing else; and the messages that bring them."""

import json
import re
import threading
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from contextlib import contextmanager
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import StreamRequestHandler, ThreadingTCPServer
from string import ascii_letters
from typing import Any
from urllib.parse import quote

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

from graph_retry import respond, resume
from graph_retry.desk.web import create_app
from graph_retry.hooks import Review
from graph_retry.observers import Email, Link, Links, Slack, Teams
from graph_retry.observers import _notifications as notifications
from graph_retry.threads import attempts_of, list_reviews
from tests.web.conftest import SAME_SITE
from tests.web.forms import Form
from tests.web.test_answers import opened, sent

SECRET = "a text that nobody else knows"
LINKS = Links("http://testserver", secret=SECRET)


def linked(desk, number=0, **options):
    """Return the link to an open review."""
    return Links("http://testserver", secret=SECRET, **options).url_for(
        list_reviews(desk.graph)[number], to="grace"
    )


@pytest.fixture
def visitor(desk):
    """Give the test a browser that nobody has logged in."""
    with desk.client(authorize=lambda _: None, secret=SECRET) as client:
        yield client


def test_a_link_shows_its_review_and_takes_an_answer(desk, visitor):
    """Without a login the one review is shown and answered, in the name that the link was for."""
    desk.wait()
    page = visitor.get(linked(desk))
    assert page.url.path.startswith("/r/")
    assert 'href="/"' not in page.text
    form = Form(page.text)
    form.choose("respond")
    form.fill("output.number:/count", "3")
    done = sent(visitor, form)
    assert "Your output is used." in done.text
    assert 'href="/"' not in done.text
    (ledger,) = attempts_of(desk.graph, {"configurable": {"thread_id": "t1"}})
    assert ledger.attempts[-1]["decision"]["by"] == "grace"


def test_a_link_opens_nothing_else(desk, visitor):
    """Neither the list nor another review, of the same thread or of others, can be seen by it."""
    desk.wait("t1", {"prompt": "its-prompt"}, {"prompt": "own-prompt"})
    visitor.get(linked(desk))
    with desk.client() as other:
        address = opened(other, 1)[0]
    shown = visitor.get(opened_path(linked(desk), visitor))
    prompts = ("its-prompt", "own-prompt")
    assert sum(text in shown.text for text in prompts) == 1
    assert "This thread asks" not in shown.text
    for path in ("/", "/?since=0", address):
        assert visitor.get(path).status_code == 403


def opened_path(link, client):
    """Open a link and return where it leads."""
    return client.get(link).url.path


def forged(token):
    """Return tokens that nobody signed: cut, padded, encoded anew, for another review or time."""
    text, signature = token.split(".")
    key, expires, to = json.loads(urlsafe_b64decode(text + "=="))
    raw = urlsafe_b64decode(signature + "=")
    others = [["other", expires, to], [key, expires + 9, to], [key, expires, "root"], [key], key]
    yield from (
        urlsafe_b64encode(json.dumps(one).encode()).decode() + f".{signature}" for one in others
    )
    yield from (
        f"{text}.{one}" for one in (raw.hex(), b64encode(raw).decode(), "", signature.upper())
    )
    yield from (text, "a.b", "é", f"{token}=", f"x{token}", f"{token}.x", f"{signature}.{text}")
    # The last character of a signature of 32 bytes has two bits that no byte uses.
    yield from (token[:-1] + last for last in ascii_letters if last != token[-1])
    yield Link(key, 1, to).signed(SECRET)
    yield Link(key, expires, to).signed(f"{SECRET} ")


def test_a_link_ends(desk, visitor, monkeypatch):
    """After its time it opens nothing, whoever has opened it before; so does a changed one."""
    desk.wait()
    link = linked(desk, expires_after=60)
    path = opened_path(link, visitor)
    token = link.rpartition("/")[2]
    for broken in forged(token):
        visitor.cookies.clear()
        assert visitor.get(f"/l/{quote(broken, safe='')}").status_code in {403, 404}
        cookie = f"graph-retry-link={broken}".encode()
        assert visitor.get(path, headers={"cookie": cookie}).status_code == 403
    visitor.cookies.clear()
    told = visitor.get(f"{link}?key=other&to=root&expires=99&token=x", follow_redirects=False)
    assert (told.headers["location"], told.headers["referrer-policy"]) == (path, "same-origin")
    assert f"Path={path}; SameSite=strict" in told.headers["set-cookie"]
    now = notifications.time.time()
    visitor.get(link)
    monkeypatch.setattr(notifications.time, "time", lambda: now + 61)
    assert visitor.get(path).status_code == 403
    assert visitor.get(link).status_code == 403


def test_a_link_is_for_the_secret_it_was_made_with(desk):
    """An app with another secret, or without one, takes no link."""
    desk.wait()
    for options in ({"secret": "another text that is long"}, {}):
        with desk.client(authorize=lambda _: None, **options) as client:
            assert client.get(linked(desk)).status_code == 403


def test_a_link_to_what_is_over_says_so(desk, visitor):
    """Who comes late is told, and sees nothing of the thread."""
    desk.wait()
    link = linked(desk)
    resume(desk.graph, {"configurable": {"thread_id": "t1"}}, respond({"name": "B", "count": 1}))
    page = visitor.get(link)
    assert page.status_code == 410
    assert "This review is closed" in page.text


def test_what_is_refused_is_answered_again_by_the_same_link(desk, visitor):
    """An answer that does not fit comes back as it was typed, and can be mended there."""
    desk.wait()
    form = Form(visitor.get(linked(desk)).text)
    form.choose("respond")
    form.fill("output.number:/count", "1.5")
    again = Form(sent(visitor, form).text)
    again.fill("output.number:/count", "2")
    assert "Your output is used." in sent(visitor, again).text
    assert [each.count for each in desk.results] == [2]


def test_links_work_where_the_app_is_mounted(desk):
    """Below another app, two links in one browser open a review each."""
    desk.wait("t1", {"prompt": "the first"})
    desk.wait("t2", {"prompt": "the second"})
    app = create_app(desk.graph, secret=SECRET)
    mounted = Links("http://testserver/reviews/", secret=SECRET)
    with TestClient(Starlette(routes=[Mount("/reviews", app)]), headers=SAME_SITE) as client:
        second, first = (client.get(mounted.url_for(each)) for each in list_reviews(desk.graph))
        assert "the first" in client.get(first.url.path).text
        assert "the second" in client.get(second.url.path).text


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"page": "example.org"}, "whole URL"),
        ({"page": "https://example.org/a/?x=1"}, "such as 'https://example.org/a/l/…'"),
        ({"page": "https://example.org/a#b"}, "without `\\?` and `#`"),
        (
            {"secret": "short"},
            "`secret`: give a random text of 22 characters or more, .* 5 char",
        ),
        ({"expires_after": 0}, "seconds above 0"),
    ],
)
def test_wrong_links_are_told_at_once(options, told):
    """A mistake is told when the links are set up, not when somebody needs one."""
    given = {"page": "https://example.org", "secret": SECRET, **options}
    with pytest.raises(ValueError, match=told):
        Links(given.pop("page"), **given)


@contextmanager
def mail_server(*, refuses=False):
    """Take mails on a port of this machine; yields its address and what came."""
    came = []

    class Session(StreamRequestHandler):
        def handle(self):
            self.say("220 here")
            while line := self.rfile.readline().decode().strip():
                word = line.partition(" ")[0].upper()
                if word == "RCPT" and refuses:
                    self.say("550 no such person")
                elif word == "DATA":
                    self.say("354 go on")
                    body = b""
                    while not body.endswith(b"\r\n.\r\n"):
                        body += self.rfile.readline()
                    came.append(message_from_bytes(body[:-3], policy=policy.default))
                    self.say("250 taken")
                elif word == "QUIT":
                    self.say("221 bye")
                    return
                else:
                    self.say("250 ok")

        def say(self, text):
            self.wfile.write(f"{text}\r\n".encode())

    with served(ThreadingTCPServer(("127.0.0.1", 0), Session)) as port:
        yield f"127.0.0.1:{port}", came


@contextmanager
def webhook(status=200):
    """Take posts on a port of this machine; yields its address and what came."""
    came = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            came.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(status)
            self.send_header("location", "/elsewhere")
            self.end_headers()

        do_GET = do_POST  # noqa: N815

        def log_message(self, *args):
            """Say nothing."""

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as port:
        yield f"http://127.0.0.1:{port}/secret-hook", came


@contextmanager
def served(server):
    """Run a server beside the test."""
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def told(way, address):
    """Make the function of a way to tell people."""
    if way is Email:
        return Email(LINKS, address, "reviews@example.org", "grace@example.org", security="none")
    return way(LINKS, address)


@pytest.mark.parametrize("way", [Email, Slack, Teams])
def test_a_message_brings_the_link_and_nothing_secret(desk, visitor, way):
    """It names the call and what is wrong in a word; its link opens the review."""
    desk.says = lambda params: '{"name": "secret-output", "count": "many"}'
    desk.options |= {"labels": {"customer": "secret-label"}, "expires_after": 3_600}
    with mail_server() if way is Email else webhook() as (address, came):
        desk.options["notify"] = told(way, address)
        desk.wait("secret-thread", {"prompt": "secret-prompt"})
    (message,) = came
    text = message.get_content() if way is Email else json.dumps(message)
    assert "count, attempt 1: invalid answer." in text
    assert "Due " in text
    assert "secret" not in (str(message) if way is Email else text)
    link = re.search(r"http://testserver/l/[\w.-]+", text)[0]
    assert "secret-prompt" in visitor.get(link).text
    assert (way is not Email) or message["Subject"] == "count needs an answer"


@pytest.mark.parametrize("way", [Email, Slack, Teams])
def test_a_message_that_cannot_be_sent_leaves_the_question(desk, caplog, way):
    """The review is asked all the same; the log tells why, and not where the message was to go."""
    with mail_server(refuses=True) if way is Email else webhook(404) as (address, _):
        desk.options["notify"] = told(way, address)
        desk.wait()
    assert len(list_reviews(desk.graph)) == 1
    (line,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert line.startswith("`notify`")
    assert "failed" in line
    assert "secret-hook" not in line


def test_nobody_is_followed_to_another_address(desk):
    """A webhook that sends the message elsewhere is an error: the message is for one address."""
    desk.wait()
    with webhook(307) as (address, came):
        with pytest.raises(OSError, match="status 307"):
            Slack(LINKS, address)(list_reviews(desk.graph)[0])
        assert len(came) == 1


def test_a_kind_of_a_newer_version_has_words():
    """A server may be newer than the page, and its reviews are listed all the same."""
    failure: Any = {"kind": "of_tomorrow", "type": "E", "message": "m"}
    review = Review(review_id="r1", function_name="ask", attempt=1, params={}, failure=failure)
    assert review.summary == "failed"


@pytest.mark.parametrize(
    "server",
    [
        *("mail:smtp", "mail:99999", "::1", "[::1", "", ":25", "mail example.org", "mail:25\n"),
        *("smtp://mail", "user@mail", "mail/in", "mail:25:25"),
    ],
)
def test_a_mail_server_that_cannot_be_read_is_refused_at_once(server):
    """Otherwise the error is only logged, and nobody is told of a review."""
    with pytest.raises(ValueError, match="`server` is "):
        Email(LINKS, server, "a@example.org", "b@example.org")


def test_a_mail_server_may_be_an_address_of_six_bytes_and_more(monkeypatch):
    """An IPv6 address stands in brackets; a port may be left out."""
    asked = []

    class Server:
        def __init__(self, host, port, timeout):
            asked.append((host, port))
            raise OSError("not reached")

    monkeypatch.setattr(notifications.smtplib, "SMTP", Server)
    review = Review(review_id="r1", function_name="ask", attempt=1, params={}, failure=None)
    for server in ("[::1]:25", "[::1]", "mail.example.org", "mail:587", "127.0.0.1:2525"):
        with pytest.raises(OSError, match="not reached"):
            Email(LINKS, server, "a@example.org", "b@example.org")(review)
    assert asked == [
        *(("::1", 25), ("::1", 0), ("mail.example.org", 0), ("mail", 587), ("127.0.0.1", 2525)),
    ]


@pytest.mark.parametrize("webhook", ["hook/secret", "", "ftp://secret", "https://", "https://a b"])
@pytest.mark.parametrize("way", [Slack, Teams])
def test_a_webhook_that_is_no_address_is_refused_at_once(way, webhook):
    """The error does not quote it, because it is a secret."""
    with pytest.raises(ValueError, match="`webhook` is not a whole URL") as refused:
        way(LINKS, webhook)
    assert "secret" not in str(refused.value)


def test_the_secrets_of_messages_are_not_shown():
    """Neither a signature, nor a password, nor a webhook is in the text of these objects."""
    mail = Email(LINKS, "mail", "a@example.org", "b@example.org", user="u", password="secret-word")
    shown = repr([LINKS, mail, Slack(LINKS, "https://hook/secret"), Teams(LINKS, "https://secret")])
    assert "secret" not in shown.replace(SECRET, "secret")
