"""Digest code and source files: equal code has one digest in each process of a Python version."""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

PYTHON = f"{sys.implementation.cache_tag}"
"""The bytecode of a function differs between versions of Python."""

_codes: dict[int, tuple[types.CodeType, str]] = {}


def code_digest(code: types.CodeType) -> str:
    """Return a digest of code that is the same in each process of this version of Python."""
    known = _codes.get(id(code))
    if known is None:
        made = hashlib.blake2b(digest_size=12)
        for text in _texts_of(code):
            made.update(f"{len(text)}:{text}".encode(errors="surrogatepass"))
        known = _codes[id(code)] = (code, made.hexdigest())
        if len(_codes) > _MOST_CODES:
            _codes.pop(next(iter(_codes)), None)
    return known[1]


_MOST_CODES = 1_000


def _texts_of(code: types.CodeType) -> Iterator[str]:
    """Yield the parts that identify code, without its file and lines, which other edits change."""
    yield code.co_code.hex()
    yield repr((code.co_names, code.co_varnames, code.co_freevars, code.co_argcount))
    for value in code.co_consts:
        if isinstance(value, types.CodeType):
            yield from _texts_of(value)
        elif isinstance(value, frozenset):  # Its order differs between processes.
            yield repr(sorted(map(repr, cast("Any", value))))
        else:
            yield f"{type(value).__name__} {value!r}"


_files: dict[str, tuple[tuple[int, int], str]] = {}


def file_digest(path: str) -> str:
    """Return a digest of a source file, with the version of Python; empty if there is no file."""
    try:
        seen = Path(path).stat()
        stamp = (seen.st_mtime_ns, seen.st_size)
        if path not in _files or _files[path][0] != stamp:
            text = hashlib.blake2b(Path(path).read_bytes(), digest_size=12).hexdigest()
            _files[path] = (stamp, f"{PYTHON} {text}")
    except OSError:
        return ""
    return _files[path][1]
