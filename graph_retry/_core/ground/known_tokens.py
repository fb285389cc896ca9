"""Data to recognise credentials and ids: how they begin, and which words name them.

The table of beginnings comes from the public rules of gitleaks (github.com/gitleaks/gitleaks,
`config/gitleaks.toml` of 2025-11-20), and from the documentation of providers. To add a beginning,
add it to a row of the table.
"""

from __future__ import annotations

import re

from graph_retry.lossless._ground import lazy

# The rest of a credential, and the beginnings that it has.
_CREDENTIALS = {
    # Only credentials begin in this way, so anything but words in small letters may follow.
    r"(?=[\w.+/=~-]{0,40}[0-9A-Z])[\w.+/=~-]{16,}": (
        "sk-ant- sk-proj- sk-svcacct- sk-admin- sk-or-v1- sk-lf- pk-lf- AIza ya29. 1//0 GOCSPX- "
        "github_pat_ glpat- gldt- glft- glrt- glptt- glsoat- glagent- gloas- glimt- glffct- glcbt- "
        "GR1348941 dckr_pat_ dckr_oat_ sb_secret_ duffel_test_ duffel_live_ SG. EAAA "
        "sq0atp- sq0csp- pscale_tkn_ pscale_oauth_ "
        "pscale_pw_ fo1_ fm1a_ fm1r_ fm2_ ops_eyJ AGE-SECRET-KEY-1 HRKU- tk-us- PMAK- fio-u- "
        "dp.pt. dt0c01. "
        "FLWSECK_TEST- FLWSECK- glc_ glsa_ sntrys_ sntryu_ shpat_ shpca_ "
        "shppa_ shpss_ xkeysib- xsmtpsib- lsv2_pt_ lsv2_sk_ whsec_ bedrock-api-key- ABSK "
        "pypi-AgE sha256~ sm_aat_ sm_pat_ sm_sat_ doo_v1_ "
        "dop_v1_ dor_v1_ ATATT3 ATCTT3 ATBB figd_ tskey- sgp_ vercel_blob_rw_ ctx7sk-"
    ),
    # Words may begin in this way, so a long part without separators must follow.
    r"[A-Za-z0-9]{20,}[\w.+/=-]*": (
        "sk- sk_ rk_ pk_ ghp_ gho_ ghu_ ghs_ ghr_ hf_ api_org_ gsk_ xai- pplx- r8_ tvly- tvly-dev- "
        "jina_ fc- key- e2b_ pul- rubygems_ npm_ pypi- ntn_ secret_ lin_api_ NRAK- EZAK EZTK LTAI "
        "ico- rdme_ pnu_ API- p8e- AKCp cmVmd oy2 phc_ phx_ csk- fw_ sbp_ nfp_ napi_ rpa_ "
        "dapi nvapi- pcsk_ tgp_v1_ pa- co- esecret_ bb_live_ "
        "fal- AKID CLOJARS_ shippo_live_ shippo_test_ lin_oauth_ sb_publishable_"
    ),
    # Some of these have separators in any part, so all of them together must be long.
    r"(?=[\w-]{0,40}\d)(?=[\w-]{0,40}[A-Z])[\w-]{40,}": "nvapi- pcsk_ tgp_v1_ pa- jina_ npg_ fal-",
    r"(?=[\w-]{0,40}[0-9A-Z])[\w-]{20,}": "hvs. hvb. hvr.",
    # Some have a short number behind them, and then a short rest.
    r"(?=[\w-]{0,40}\d)[\w.-]{8,}": "xoxb- xoxp- xoxa- xoxr- xoxs- xoxo- xoxe- xoxe. xapp-",
    r"(?=[a-z]{0,99}[0-9A-Z])[A-Za-z0-9]{10,}": (
        "sk_test_ sk_live_ sk_prod_ rk_test_ rk_live_ rk_prod_"
    ),
    r"[0-9a-h]{12}(?![A-Za-z0-9])": "FLWSECK_TEST-",
    # The form is as certain as a beginning.
    r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}": "A3-",
    r"[0-9a-f]{24}-[0-9a-f]{146}": "v1.0-",
    r"[0-9a-f]{64}": "s-s4t2ud- s-s4t2af-",
    r"[A-Za-z0-9]{14}\.[0-9a-f]{64}": "pat",
    r"[a-z0-9]{5,30}\.[a-z0-9]{4,6}\.acc[_-][\w.=+/-]{40,}": "sc_ ext_ scauth_ authress_",
    r"[A-Z2-7]{16}(?![A-Za-z0-9])": "AKIA ASIA ABIA ACCA",
    r"[A-Z0-9][A-Z2-7]{16}(?![A-Za-z0-9])": "A3T",
    r"[0-9a-fA-F]{32}(?![A-Za-z0-9])": "SK",
    r"[\w-]{10,300}\.[\w.-]*": "eyJ",
}

CREDENTIAL = lazy(
    r"(?<![A-Za-z0-9])(?:"
    + "|".join(
        f"(?:{'|'.join(map(re.escape, beginnings.split()))}){rest}"
        for rest, beginnings in _CREDENTIALS.items()
    )
    # These are known by a mark in the middle: of Azure and of HCP Terraform.
    + r"|[\w.~]{3}\dQ~[\w.~-]{31,34}|[a-z0-9]{14}\.atlasv1\.[\w=-]{60,70})"
)
"""Matches a credential that has a known beginning, or a known mark in the middle."""

BEGINNING = lazy(
    "|".join(
        re.escape(each)
        for each in sorted({one for row in _CREDENTIALS.values() for one in row.split()}, key=len)[
            ::-1
        ]
    )
)
"""Matches the beginning of a credential."""

_IDS = (
    # OpenAI, Anthropic, OpenRouter, Mistral and others.
    "chatcmpl cmpl req resp msg rs fc call item run step thread asst file vs batch ft ftjob "
    "ftevent modr org proj user evt event conv ig ws cm ctr cntr gen upload part eval evalrun wf "
    "skill video toolu srvtoolu msgbatch container wrkspc request trace span job task embd ct lc "
    "mcp mcpl mcpr mcpc ci ou ss tool cu cuo lsh lsho apc apco rst sub completion completions "
    # Stripe and other services.
    "cus pi ch in ii price prod acct re pm seti si txn py po tr cs plink link cn dp du "
    "deployment deploy dpl build bld inv invoice order ord doc page db row rec usr team ws_ env "
    "agent assistant message response completion generation observation score dataset prompt node"
)

ID = lazy(
    r"(?<![A-Za-z0-9])(?:"
    rf"(?:{'|'.join(sorted(set(_IDS.split()), key=len, reverse=True))})(?:_[a-z]{{2,4}})?[-_]+"
    r"(?![\w-]*secret)[\w-]{6,}"
    r"|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"  # A UUID.
    r"|[0-7][0-9A-HJKMNP-TV-Z]{25}"  # A ULID.
    r"|sha(?:1|256|384|512)[-:][A-Za-z0-9+/]{20,}={0,2}"
    r"|(?:AC|SM|MM|CA|RE|PN|MG|CF|IS|CH|WK|CN|AP|BU|VA|ZS)[0-9a-f]{32}"  # Twilio's ids.
    r"|(?:AIDA|AROA|AGPA|ANPA|AIPA|ANVA|APKA|ASCA)[A-Z0-9]{16}"  # Ids of AWS, which are no secrets.
    r"|(?:[A-Za-z]*?)Root=1-[0-9a-f]{8}-[0-9a-f]{24}"
    r")(?![A-Za-z0-9])"
)
"""Matches an id of a request or an object, such as support asks for, which is no credential."""

ID_NAME = lazy(
    r"(?:\bid|[a-z]_id|-id|Id|ID|uuid|guid|etag|ETag|digest|sha\d*|[Hh]ash|fingerprint|checksum"
    r"|trace(?:parent)?|cf-ray|CF-RAY|[Rr]equest)s?(?:-\d)?"
    r"(?:[\"']\s{0,3}[:=,]|[\"']?\s{0,3}[:=#]?)\s{0,3}b?[\"'(\[]?$"
)
"""Matches the name of an id, such as `request_id: `, at the end of the text before the id."""

DATA_KEYS = frozenset(
    {"cache", "primary", "foreign", "sort", "partition", "row", "idempotency", "dedup", "object"}
    | {"deduplication", "file", "storage", "public", "group", "lookup", "index", "event", "record"}
    | {"message", "routing", "hash", "unique", "composite", "natural", "surrogate", "shard", "map"}
    | {"thread", "run", "params", "range", "translation", "etag", "cursor", "page"}
)
"""Words before `key` that name a place in data and no credential, as in `primary_key`."""
