"""A private PostgreSQL server for the tests: own data, unix socket only, no durability."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def running_server() -> Iterator[str]:
    """Start a server, yield the DSN of its maintenance database, stop it and remove its data.

    The socket lies in the server's own directory, so servers of parallel runs never meet. A
    server refuses to run as root: root starts it as `postgres`, or as `nobody`.

    Raises:
        RuntimeError: No PostgreSQL is installed, or the server did not start.
    """
    binaries = _find_binaries()
    owner = _unprivileged_owner()
    home = Path(tempfile.mkdtemp(prefix="graph-retry-pg-"))
    if owner:
        os.chown(home, owner.pw_uid, owner.pw_gid)

    def run(program: str, *arguments: str) -> None:
        identity = (
            {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []} if owner else {}
        )
        log = home / "commands.log"
        with log.open("ab") as output:
            done = subprocess.run(
                [binaries / program, *arguments],
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                check=False,
                **identity,
            )
        if done.returncode:
            raise RuntimeError(f"`{program}` failed: {log.read_text(errors='replace')[-2000:]}")

    data, server_log = str(home / "data"), str(home / "server.log")
    settings = (
        f"-c listen_addresses='' -c unix_socket_directories='{home}' -c max_connections=200"
        " -c fsync=off -c synchronous_commit=off -c full_page_writes=off"
    )
    try:
        run("initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=UTF8",
            "--no-locale", "--no-sync")  # fmt: skip
        run("pg_ctl", "start", "-w", "-D", data, "-l", server_log, "-o", settings)
        try:
            yield f"postgresql://postgres@/postgres?host={home}"
        finally:
            run("pg_ctl", "stop", "-w", "-m", "immediate", "-D", data)
    finally:
        shutil.rmtree(home)


def _find_binaries() -> Path:
    """Find the directory that has `initdb` and `pg_ctl`: the newest Debian one, else on PATH."""
    installed = sorted(
        Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[-3])
    )
    if installed:
        return installed[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise RuntimeError("No `initdb` found: install PostgreSQL, or run `make test`.")
    return Path(on_path).resolve().parent


def _unprivileged_owner() -> pwd.struct_passwd | None:
    """Return the account to run the server as, or `None` to run it as the current user."""
    if os.geteuid() != 0:
        return None
    known = {account.pw_name: account for account in pwd.getpwall()}
    return known.get("postgres") or known["nobody"]
