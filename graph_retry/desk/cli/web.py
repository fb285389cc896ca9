"""The command `graph-retry web`: serve the review pages to a browser on this machine."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import secrets
import socket
from contextlib import closing
from pathlib import Path
from typing import Any

from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.source import Source
from graph_retry.plugins import error_text


def serve(source: Source, screen: Screen, *, port: int, by: str | None, read_only: bool) -> None:
    """Serve the pages on this machine until Ctrl-C. Print their URL with its token.

    Raises:
        Stop: If the extra is missing, or the port is taken.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from graph_retry.desk.web import create_app  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        what = f"the page needs the extra `web`: graph-retry[web] ({error_text(error)})."
        raise Stop(ExitCode.USAGE, what) from None
    token, kept = secrets.token_urlsafe(24), _kept_secret(screen)
    page = create_app(source.opened, token=token, user=by, read_only=read_only, secret=kept)
    app = _behind_path(page, token, kept)
    options: dict[str, Any] = {"access_log": False, "log_level": "warning", "lifespan": "off"}
    options["ws"] = "none"  # The pages use no websockets, and loading them may cause a warning.
    server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **options))
    with closing(_bound(port)) as bound:
        screen.say(f"http://127.0.0.1:{bound.getsockname()[1]}/?token={token}")
        if not source.can_answer:
            screen.say("Read-only. To answer, name the graph with --graph.", "quiet")
        screen.say("Open this address in a browser on this machine. Ctrl-C stops it.", "quiet")
        source.runner.run(server.serve(sockets=[bound]))


def _behind_path(page: Any, token: str, kept: str) -> Any:
    """Put the page under a path that nobody can guess. The printed URL redirects there.

    Browsers send a cookie of `127.0.0.1` to all ports, but only under the cookie's path. Without a
    secret path, other local servers could read the session.
    """
    from starlette.applications import Starlette  # noqa: PLC0415 - an extra
    from starlette.requests import Request  # noqa: PLC0415
    from starlette.responses import PlainTextResponse, RedirectResponse, Response  # noqa: PLC0415
    from starlette.routing import Mount, Route  # noqa: PLC0415

    path = "/" + hmac.new(kept.encode(), b"path", hashlib.sha256).hexdigest()[:32]

    async def enter(request: Request) -> Response:
        given = request.query_params.get("token", "")
        if not hmac.compare_digest(given.encode(errors="replace"), token.encode()):
            return PlainTextResponse("Open the address that was printed.", 401)
        return RedirectResponse(f"{path}/?token={token}", 303)

    return Starlette(routes=[Route("/", enter), Mount(path, page)])


def _kept_secret(screen: Screen) -> str:
    """Return this account's secret for logins. It is stored, so logins survive a restart.

    Raises:
        Stop: If other accounts could read the file with the secret.
    """
    state = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    path = Path(state) / "graph-retry" / "web.secret"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            _write_new(path, secrets.token_urlsafe(32))
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))) as file:  # noqa: PTH123
            known = os.fstat(file.fileno())
            is_own = not hasattr(os, "geteuid") or (
                known.st_uid == os.geteuid() and not known.st_mode & 0o077
            )
            secret = file.read().strip()
    except OSError as error:
        screen.say(
            f"Logins end with this command, because {path} cannot be used ({error.strerror})."
        )
        return secrets.token_urlsafe(32)
    if not is_own or len(secret) < 32:
        what = f"{path} holds the secret for logins, but others may read it: delete this file."
        raise Stop(ExitCode.USAGE, what)
    return secret


def _write_new(path: Path, text: str) -> None:
    """Write a file that only this account can read. It appears only when it is complete."""
    started = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(started, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:  # noqa: PTH123
            file.write(text)
        os.link(started, path)
    finally:
        started.unlink(missing_ok=True)


def _bound(port: int) -> socket.socket:
    """Return a listening socket on the loopback address, so that other machines cannot reach it."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
        bound.listen()  # An early browser waits until the server starts.
    except OSError as error:
        bound.close()
        what = f"port {port} cannot be used ({error.strerror}): give another one with `--port`."
        raise Stop(ExitCode.USAGE, what) from None
    return bound
