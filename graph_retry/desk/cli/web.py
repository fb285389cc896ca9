"""The command `graph-retry web`: serve the review pages to a browser on this machine."""

from __future__ import annotations

import secrets
import socket
from contextlib import closing
from typing import Any

from graph_retry.desk.cli.exits import ExitCode, Stop
from graph_retry.desk.cli.screen import Screen
from graph_retry.desk.cli.source import Source


def serve(source: Source, screen: Screen, *, port: int, by: str | None, read_only: bool) -> None:
    """Serve the pages on this machine until Ctrl-C, and print their address with its token.

    Raises:
        Stop: If the extra is missing, or the port is taken.
    """
    try:
        import uvicorn  # noqa: PLC0415 - an extra

        from graph_retry.desk.web import create_app  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        what = f"the page needs the extra `web`: graph-retry[web] ({error})."
        raise Stop(ExitCode.USAGE, what) from None
    token = secrets.token_urlsafe(24)
    app = create_app(source.opened, token=token, user=by, read_only=read_only)
    options: dict[str, Any] = {"access_log": False, "log_level": "warning", "lifespan": "off"}
    options["ws"] = "none"  # The pages use no websockets, and loading them may cause a warning.
    server = uvicorn.Server(uvicorn.Config(app, timeout_graceful_shutdown=2, **options))
    with closing(_bound(port)) as bound:
        screen.say(f"http://127.0.0.1:{bound.getsockname()[1]}/?token={token}")
        if not source.can_answer:
            screen.say("Read-only. To answer, name the graph with --graph.", "quiet")
        screen.say("Open this address in a browser on this machine. Ctrl-C stops it.", "quiet")
        source.runner.run(server.serve(sockets=[bound]))


def _bound(port: int) -> socket.socket:
    """Return a listening socket on the loopback address, which other machines cannot reach."""
    bound = socket.socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(("127.0.0.1", port))
        bound.listen()  # An early browser waits until the server starts.
    except OSError as error:
        bound.close()
        what = f"port {port} cannot be used ({error.strerror}): name another with `--port`."
        raise Stop(ExitCode.USAGE, what) from None
    return bound
