"""Compute digests of code and of files. Equal code has equal digests in one Python version."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

PYTHON = f"{sys.implementation.cache_tag}"
"""The version of Python, which is part of each digest because bytecode depends on it."""


@lru_cache(maxsize=1_000)
def code_digest(code: types.CodeType) -> str:
    """Return a digest of code that is the same in all processes of this Python version."""
    made = hashlib.blake2b(digest_size=12)
    for text in _texts_of(code):
        made.update(f"{len(text)}:{text}".encode(errors="surrogatepass"))
    return made.hexdigest()


def _texts_of(code: types.CodeType) -> Iterator[str]:
    """Yield the texts that identify code, without file names and line numbers, which may change."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _texts_of(value)
        elif isinstance(value, frozenset):  # Its order differs between processes.
            yield repr(sorted(map(repr, cast("Any", value))))
        else:
            yield f"{type(value).__name__} {value!r}"


def file_digest(path: str) -> str:
    """Return a digest of a source file, with the version of Python; empty if there is no file."""
    try:
        seen = Path(path).stat()
        return _read(path, seen.st_mtime_ns, seen.st_size)
    except OSError:
        return ""


@lru_cache(maxsize=1_000)
def _read(path: str, _changed: int, _size: int) -> str:
    return f"{PYTHON} {hashlib.blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()}"
