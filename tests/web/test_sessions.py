"""Logins by a token: random, of one port and one user, kept over a restart, for nobody else."""

import re
import stat

import pytest
from selenium.webdriver.common.by import By
from starlette.testclient import TestClient

from graph_retry._core.langgraph.storage.lock import ThreadLock
from graph_retry.desk.web import Access, create_app
from graph_retry.desk.web.page import Site
from graph_retry.threads import list_reviews
from tests.web.conftest import serving
from tests.web.test_browser import one, wait_for
from tests.web.test_command import OFFICE, running

SECRET = "kept-secret-of-this-account-0123"
WORD = "Qd7-vK2m_Zt9LxW4bN8sRc"
TOKEN = {"authorize": None, "token": WORD, "user": "ada"}
OPENING = f"/?token={WORD}"


def session_of(client, **options):
    """Log in; return the name and the value of the cookie."""
    told = client.get(OPENING, follow_redirects=False, **options).headers["set-cookie"]
    return told.partition(";")[0].split("=", 1)


def test_a_session_is_random_and_strict(desk):
    """Two logins have two sessions, which no other site sends, and which name the port."""
    with desk.client(**TOKEN) as client:
        name, first = session_of(client, headers={"host": "127.0.0.1:8765"})
        again, second = session_of(client, headers={"host": "127.0.0.1:8765"})
        assert (name, again, first != second) == ("graph-retry-session-8765", name, True)
        told = client.get(OPENING, follow_redirects=False).headers["set-cookie"]
    assert "SameSite=strict" in told
    assert "HttpOnly" in told


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"token": "W3rt-yU8i_Op1AsD5fGh2Jk"}, 200),  # a restart with the kept secret
        ({"secret": "kept-secret-of-another-account-01"}, 401),
        ({"user": "bob"}, 401),
        ({"port": "9999"}, 401),
        ({"root": "/another"}, 401),
        ({"late": 7 * 86_400 + 1}, 401),
        ({"value": "x.99999999999."}, 401),
        ({"value": ""}, 401),
    ],
)
def test_a_session_counts_where_it_was_given(desk, monkeypatch, change, status):
    """After a restart, too; not for another account, user, port or path, and not after a week."""
    from graph_retry.desk.web import safety

    with desk.client(**TOKEN, secret=SECRET) as client:
        _, value = session_of(client, headers={"host": "127.0.0.1:8765"})
    now = safety.time.time()
    monkeypatch.setattr(safety.time, "time", lambda: now + change.get("late", 0))
    host = f"127.0.0.1:{change.get('port', '8765')}"
    cookie = f"graph-retry-session-{host.partition(':')[2]}={change.get('value', value)}"
    options = {**TOKEN, "secret": SECRET, **change}
    options = {name: options[name] for name in ("authorize", "token", "user", "secret")}
    app = create_app(desk.graph, **options)
    with TestClient(app, root_path=change.get("root", "")) as client:
        page = client.get("/", headers={"host": host, "cookie": cookie})
    assert page.status_code == status


@pytest.mark.slow
def test_a_restart_of_the_command_keeps_logins(tmp_path, monkeypatch):
    """The secret is readable by its owner only; the page's path is known only to who logged in."""
    import http.cookiejar
    import urllib.request

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    with running([*OFFICE, "--port", "0", "--by", "ada"], tmp_path) as (_, address):
        page = browser.open(address).geturl()
    kept = tmp_path / "state" / "graph-retry" / "web.secret"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    port = re.search(r":(\d+)/", page)[1]
    (cookie,) = jar
    assert (cookie.name, len(cookie.path)) == (f"graph-retry-session-{port}", 33)
    with running([*OFFICE, "--port", port, "--by", "ada"], tmp_path):
        assert "7 reviews wait" in browser.open(page).read().decode()
    kept.chmod(0o644)
    with running([*OFFICE, "--port", port], tmp_path) as (started, _):
        assert "others may read it: delete this file" in started.communicate()[1]


def test_a_link_on_another_site_finds_the_login(browser, desk):
    """The session is not sent from there, but from the page that then opens the address again."""
    desk.wait()
    with serving(create_app(desk.graph, token=WORD, user="ada")) as page:
        elsewhere = page.replace("127.0.0.1", "localhost")
        browser.get(page + OPENING)
        wait_for(browser, "1 review waits")
        browser.get(f"{elsewhere}/static/icon.svg?")
        browser.get(f"{elsewhere}/")
        link = "const a = document.createElement('a'); a.href = arguments[0]; a.id = 'there';"
        browser.execute_script(
            f"{link} a.textContent = 'there'; document.body.append(a)", f"{page}/"
        )
        browser.find_element(By.ID, "there").click()
        wait_for(browser, "1 review waits")
        assert one(browser, ".user").text == "ada"


@pytest.mark.parametrize("target", ["there", "nowhere"])
async def test_a_folder_of_locks_that_is_a_link_is_refused(tmp_path, target):
    """Whoever made the link would choose where files are created."""
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    (tmp_path / "there").mkdir()
    (tmp_path / "db.locks").symlink_to(tmp_path / target)
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "db")) as saver:
        await saver.setup()
        with pytest.raises(OSError, match="move away what stands there"):
            await ThreadLock(saver, "t").try_acquire()
    assert list((tmp_path / "there").iterdir()) == []


def test_no_template_can_read_a_review_that_its_user_may_not_see(desk, monkeypatch):
    """A handler that forgets to filter gets no page, whatever it passes: it fails closed."""
    desk.options["labels"] = {"tenant": "acme"}
    desk.wait("t1", {"prompt": "canary"})
    (review,) = list_reviews(desk.graph)
    seen = []

    async def forgetful(site, request, access):
        del access
        other = Access("bob", labels={"tenant": "umbrella"})
        seen.append(request.url.path)
        return await site.message(request, 200, "Mine", "mine", other, following=[review])

    plain = Site.answers
    monkeypatch.setattr(Site, "answers", lambda site, _: plain(site, forgetful))
    with desk.client() as client:
        page = client.get("/")
    assert (page.status_code, seen) == (404, ["/"])
    assert "acme" not in page.text
