"""Find credentials, such as API keys, and mask them in error messages.

A credential is found in four ways:

1. By its name: a field, header, parameter or flag such as `api_key` or `X-Auth-Token`.
2. By its place: after `Authorization:`, `Bearer` or `curl -u`, or before the `@` in a URL.
3. By its beginning, which is in a table of `known_tokens.py`.
4. By its look: a long text in which letters and digits alternate at almost every character.

The look of an id of a request or an object is ignored, because ids look random. If a text is masked
because of its look or its beginning, its first characters stay readable.
"""

from __future__ import annotations

import itertools
import re

from graph_retry._core.ground.known_tokens import BEGINNING, CREDENTIAL, DATA_KEYS, ID, ID_NAME
from graph_retry.lossless._ground import lazy

_PASSWORDS = frozenset({"apikey", "pass", "passphrase", "passwd", "password", "pgpassword", "pwd"})
_SURE = _PASSWORDS | {"secret", "credential", "credentials", "jwt"}
_HEADERS = frozenset({"authorization", "cookie"})
_SECRETS = _SURE | _HEADERS | {"auth", "sig", "signature", "token"}
_NEED_A_QUALIFIER = frozenset({"auth", "jwt", "pass", "key", "base"})
_KEYS_OF = (
    frozenset({"access", "account", "api", "app", "auth", "bearer", "bot", "client", "encryption"})
    | frozenset({"master", "private", "refresh", "secret", "service", "session", "shared"})
    | frozenset({"signing", "subscription"})
)
"""Words before `key` or `token` that name a credential. `key` alone may be the key of a table."""

_WORD = lazy(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_QUOTE = r"\\{0,4}[\"']"
_NAMED = lazy(
    r"(?<![\w-])(?P<flag>--?)?(?P<name>[A-Za-z][\w-]{0,80}+(?: key\b)?)"
    rf"(?P<link>(?:{_QUOTE})?(?:\s{{0,5}}(?::=|[:=]>?)\s{{0,5}}|,\s{{0,5}}(?=b?[\"']))|>"
    # A space links a name to its value only after a flag. Otherwise, each word would be a name.
    r"|(?<=\w)(?(flag)\s|[^\S ]))",
    re.IGNORECASE,
)
_VALUE = lazy(
    r"[|>][-+]?\d?[ \t]*(?P<block>(?:\n[ \t]+[^\n]{4,4000}+)+)|"  # A block of YAML.
    rf"\[?(?:b(?=[\"']))?(?:{_QUOTE}(?P<quoted>[^\"'\\]{{4,4000}})"
    r"|(?P<bare>[^\s\"'\\,;&<>()\[\]]{4,4000}+)(?![(\[]))"  # A bracket means that this is code.
)
_NO_VALUE = lazy(r"[A-Z_]+$|SecretStr|[*/<~]")
"""Matches values that are no credentials: placeholders in examples, printed settings, paths."""

_PLACES = tuple(
    (words.split(), lazy(pattern, re.IGNORECASE))
    for words, pattern in (
        # The value of the headers `Authorization` and `Cookie`, with or without quotes.
        (
            "authorization",
            r"(authorization\s{0,5}[:=]\s{0,5}(?:[\w-]{2,40}(?:\s|%20))?)(?=[^\r\n]{0,99}\d)[^\r\n]{6,}",
        ),
        (
            "authorization",
            r"(authorization[\"'],?\s{0,5}:?\s{0,5}\[?b?[\"'](?:[\w-]{2,40}\s)?)(?=[^\"']{0,99}\d)[^\"']{6,}",
        ),
        ("cookie", r"(cookie[\"']?\s{0,5}[:=]\s{0,5}b?[\"']?)(?=[\w.-]{1,80}=)[^\"'\r\n]{8,}"),
        (
            "bearer basic",
            r"(\b(?:bearer|basic)\s)(?=[^\s\"',;]{0,200}(?:[\d=]|(?-i:[a-z][A-Z])))[^\s\"',;]{8,}",
        ),
        ("-u", r"(\s(?:-u|--user)[\s=][\"']?[^\s:\"']{1,100}:)[^\s\"']+"),
        # A line of a `.netrc` file.
        ("login", r"(\blogin\s\S{1,100}\spassword\s)\S+"),
        # The password or the name in a URL, as in `https://name:password@host`.
        ("://", r"(://[^\s/:@]{0,100}:)[^\s/]{1,200}(?=@)"),
        ("://", r"(://)(?=[^\s/:@]{0,200}\d)[^\s/:@]{12,200}(?=@)"),
        # The secret of an app of Facebook follows the number of the app.
        ("| %7c", r"(\b\d{15,16}(?:\||%7c))[\w-]{27,40}"),
        ("-----begin", r"(-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----)(?:[^-]|-(?!----))+"),
    )
)
"""Patterns for credentials in a known place, each tried only in texts with one of its words."""

_RUN = lazy(r"(?<![\w.~+/=-])[\w.~+/=-]{20,}", re.ASCII)
_PART = lazy(r"[A-Za-z0-9]{16,}")
_TOKEN = lazy(r"[A-Za-z0-9_-]{20,}")
_CHANGE = lazy(r"[a-z](?=[A-Z0-9])|[A-Z](?=[a-z0-9])|[0-9](?=[A-Za-z])")
_HASH = lazy(r"[0-9a-f]{32,}|[0-9A-F]{32,}")


def without_keys(text: str) -> str:
    """Mask the credentials in a text.

    Example:
        >>> without_keys("401 for https://ada:secret@host/v1?key=AIzaSyA-Ab3dEf6hIj9kLm2nOp5qRs")
        '401 for https://ada:[key]@host/v1?key=AIzaSyA-[key]'
    """
    return _RUN.sub(_masked_run, without_named_keys(text))


def says_secret(name: str) -> bool:
    """Return whether a field, header or parameter with this name holds a credential.

    Example:
        >>> [says_secret(name) for name in ("X-Auth-Key", "openaiApiKey", "primary_key")]
        [True, True, False]
    """
    words = [word.lower() for word in _WORD.findall(name)]
    last, before = words[-1:], set(words[:-1])
    if last == ["base"]:  # SECRET_KEY_BASE
        last, before = words[-2:-1], set(words[:-2])
    if last == ["key"] or (last == ["token"] and before):
        return bool(before & _KEYS_OF)
    return bool(_SECRETS.intersection(last)) and not (last[0] in _NEED_A_QUALIFIER and not before)


def looks_random(text: str) -> bool:
    """Return whether a text is one long token that looks random, as a credential does.

    Example:
        >>> looks_random("sk-Ab3dEf6hIj9kLm2nOp5q"), looks_random("customer_000000000000001")
        (True, False)
    """
    run = _RUN.fullmatch(text)
    return run is not None and (is_known(text) or _random_part(_without_ids(text)) is not None)


def is_known(text: str) -> bool:
    """Return whether a text contains a credential that is known by its beginning."""
    return CREDENTIAL.search(text) is not None


def without_named_keys(text: str) -> str:
    """Mask the credentials in a text that are found by their name or place."""
    folded = text.casefold()
    for words, place in _PLACES:
        if any(word in folded for word in words):
            text = place.sub(_masked_place, text)
    done, pieces, at = 0, list[str](), 0
    while named := _NAMED.search(text, at):
        at = named.end("name")
        # A flag such as `--auth` or `--token` is followed by its value.
        says_so = says_secret(named["name"]) or (named["flag"] and named["name"] in _SECRETS)
        vague = not says_so and _may_be_secret(named["name"])
        value = _VALUE.match(text, named.end()) if says_so or vague else None
        if value and (_is_credential(named, value) if says_so else _is_hash_like(value)):
            start, at = value.span(value.lastgroup or 0)
            pieces += [text[done:start], "\n  [key]" if value["block"] else "[key]"]
            done = at
    return "".join([*pieces, text[done:]])


def _may_be_secret(name: str) -> bool:
    """Return whether a name ends in `key`, without an earlier word for data as in `primary_key`."""
    words = [word.lower() for word in _WORD.findall(name)]
    return words[-1:] == ["key"] and not DATA_KEYS.intersection(words)


def _is_hash_like(found: re.Match[str]) -> bool:
    return bool(_HASH.fullmatch(found[found.lastgroup or 0].strip()))


def _masked_place(found: re.Match[str]) -> str:
    return f"{found[1]}[key]"


def _is_credential(named: re.Match[str], found: re.Match[str]) -> bool:
    """Return whether the value `found` behind the name `named` is a credential.

    If the name is vague, the value must look like a credential: quoted, with digits, or random.
    """
    quoted, value, link = found["quoted"], found[found.lastgroup or 0].strip(), named["link"]
    last = _WORD.findall(named["name"])[-1].lower()
    if last in _HEADERS or _NO_VALUE.match(value):
        return False
    is_certain = last in _SURE or last == "base"
    if quoted and "," not in link and (is_certain or (last == "key" and " " not in value)):
        return True
    has_digit = len(value) >= 6 and any(map(str.isdigit, value))
    if _HASH.fullmatch(value):
        return True
    if "=" in link or named["flag"]:
        return has_digit or is_certain
    if is_certain:
        return has_digit or link == ">"
    return has_digit and _PART.search(value) is not None


def _masked_run(run: re.Match[str]) -> str:
    if known := CREDENTIAL.search(run[0]):
        begins = BEGINNING.match(run[0], known.start())
        start = begins.end() if begins else known.start()
        return f"{run[0][: start + 4]}[key]"
    part = _random_part(_without_ids(run[0]))
    places = {run.start(), run.start() + (part or 0)}
    if part is None or any(ID_NAME.search(run.string[max(0, at - 40) : at]) for at in places):
        return run[0]
    return f"{run[0][: part + 4]}[key]"


def _without_ids(run: str) -> str:
    """Replace each id in a text by as many hyphens."""
    return ID.sub(lambda found: "-" * len(found[0]), run)


def _random_part(run: str) -> int | None:
    """Return the index at which the random part of a token begins; None if nothing looks random.

    In a random part, digits are scattered and runs of letters are short. A text that is
    only one hexadecimal number is not masked, because hashes and ids are such numbers. Measured: 1
    in 20 random tokens of 30 or more characters is missed, and 1 in 10 of 20 to 29 characters. In
    the code of large packages, a token is found in 1 of 1,750 lines.
    """
    for part in _PART.finditer(run):
        pieces = _WORD.findall(part[0])
        digits, length = sum(map(str.isdigit, pieces)), len(part[0])
        most = 2.5 if digits >= 2 else 2.3
        if digits == len(pieces) or (digits < max(2, length / 10) and length > most * len(pieces)):
            continue
        if not re.fullmatch(r"[0-9a-f]+|[0-9A-F]+", part[0]) or _HASH.search(run) is None:
            return part.start()
    # Separators may divide a random text into short parts. The whole text must then have small and
    # capital letters and digits, more often than names have.
    for token in _TOKEN.finditer(run):
        pieces = _WORD.findall(token[0])
        digits, length = sum(map(str.isdigit, pieces)), sum(map(len, pieces))
        has_both = any(map(str.islower, token[0])) and any(map(str.isupper, token[0]))
        if has_both and digits >= 2 and 20 <= length <= 2.2 * len(pieces):
            return token.start()
        # In random text, two neighbours are of different kinds more often than in long names.
        changes = len(_CHANGE.findall(token[0]))
        if has_both and digits and length >= 30 and changes >= 0.4 * len(token[0]):
            return token.start()
    return None


class Random:
    """A check, for `Annotated`, that a text looks like 16 random bytes. Plain patterns are refused.

    The text must have many different steps. A step is the difference between the codes of two
    neighbouring characters. Each of 20,000 random texts (hexadecimal or base64) had 12 or more
    different steps.
    """

    LENGTH, STEPS = 22, 10
    hint = " A long text is refused as well if its characters repeat or follow a pattern."

    def holds(self, value: str) -> bool:
        """Return whether a text is long enough and has enough different steps."""
        steps = {ord(after) - ord(before) for before, after in itertools.pairwise(value)}
        return len(value) >= self.LENGTH and len(steps) >= self.STEPS
