"""Warn of params that look like a credential: they are saved, and shown to reviewers."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from graph_retry._credentials import looks_random, says_secret, without_named_keys
from graph_retry._issues import pointer
from graph_retry._json import is_array, is_object
from graph_retry._redact import Redact, redacted_path

_LOG = logging.getLogger("graph_retry.params")

_ID = re.compile(
    r"(?:.*[_-])?(?:id|ids|uuid|hash|digest|sha\d*|checksum|etag|fingerprint)", re.IGNORECASE
)
"""Names of fields whose values look like keys but are not."""

_LOOKED_AT = 10_000
_LOOKED_AT_IN_ALL = 200_000
"""Characters of a param, and of all params of a call, that are looked at."""

_MAX_TOLD = 1_000
_told: set[tuple[str, str]] = set()


def warn_of_credentials(
    name: str,
    params: Mapping[str, Any],
    redact: Redact | None = None,
    names: Collection[str] = (),
) -> None:
    """Log a warning for each field of a call's params that looks like a credential, once each.

    Keys of the params are redacted, but for the `names` that a type declares.
    """
    for path in _suspects(params):
        if (name, path) not in _told and len(_told) < _MAX_TOLD:
            _told.add((name, path))
            _LOG.warning(
                "the param %r of `%s` looks like a credential: params are saved with the thread "
                "and shown to reviewers, so capture it in the function instead",
                redacted_path(path, redact, names),
                name,
            )


def _suspects(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the paths of texts that look like a credential, by their name or by themselves."""
    left = _LOOKED_AT_IN_ALL
    for path, text in _texts(params, ()):
        named = next((part for part in reversed(path) if isinstance(part, str)), "")
        beginning = text[: min(_LOOKED_AT, left)]
        left -= len(beginning)
        is_key = looks_random(beginning) and not _ID.fullmatch(named)
        if text and (is_key or says_secret(named) or without_named_keys(beginning) != beginning):
            yield pointer(path)


def _texts(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], str]]:
    """Yield the texts in a JSON value with their paths."""
    if isinstance(value, str):
        yield path, value
    elif is_object(value) or is_array(value):
        for key, item in value.items() if is_object(value) else enumerate(value):
            yield from _texts(item, (*path, key))
