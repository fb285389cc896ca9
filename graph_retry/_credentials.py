"""Know credentials by their shape, and mask them in texts of errors.

The one maintained rule set in Python, detect-secrets, brings `requests` and `pyyaml` and knows none
of the model providers' newer keys, so the shapes are here, and a test has a row for each.
"""

from __future__ import annotations

import re

_TOKENS = (
    # OpenAI and more; a run of letters and digits tells it from words with hyphens.
    r"(?:sk|pk|rk|pa)-(?=[\w-]{0,40}(?=[A-Za-z]{0,30}\d)[A-Za-z0-9]{12})[\w-]{16,}",
    r"(?:sk|pk|rk)_(?:live|test)_[A-Za-z0-9]{16,}",  # Stripe
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
    r"gl(?:pat|rtr?|dt|ptt|oas|soat|cbt|imt|ft|agent|ffct|wt)-[\w.-]{16,}",  # GitLab
    r"hf_[A-Za-z0-9]{16,}",  # Hugging Face
    r"gsk_[A-Za-z0-9]{16,}",  # Groq
    r"xai-[A-Za-z0-9]{16,}",
    r"pplx-[A-Za-z0-9]{16,}",  # Perplexity
    r"nvapi-(?=[\w-]{0,40}\d)[\w-]{16,}",
    r"r8_[A-Za-z0-9]{16,}",  # Replicate
    r"fw_[A-Za-z0-9]{16,}",  # Fireworks
    r"tgp_v1_[\w-]{16,}",  # Together
    r"tvly-(?=[\w-]{0,40}\d)[\w-]{16,}",  # Tavily
    r"pcsk_\w{16,}",  # Pinecone
    r"jina_[A-Za-z0-9]{30,}",
    r"fc-[a-f0-9]{32}\b",  # Firecrawl
    r"bce-v3/ALTAK-[\w/-]{20,}",  # Baidu
    r"LTAI[A-Za-z0-9]{16,}",  # Alibaba
    r"[a-f0-9]{32}\.[A-Za-z0-9]{16}\b",  # Zhipu
    r"dapi[a-f0-9]{32}\b",  # Databricks
    r"vc[a-z]_[A-Za-z0-9]{24,}",  # Vercel
    r"sb_secret_[\w-]{20,}",  # Supabase
    r"sbp_[a-f0-9]{30,}",
    r"wandb_v1_(?=\w{0,80}\d)\w{30,}",
    r"lsv2_(?:pt|sk)_\w{16,}",  # LangSmith
    r"(?:xoxe\.)?xox[abeoprs]-[\w-]{10,}",  # Slack
    r"(?:xapp|xwfp)-(?=[\w-]{0,40}\d)[\w-]{10,}",
    r"(?:bot)?\d{8,10}:AA[\w-]{30,}",  # Telegram
    r"ntn_[A-Za-z0-9]{30,}",  # Notion
    r"lin_(?:api|oauth)_[A-Za-z0-9]{30,}",  # Linear
    r"figd_[\w-]{30,}",
    r"ATATT3[\w=-]{30,}",  # Atlassian
    r"pat-(?:na|eu)\d-[a-f0-9-]{36}",  # HubSpot
    r"shp(?:at|ca|pa|ss)_[a-f0-9]{32}",  # Shopify
    r"SK[a-f0-9]{32}\b",  # Twilio
    r"key-[a-f0-9]{32}\b",  # Mailgun
    r"glsa_\w{30,}",  # Grafana
    r"sntry[su]_[\w+/=-]{30,}",  # Sentry
    r"phx_[A-Za-z0-9]{30,}",  # PostHog
    r"hv[sb]\.[\w-]{20,}",  # Vault
    r"dckr_pat_[\w-]{20,}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{40,}",
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-(?=[\w-]{0,40}\d)[\w-]{30,}",
    r"dop_v1_[a-f0-9]{30,}",  # DigitalOcean
    r"SG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    r"e2b_[a-f0-9]{40}",
    r"napi_[A-Za-z0-9]{40,}",  # Neon
    r"pscale_(?:tkn|pw|oauth)_[\w.-]{30,}",  # PlanetScale
    r"rnd_[A-Za-z0-9]{24,}",  # Render
    r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{30,}",  # Doppler
    r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}",  # Postman
    r"NRAK-[A-Z0-9]{27}",  # New Relic
    r"dt0[a-z]\d\d\.[A-Za-z0-9]{24}\.[A-Za-z0-9]{64}",  # Dynatrace
    r"xkeysib-[a-f0-9]{64}-\w{16}",  # Brevo
    r"re_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}",  # Resend
    r"pul-[a-f0-9]{40}",  # Pulumi
    r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}",  # Terraform
    r"rubygems_[a-f0-9]{48}",
    r"sgp_(?:[a-f0-9]{16}_)?[a-f0-9]{40}",  # Sourcegraph
    r"tskey-[a-z]{2,12}-[\w-]{20,}",  # Tailscale
    r"sk\.eyJ[\w-]{10,2000}\.[\w-]{16,}",  # Mapbox
    r"CFPAT-[\w-]{43}",  # Contentful
    r"llx-[A-Za-z0-9]{30,}",  # LlamaCloud
    r"HRKU-AA[\w-]{50,}",  # Heroku
    r"fm[12][a-z]?_[A-Za-z0-9+/=]{50,}",  # Fly
    r"ops_eyJ[\w-]{20,}",  # 1Password
    r"pat[A-Za-z0-9]{14}\.[a-f0-9]{64}",  # Airtable
    r"(?:[MNO][A-Za-z0-9]{3}){6}[\w-]{0,4}\.[\w-]{6}\.[\w-]{27,}",  # Discord
    r"[\w~]{3}\dQ~[\w.~-]{31,}",  # Azure
    r"a[ks]-(?=[A-Za-z]{0,20}\d)[A-Za-z0-9]{22}\b",  # Modal
    r"bb_(?:live|test)_[\w-]{24,}",  # Browserbase
    r"sq0(?:atp|csp)-[\w-]{22,}",  # Square
    r"[a-f0-9]{32}-us\d{1,2}\b",  # Mailchimp
    r"AKCp[A-Za-z0-9]{60,}",  # Artifactory
    r"v[1-4]\.(?:local|public)\.[\w-]{32,}",  # PASETO
    r"eyJ[\w-]{10,2000}\.(?:[\w-]{10,}\.[\w-]*|[\w-]*(?:\.[\w-]{8,}){3})",  # a JSON Web Token
)
"""What a provider's token looks like, by its beginning."""

_PRIVATE_KEY = (
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-(?!----))*"
    r"(?:-----END [A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?-----)?"
)
_LONG = r"(?=[\w.:/+=~-]{15})"  # most words are passed over by it
_TOKEN = re.compile(rf"\b{_LONG}(?:{'|'.join(_TOKENS)})|{_PRIVATE_KEY}")

NAMES = (
    r"(?:\b|(?<=_)|(?-i:(?=[A-Z])))"  # a word of its own, also in camel case
    r"(?:api[ _-]?key|"
    r"(?:secret|access|private|subscription|encryption|signing|master)[ _-]?"
    r"(?:access[ _-]?)?key(?:[_-]?base)?|"
    r"(?:access|refresh|auth|id|session|bearer|bot)[_-]?token|"
    r"(?:client|app|consumer|webhook|jwt|shared|signing|session|hmac)[_-]?secret|"
    r"(?:db|smtp|user|mail|redis|ftp|admin|mysql)_?pass|"
    r"password|passwd|passphrase|pwd(?!=[/~]))"
)
"""What fields that keep a credential are called."""

_QUERY = r"token|secret|sig|signature|x-(?:amz|goog)-(?:signature|security-token)"
_HEADER = r"\bauthorization[\"']?\s*[:=]\s*(?:b?[\"'])?"
_SCHEME = r"(?:(?:basic|bearer|token|api-?key|key|negotiate)(?:\s+|%20))?"
_WEBHOOKS = (
    r"hooks\.slack\.com/(?:services|workflows|triggers)|hooks\.zapier\.com/hooks/catch|"
    r"discord(?:app)?\.com/api(?:/v\d+)?/webhooks|[\w-]{1,80}\.webhook\.office\.com/webhookb2"
)
_NO_VALUE = r"(?!not_given|your[_-]|secretstr|\*\*\*|<)"
"""What stands in examples and in the printed form of settings instead of a credential."""

_QUOTE = r"\\{0,4}[\"']"  # JSON in JSON has backslashes before it
_DIGIT = r"(?=[^\s\"',;]{0,200}\d)"

_FLAG = r"--[\w-]{0,40}(?:password|passwd|token|key|secret)(?:=|\s+|[\"'],\s*[\"'])"
_PAIR = r"[\"'](?:[\w-]{0,40}-(?:key|token)|authorization)[\"'],\s*b?[\"']"
_QUOTED = r"[^\"']{4,}?(?=\\{0,4}[\"']|\Z)"

_NAMED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # In a query, a form or a DSN; in JSON or a repr; in a header, where a word alone is prose.
        rf"((?:[?&](?:{_QUERY})|{NAMES})=){_NO_VALUE}[^\s&\"',;]{{6,}}",
        r"([?&](?:key|code|auth)=)(?=[^\s&\"',;]{0,200}\d)[^\s&\"',;]{8,}",
        rf"(\btoken=[\"']?){_DIGIT}[\w.-]{{20,}}",
        r"((?:AccountKey|SharedAccessKey)=)[^\s\"',;]{20,}",
        rf"({NAMES}(?:{_QUOTE})?\s{{0,5}}[:=]\s{{0,5}}\[?b?{_QUOTE}){_NO_VALUE}{_QUOTED}",
        rf"({_QUOTE}(?:token|secret){_QUOTE}\s{{0,5}}:\s{{0,5}}{_QUOTE}){_DIGIT}[^\s\"'\\]{{16,}}",
        rf"({NAMES}\s*:\s*){_DIGIT}[^\s\"',;]{{6,}}",
        rf"(<{NAMES}>)[^<\s]{{4,}}",
        # An argument of a command; a header as a pair.
        rf"({_FLAG}){_DIGIT}[^\s\"',]{{6,}}",
        rf"({_PAIR}){_DIGIT}[^\s\"']{{12,}}",
        r"(\b(?:set-)?cookie[\"']?\s{0,5}:\s{0,5}[\"']?)(?=[\w.-]{1,80}=)[^\r\n\"']{8,}",
        rf"({_HEADER}(?:digest|aws4[\w-]{{0,20}})\s+)[^\r\n]{{8,}}",
        rf"({_HEADER}{_SCHEME})(?=\S{{0,200}}[\d=])[^\s\"',;]{{8,}}",
        rf"(\bhttps://(?:{_WEBHOOKS})/)[^\s\"'<>]{{8,}}",
    )
)
_SCHEMES = (
    re.compile(r"(\b(?i:bearer) )(?=[^\s\"',;]{0,200}\d|[^\s\"',;]{24})[^\s\"',;]{8,}"),
    re.compile(r"(\bBasic )(?=[A-Za-z0-9+/]{0,200}(?:[0-9=]|[a-z][A-Z]))[A-Za-z0-9+/]{8,}={0,2}"),
    re.compile(r"(://[^\s/:@]{0,100}:)[^\s/]{1,200}(?=@)"),
)


def without_keys(text: str) -> str:
    """Mask what has the shape of a credential: errors quote requests, and requests hold keys.

    Example:
        >>> without_keys("401 for https://ada:secret@host/v1?key=AIzaSyA-1234567890abcdefghijklmno")
        '401 for https://ada:[key]@host/v1?key=[key]'
    """
    for pattern in (*_SCHEMES, *_NAMED):
        text = pattern.sub(r"\1[key]", text)
    return _TOKEN.sub("[key]", text)
