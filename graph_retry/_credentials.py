"""Know credentials by their shape: mask them in error texts, and warn of them in params.

The one maintained rule set in Python, detect-secrets, brings `requests` and `pyyaml` and knows none
of the model providers' newer keys, so the shapes are here, and a test has a row for each.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping
from typing import Any

from graph_retry._issues import pointer
from graph_retry._json import is_array, is_object

_LOG = logging.getLogger("graph_retry.params")

_TOKENS = (
    r"(?:sk|pk|rk|pa)-(?=[\w-]{0,80}\d)(?=[\w-]{0,40}[A-Za-z0-9]{12})[\w-]{16,}",  # OpenAI and more
    r"(?:sk|pk|rk)_(?:live|test)_\w{8,}",  # Stripe
    r"sk_[a-f0-9]{40,}",  # ElevenLabs
    r"csk-[a-z0-9]{30,}",  # Cerebras
    r"whsec_\w{16,}",
    r"AIza[\w-]{30,}",  # Google
    r"(?:AQ|ya29)\.[\w-]{20,}",
    r"GOCSPX-[\w-]{16,}",
    r"1//0[\w-]{30,}",
    r"(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
    r"ABSK[A-Za-z0-9+/]{60,}={0,2}",
    r"bedrock-api-key-[\w+/=-]{30,}",
    r"gh[pousr]_\w{30,}",  # GitHub
    r"github_pat_\w{20,}",
    r"gl(?:pat|rt|dt|ptt)-[\w-]{16,}",  # GitLab
    r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"gsk_\w{16,}",  # Groq
    r"xai-[\w-]{16,}",
    r"pplx-\w{16,}",  # Perplexity
    r"nvapi-[\w-]{16,}",
    r"r8_\w{16,}",  # Replicate
    r"fw_[A-Za-z0-9]{16,}",  # Fireworks
    r"tgp_v1_[\w-]{16,}",  # Together
    r"tvly-[\w-]{16,}",  # Tavily
    r"pcsk_\w{16,}",  # Pinecone
    r"jina_\w{30,}",
    r"fc-[a-f0-9]{32}\b",  # Firecrawl
    r"bce-v3/ALTAK-[\w/-]{20,}",  # Baidu
    r"LTAI[A-Za-z0-9]{16,}",  # Alibaba
    r"[a-f0-9]{32}\.[A-Za-z0-9]{16}\b",  # Zhipu
    r"dapi[a-f0-9]{32}\b",  # Databricks
    r"vck_\w{30,}",  # Vercel
    r"sb_secret_[\w-]{20,}",  # Supabase
    r"sbp_[a-f0-9]{30,}",
    r"wandb_v1_\w{30,}",
    r"lsv2_(?:pt|sk)_\w{16,}",  # LangSmith
    r"xox[abeoprs]-[\w-]{10,}",  # Slack
    r"xapp-[\w-]{10,}",
    r"(?:bot)?\d{8,10}:AA[\w-]{30,}",  # Telegram
    r"ntn_\w{30,}",  # Notion
    r"lin_(?:api|oauth)_\w{30,}",  # Linear
    r"figd_[\w-]{30,}",
    r"ATATT3[\w=-]{30,}",  # Atlassian
    r"pat-(?:na|eu)\d-[a-f0-9-]{36}",  # HubSpot
    r"shp(?:at|ca|pa|ss)_[a-f0-9]{32}",  # Shopify
    r"SK[a-f0-9]{32}\b",  # Twilio
    r"key-[a-f0-9]{32}\b",  # Mailgun
    r"glsa_\w{30,}",  # Grafana
    r"sntry[su]_[\w+/=-]{30,}",  # Sentry
    r"phx_\w{30,}",  # PostHog
    r"hv[sb]\.[\w-]{20,}",  # Vault
    r"dckr_pat_[\w-]{20,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[\w-]{30,}",
    r"dop_v1_[a-f0-9]{30,}",  # DigitalOcean
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"eyJ[\w-]{10,2000}\.[\w-]{10,}\.[\w-]*",  # a JSON Web Token
)
"""What a provider's token looks like, by its beginning."""

_PRIVATE_KEY = r"-----BEGIN [A-Z ]*PRIVATE KEY-----[^-]*(?:-----END [A-Z ]*PRIVATE KEY-----)?"
_LONG = r"(?=[\w.:/+=-]{15})"  # most words are passed over by it
_TOKEN = re.compile(rf"\b{_LONG}(?:{'|'.join(_TOKENS)})|{_PRIVATE_KEY}")

_NAMES = (
    r"(?<![A-Za-z0-9])(?:api[ _-]?key|(?:secret|access|private|subscription)[ _-]?key|"
    r"(?:access|refresh|auth|id|session|bearer|bot)[_-]?token|client[_-]?secret|"
    r"password|passwd|passphrase|pwd)"
)
_QUERY = r"key|token|secret|sig|signature|auth|code|x-amz-(?:signature|security-token)"
_HEADER = r"\bauthorization[\"']?\s*[:=]"

_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # In a query, a form or a DSN; in JSON or a repr; in a header, where a word alone is prose.
        rf"((?:[?&](?:{_QUERY})|{_NAMES})=)[^\s&\"',;]{{6,}}",
        r"((?:AccountKey|SharedAccessKey)=)[^\s\"',;]{20,}",
        rf"({_NAMES}[\"']?\s{{0,5}}[:=]\s{{0,5}}[\"'])[^\"']{{4,}}",
        r"([\"'](?:token|secret)[\"']\s{0,5}:\s{0,5}[\"'])(?=[^\s\"']{0,200}\d)[^\s\"']{16,}",
        rf"({_NAMES}\s*:\s*)(?=[^\s\"',;]{{0,200}}\d)[^\s\"',;]{{6,}}",
        r"(\b(?:set-)?cookie[\"']?\s{0,5}:\s{0,5}[\"']?)(?=[\w.-]{1,80}=)[^\r\n\"']{8,}",
        rf"({_HEADER}\s*[\"']?(?:(?:basic|bearer|token)\s+)?)(?=\S{{0,200}}[\d=])[^\s\"',;]{{8,}}",
    )
)
_SCHEMES = (
    re.compile(r"(\bBearer )(?=[^\s\"',;]{0,200}\d|[^\s\"',;]{24})[^\s\"',;]{8,}"),
    re.compile(r"(\bBasic )(?=[A-Za-z0-9+/]{0,200}(?:[0-9=]|[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2}"),
    re.compile(r"(://[^\s/:@]{0,100}:)[^\s/@]{1,200}(?=@)"),
)

_FIELD = re.compile(rf"(?:.*[_-])?(?:{_NAMES}|secret)|token|authorization|credentials?")

_LOOKED_AT = 10_000
"""Characters of a param that are looked at."""

_MAX_TOLD = 1_000
_told: set[tuple[str, str]] = set()


def without_keys(text: str) -> str:
    """Mask what has the shape of a credential: errors quote requests, and requests hold keys.

    Example:
        >>> without_keys("401 for https://ada:secret@host/v1?key=AIzaSyA-1234567890abcdefghijklmno")
        '401 for https://ada:[key]@host/v1?key=[key]'
    """
    for pattern in (*_SCHEMES, *_NAMED):
        text = pattern.sub(r"\1[key]", text)
    return _TOKEN.sub("[key]", text)


def warn_of_credentials(name: str, params: Mapping[str, Any]) -> None:
    """Log a warning for each field of a call's params that looks like a credential, once each."""
    for path in _suspects(params, ()):
        if (name, path) not in _told and len(_told) < _MAX_TOLD:
            _told.add((name, path))
            _LOG.warning(
                "the param `%s` of `%s` looks like a credential: params are saved with the thread "
                "and shown to reviewers, so capture it in the function instead",
                path,
                name,
            )


def _suspects(value: Any, path: tuple[Any, ...]) -> Iterator[str]:
    """Yield the paths of texts that look like a credential, by their name or by themselves."""
    if isinstance(value, str):
        named = next((part for part in reversed(path) if isinstance(part, str)), "")
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", named).lower()
        beginning = value[:_LOOKED_AT]
        if value and (_FIELD.fullmatch(words) or without_keys(beginning) != beginning):
            yield pointer(path)
    elif is_object(value) or is_array(value):
        for key, item in value.items() if is_object(value) else enumerate(value):
            yield from _suspects(item, (*path, key))
