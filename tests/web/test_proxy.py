"""The page behind nginx, as SECURITY.md says: HTTPS, a path prefix, a login header, slow people."""

import base64
import os
import re
import shutil
import socket
import ssl
import subprocess
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from graph_retry.desk.web import create_app
from tests.web.conftest import READY_WITHIN_S, serving
from tests.web.forms import Form
from tests.web.test_answers import last_decision
from tests.web.test_command import ROOT

PASSWORDS = "ada:{PLAIN}one\nbob:{PLAIN}two\n"
SLOW = 40
"""Number of people whose forms arrive byte by byte."""


def free_port():
    """Return a port that nobody uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def configuration():
    """Return the configuration of nginx that SECURITY.md shows."""
    return re.search(r"```nginx\n(.*?)```", (ROOT / "SECURITY.md").read_text(), re.DOTALL)[1]


@contextmanager
def nginx(folder, upstream):
    """Run nginx with the documented configuration; yields its address."""
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    port = free_port()
    key = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    key += ["-nodes", "-keyout", "key.pem", "-out", "cert.pem", "-days", "2"]
    key += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(key, cwd=folder, check=True, capture_output=True)
    (folder / "passwords").write_text(PASSWORDS)
    server = configuration()
    for documented, here in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("reviews.example.org", "localhost"),
        ("127.0.0.1:8000", upstream.removeprefix("http://")),
        ("/etc/nginx/", f"{folder}/"),
    ):
        assert documented in server
        server = server.replace(documented, here)
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        # A worker that root starts becomes another account, which cannot enter the test's folder.
        f"{'user root;' if os.geteuid() == 0 else ''}\n"
        f"daemon off;\npid {folder}/pid;\nerror_log {folder}/errors;\nworker_processes 1;\n"
        f"events {{ worker_connections 256; }}\n"
        f"http {{\naccess_log off;\n{temporary}{server}}}\n"
    )
    with (folder / "said").open("w") as said:
        started = subprocess.Popen(
            [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)], stderr=said
        )
        try:
            transport = httpx.HTTPTransport(verify=trusting(folder), retries=READY_WITHIN_S)
            with httpx.Client(transport=transport) as first:
                first.get(f"https://localhost:{port}/")
            yield f"https://localhost:{port}"
        finally:
            started.terminate()
            started.wait()


def trusting(folder):
    """Return the certificates that a browser of this company trusts."""
    return ssl.create_default_context(cafile=folder / "cert.pem")


@pytest.fixture
def proxied(desk, tmp_path):
    """Serve the page under a path behind nginx; yields its address and the trusted certificates."""
    desk.wait()
    desk.users = []

    def who(request):
        desk.users.append(request.headers.getlist("x-user"))
        return request.headers.get("x-user")

    page = create_app(desk.graph, authorize=who)
    with (
        serving(Starlette(routes=[Mount("/reviews", page)])) as upstream,
        nginx(tmp_path, upstream) as address,
    ):
        yield f"{address}/reviews", trusting(tmp_path)


def visiting(proxied, name, password):
    """Return a browser of a person who has logged in at nginx."""
    address, trusted = proxied
    headers = {"sec-fetch-site": "same-origin", "x-user": "mallory"}
    return httpx.Client(
        verify=trusted, auth=(name, password), headers=headers, base_url=address, timeout=60
    )


def test_people_answer_behind_a_proxy(desk, proxied):
    """Its login counts and a header of the browser does not; all addresses have the prefix."""
    with visiting(proxied, "bob", "wrong") as client:
        assert client.get("/").status_code == 401
    with visiting(proxied, "ada", "one") as client:
        listed = client.get("/").text
        (address,) = re.findall(r'href="(/reviews/r/\w+)"', listed)
        assert client.get("/static/page.css").status_code == 200
        origin = str(client.base_url).removesuffix("/reviews/")
        page = client.get(f"{origin}{address}")
        form = Form(page.text)
        form.choose("reject")
        done = client.post(f"{origin}{form.action}", files=form.posted(), follow_redirects=True)
        assert "The call is stopped." in done.text
        assert done.url.path.startswith("/reviews/r/")
        cookie = client.get("/?tab=later").headers["set-cookie"]
        for word in ("Secure", "HttpOnly", "SameSite=strict", "Path=/reviews"):
            assert word in cookie
    assert last_decision(desk)["by"] == "ada"


@pytest.mark.parametrize(
    ("origin", "status"), [("", 303), ("http", 403), ("other", 403)], ids=["own", "http", "other"]
)
def test_the_origin_of_a_form_has_the_scheme_of_the_proxy(proxied, origin, status):
    """A browser without `Sec-Fetch-Site` is believed only if its origin is this HTTPS address."""
    with visiting(proxied, "ada", "one") as client:
        own = str(client.base_url).removesuffix("/reviews/")
        given = {"": own, "http": own.replace("https", "http"), "other": "https://evil.example"}
        view = Form(client.get("/history").text, "find")
        view.fill("thread", "t1")
        del client.headers["sec-fetch-site"]
        client.headers["origin"] = given[origin]
        assert client.post(f"{own}{view.action}", files=view.posted()).status_code == status


SMUGGLED = "GET /reviews/ HTTP/1.1\r\nHost: localhost\r\nX-User: mallory\r\n\r\n"
LAST = "Connection: close\r\n"
TRICKS = {
    "plain": ("GET /reviews/", "X-User: mallory\r\n", ""),
    "twice": ("GET /reviews/", "X-User: mallory\r\nx-user: eve\r\n", ""),
    "underscore": ("GET /reviews/", "X_User: mallory\r\nHTTP_X_USER: mallory\r\n", ""),
    "space": ("GET /reviews/", "X-User : mallory\r\n", ""),
    "folded": ("GET /reviews/", "X-Other: a\r\n X-User: mallory\r\n", ""),
    "line feed": ("GET /reviews/", "X-Other: a\nX-User: mallory\r\n", ""),
    "return": ("GET /reviews/", "X-Other: a\rX-User: mallory\r\n", ""),
    "hop by hop": ("GET /reviews/", "X-User: mallory\r\nConnection: X-User\r\n", ""),
    "query": ("GET /reviews/?x-user=mallory%0d%0aX-User:mallory", "", ""),
    "path": ("GET /reviews/%0d%0aX-User:%20mallory/", "", ""),
    "whole address": ("GET http://evil.example/reviews/", "X-User: mallory\r\n", ""),
    "dots": ("GET /reviews/../reviews/r/..%2f..%2freviews/", "X-User: mallory\r\n", ""),
    "trailer": (
        "POST /reviews/t", "Transfer-Encoding: chunked\r\nTrailer: X-User\r\n",
        "1\r\na\r\n0\r\nX-User: mallory\r\n\r\n",
    ),
    "two lengths": (
        "POST /reviews/t", "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        f"0\r\n\r\n{SMUGGLED}",
    ),
    "odd coding": (
        "POST /reviews/t", "Content-Length: 4\r\nTransfer-Encoding: xchunked\r\n",
        f"0\r\n\r\n{SMUGGLED}",
    ),
    "behind": ("GET /reviews/", f"Content-Length: {len(SMUGGLED)}\r\n", SMUGGLED),
    "upgrade": ("GET /reviews/", "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n", SMUGGLED),
}  # fmt: skip


@pytest.mark.parametrize("password", ["one", "wrong"])
@pytest.mark.slow
def test_nobody_passes_a_name_to_the_app(desk, proxied, password):
    """However a request is written, the app hears the name of who logged in, once, or nothing."""
    address, trusted = proxied
    port = httpx.URL(address).port
    login = base64.b64encode(f"ada:{password}".encode()).decode()
    for target, headers, body in TRICKS.values():
        head = f"{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\n"
        with (
            socket.create_connection(("127.0.0.1", port), timeout=5) as plain,
            trusted.wrap_socket(plain, server_hostname="localhost") as line,
            suppress(OSError),
        ):
            line.sendall(f"{head}{headers}{LAST}\r\n{body}".encode())
            while line.recv(65_536):
                pass
    assert {tuple(names) for names in desk.users} == ({("ada",)} if password == "one" else set())


def test_people_who_do_not_read_hold_nobody_up(desk, proxied):
    """Forty connections ask for pages and never take them; others read and answer meanwhile."""
    _, trusted = proxied
    login = base64.b64encode(b"bob:two").decode()
    asked = f"GET /reviews/ HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {login}\r\n\r\n"
    with ExitStack() as held, visiting(proxied, "ada", "one") as client:
        for _ in range(SLOW):
            plain = socket.create_connection(("127.0.0.1", client.base_url.port))
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1_024)
            line = held.enter_context(trusted.wrap_socket(plain, server_hostname="localhost"))
            line.sendall(asked.encode() * 20)
        statuses = [client.get("/").status_code for _ in range(10)]
    assert statuses == [200] * 10
    assert ["bob"] in desk.users


@pytest.mark.parametrize("where", ["proxy", "app"])
def test_slow_people_hold_nobody_up(desk, proxied, tmp_path, where):
    """Forms that arrive byte by byte, at nginx or at the app itself, let others read and answer."""
    address, trusted = proxied
    login = base64.b64encode(b"bob:two").decode()
    head = (
        "POST /reviews/t HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\n"
        f"X-User: bob\r\nAuthorization: Basic {login}\r\nContent-Length: 90000\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\n\r\n"
    ).encode()
    with ExitStack() as held, visiting(proxied, "ada", "one") as client:
        port = client.base_url.port
        if where == "app":
            port = int(re.search(r"proxy_pass http://127.0.0.1:(\d+)", _written(tmp_path))[1])
        slow = []
        for _ in range(SLOW):
            line = held.enter_context(socket.create_connection(("127.0.0.1", port)))
            if where == "proxy":
                line = held.enter_context(trusted.wrap_socket(line, server_hostname="localhost"))
            line.sendall(head)
            slow.append(line)
        for _ in range(10):
            for line in slow:
                line.sendall(b"-")
            assert client.get("/").status_code == 200
        assert len(slow) == SLOW
    assert address


def _written(folder):
    return (folder / "nginx.conf").read_text()
