"""Credentials are known by their shape, and masked in what errors say."""

import base64
import random
import string

import pytest

from graph_retry._core.ground.credentials import without_keys

BODY = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"

HEX = "9f86d081884c7d659a2feaa0c55ad015"

BASE62 = string.ascii_letters + string.digits
HEXADECIMAL = "0123456789abcdef"
BASE32 = string.ascii_uppercase + "234567"

# The beginning, the alphabet and the length of what providers issue.
TOKENS = [
    *(("sk-", BASE62, 48), ("sk-proj-", BASE62, 64), ("sk-ant-api03-", BASE62, 80)),
    *(("sk-or-v1-", HEXADECIMAL, 64), ("sk_live_", BASE62, 24), ("whsec_", BASE62, 32)),
    *(
        ("AIzaSy", BASE62, 33),
        ("ya29.", BASE62, 60),
        ("GOCSPX-", BASE62, 28),
        ("1//0g", BASE62, 40),
    ),
    *(("ghp_", BASE62, 36), ("github_pat_11", BASE62, 60), ("glpat-", BASE62, 20)),
    *(("hf_", BASE62, 34), ("gsk_", BASE62, 52), ("xai-", BASE62, 80), ("pplx-", BASE62, 48)),
    *(("nvapi-", BASE62, 60), ("r8_", BASE62, 37), ("tvly-", BASE62, 32), ("pcsk_", BASE62, 60)),
    *(("jina_", BASE62, 60), ("fc-", HEXADECIMAL, 32), ("dapi", HEXADECIMAL, 32)),
    *(("key-", HEXADECIMAL, 32), ("SK", HEXADECIMAL, 32), ("shpat_", HEXADECIMAL, 32)),
    *(("e2b_", HEXADECIMAL, 40), ("pul-", HEXADECIMAL, 40), ("rubygems_", HEXADECIMAL, 48)),
    *(("npm_", BASE62, 36), ("pypi-", BASE62, 80), ("dop_v1_", HEXADECIMAL, 64)),
    *(("lsv2_pt_", HEXADECIMAL, 32), ("xoxb-1234567890-", BASE62, 24), ("ntn_", BASE62, 46)),
    *(("lin_api_", BASE62, 40), ("glsa_", BASE62, 32), ("hvs.", BASE62, 90), ("SG.", BASE62, 22)),
    *(("AGE-SECRET-KEY-1", BASE32, 58), ("NRAK-", BASE32, 27), ("", BASE62, 40)),
    *(("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.", BASE62, 43), ("bot1234567890:AA", BASE62, 33)),
    *(("https://hooks.slack.com/services/T024FQG21/B07ABCDEF12/", BASE62, 24),),
]

NAMED = [
    ("x-api-key: {}", BODY),
    ("X-Goog-Api-Key: {}", BODY),
    ("api-key={}", BODY),
    ("OPENAI_API_KEY={}", BODY),
    ("AWS_SECRET_ACCESS_KEY={}", BODY),
    ("access_token={}", BODY),
    ("&refresh_token={}&n=1", BODY),
    ("client_secret={}", "correcthorse"),
    ("password={}", "correcthorse"),
    ("pwd={};", "hunter22"),
    ('{{"password": "{}"}}', "correct horse"),
    ("{{'api_key': '{}'}}", "correcthorse"),
    ("Authorization: Bearer {}", "abc.def.gh1-jkl"),
    ("Authorization: Basic {}", "dXNlcjpwYXNzd29yZA=="),
    ("'authorization': 'Token {}'", "abcdef0123456"),
    ("sent Bearer {} to it", "abcdefghij0123"),
    ("sent Basic {}, got 401", "dXNlcjpwYXNz"),
    ("https://user:{}@host/v1", "pass"),
    ("postgresql://ada:{}@db:5432/x", "p4ss-word"),
    ("GET /v1?n=1&token={}", "abcdef123"),
    ("https://a.blob/x?sig={}", "abc%2Bdef123"),
    ("GET /b?n=1&X-Amz-Signature={}", HEX),
    ("Client(api_key='{}', timeout=3)", BODY),
    ('password="{}"', "correct horse"),
    ('{{"token": "{}"}}', BODY),
    ("{{'secret': '{}'}}", BODY),
    ("AccountName=x;AccountKey={}", f"{BODY}=="),
    ("SharedAccessKeyName=n;SharedAccessKey={}", f"{BODY}="),
    ("Cookie: {}", f"session={BODY}; theme=dark"),
    ("{{'set-cookie': '{}'}}", f"sid={BODY}; Path=/"),
    ("https://h/x?X-Goog-Signature={}", HEX),
    ('{{"SecretAccessKey": "{}"}}', BODY),
    ('{{"openaiApiKey": "{}"}}', BODY),
    ('{{"dbPassword": "{}"}}', "correct horse"),
    ('"{{\\"password\\": \\"{}\\"}}"', "correct horse"),
    ("[('x-api-key', '{}')]", BODY),
    ("(b'api-key', b'{}')", BODY),
    ("'x-goog-api-key': ['{}']", BODY),
    ("PGPASSWORD={}", "correcthorse"),
    ("DB_PASS={}", "correcthorse"),
    ("JWT_SECRET={}", "correcthorse"),
    ("SECRET_KEY_BASE={}", BODY),
    ("mysql --password {} -h db", "hunter22"),
    ("['mysql', '--password', '{}']", "hunter22"),
    ("Authorization: ApiKey {}", BODY),
    ("Authorization: Digest {}", f'username="ada", response="{HEX}"'),
    ("{{'Authorization': b'Bearer {}'}}", "abc.def.gh1-jkl"),
    ("authorization=Bearer%20{}", "abc.def.gh1jkl"),
    ("BEARER {}", BODY),
    ("Token token={}", BODY),
    ("<password>{}</password>", "hunter22"),
    ("postgresql://ada:{}@db:5432/x", "p@ss"),
    ("aws_session_token = {}", BODY),
    ("X-Auth-Key: {}", "c2547eb745079dac9320b638f5e225cf483cc5cfdda41"),
    ("X-Auth-Token: {}", BODY),
    ("https://{}@github.com/x/y.git", "ghp1234567890"),
    ("curl -u ada:{} https://h", "hunter22"),
    ("machine h login ada password {}", "hunter22"),
    ("secret: '{}'", "correct horse"),
    ("Authorization: SSWS {}", "00abcDEF123"),
    ("Ocp-Apim-Subscription-Key: {}", HEX + "g1h2"),
    ("spring.datasource.password={}", "correcthorse"),
    ("  encryption_key => '{}'", "correcthorse"),
    ("$env:SERVICE_SECRET = '{}'", "correcthorse"),
    ("curl --auth {} https://h", "ada:hunter22"),
    ("http --auth {} GET https://h", BODY),
    ("api_key: >-\n  {}\nregion: eu", BODY),
    ("password: |\n  {}\nuser: ada", "correct-Horse7\n  second line"),
    ('pwd := "{}"', "correcthorse"),
]

LETTERS, URL_SAFE = string.ascii_letters, BASE62 + "-_"

# What the gitleaks rules and the documentation of providers give for these.
KNOWN = [
    *(("hf_", LETTERS, 34), ("glpat-", URL_SAFE, 20), ("dckr_pat_", URL_SAFE, 27)),
    *(("GOCSPX-", URL_SAFE, 28), ("sb_secret_", URL_SAFE, 31), ("AIzaSy", URL_SAFE, 33)),
    *(("AKIA", BASE32, 16), ("sk-ant-api03-", URL_SAFE, 93), ("sk-proj-", URL_SAFE, 120)),
    *(("hvs.", URL_SAFE, 90), ("tgp_v1_", URL_SAFE, 43), ("nvapi-", URL_SAFE, 64)),
    *(("figd_", URL_SAFE, 40), ("pcsk_", URL_SAFE, 70), ("npm_", LETTERS, 36)),
    *(("gsk_", LETTERS, 52), ("ATATT3", URL_SAFE, 180), ("sbp_", HEXADECIMAL, 40)),
    *(("sk-", HEXADECIMAL, 32), ("tskey-auth-", BASE62, 30), ("fw_", BASE62, 24)),
    *(("sk-lf-123e4567-e89b-", HEXADECIMAL, 20), ("pk-lf-123e4567-e89b-", HEXADECIMAL, 20)),
    *(("csk-", LETTERS.lower(), 48), ("ghp_", LETTERS, 36), ("xoxp-", string.digits, 36)),
]

IDS = [
    "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12",
    "req_011CQeu4nL4AWbX2a2Fd8T1x",
    "toolu_01A09q90qw90lq917835lq9",
    "resp_67ccd3a9da748190baa7f1570fe91ac604becb25c45c1d41",
    "msg_01XFDUDYJgAACzvnptvVoYEL",
    "call_12xyzABCdefGHI34jklMNO56",
    "call_FthC9qRpsL5kBpwwyw6c7j4k",
    "run_abc123XYZdef456GHIjkl",
    "thread_abcDEF123ghiJKL456mnoPQ",
    "asst_abcDEF123ghiJKL456mnoPQr",
    "file-abc123DEF456ghi789JKL0",
    "vs_67b0F1c2aB3d4E5f6G7h8",
    "batch_67b0f1c2aB3d4E5f6G7h8i9",
    "ftjob-abc123DEF456ghi789JKL0",
    "modr-AB8CjOTu2jiq12hp1AQPfeqFWaORR",
    "gen-1732900000-AbCdEfGhIjKlMnOpQrSt",
    "srvtoolu_01WYG3ziw53XMcoyKL4XcZmE",
    "msgbatch_013Zva2CMHLNnXjNJJKqJ2EF",
    "cus_NffrFeUfNV2Hib",
    "pi_3MtwBwLkdIwHu7ix28a3tqPa",
    "evt_1NG8Du2eZvKYlo2CUI79vXWy",
    "ACa1b2c3d4e5f60718293a4b5c6d7e8f90",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "123e4567-e89b-12d3-a456-426614174000",
    "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "x-request-id: AbC1dEf2GhI3jKl4MnO5pQr6",
    "request_id=7aX9bQ2mZ4kL8vN1cR5tY0wE",
    "x-amzn-trace-id: Root=1-67891233-abcdef012345678912345678",
    "cf-ray: 8f1a2b3c4d5e6f70-FRA",
    "lc_run--019a1b2c-3d4e-7f56-8a9b-0c1d2e3f4a5b-0",
    "idempotency-key: 9f86d081884c7d659a2feaa0c55ad015",
    "cache_key=9f86d081884c7d659a2feaa0c55ad0159f86d081884c7d659a2feaa0c55ad015",
    "sha512-AbCdEf1GhIjK2lMnOpQ3rStUvWx4yZaBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789abcdefgh==",
    "rs_68af4030baa48193b0b43b4c2a176a1a0e6967589f080e78",
    "ig_67cc2bd70fec8190b7e0c1d2e3f4a5b6",
    "fc_67ca09c6bedc8190a7abfec07b1a1332",
    "conv_689667905b048191b4740501625afd940c7533ace33a2dab",
    "gpt-4o-mini-2024-07-18 and claude-3-5-sonnet-20241022",
    "ft:gpt-4o-mini-2024-07-18:acme::9aBcDeFg",
    "pydantic_core-2.41.5-cp313-cp313-manylinux_2_17_x86_64.manylinux2014_x86_64.whl",
    "web-7d4b9c6f5d-x2x9k",
    "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0",
    "AROAEXAMPLEID1234567",
    "projects/p-1/locations/europe-west4/endpoints/1234567890123456789",
    "/usr/lib/python3.11/site-packages/langgraph/pregel/_retry.py",
    "traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
    "commit 420a0f55f4a7a03dfe701ceb1f4f66a7c68b26b4",
    "org-AbCdEfGhIjKlMnOpQrStUvWx in organization",
    "proj_AbCdEfGhIjKlMnOpQrStUv12",
    "user-AbCdEfGhIjKlMnOpQrStUv12",
    "item_1234AbCdEfGhIjKlMnOp5678",
    "cmpl-7QmVI15qgYVllxK0FtxVGG6ywfzaq",
    "chatcmpl-tool-3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c",
    "sess_68af4030baa48193b0b43b4c2a176a1a",
    "event_9aBcDeFgHiJkLmNoPqRsT",
    "step_abcDEF123ghiJKL456mnoPQr",
    "in_1MtHbELkdIwHu7ixl4OzzPMv",
    "SM1a2b3c4d5e6f7081920a1b2c3d4e5f60",
    "trace_id: 4bf92f3577b34da6a3ce929d0e0e4736",
    "x-ms-request-id: 5f0e9c1d-7a2b-4c3d-8e9f-0a1b2c3d4e5f",
    "apim-request-id: 1f6e4c1c-1f6e-4c1c-9f6e-4c1c1f6e4c1c",
    "projects/123/locations/us-central1/reasoningEngines/4567890123456789012",
    "mcp_68af4030baa48193b0b43b4c2a176a1a0e6967589f080e78",
    "checkpoint_id=1f0cb9f2-3c4d-6e5f-8001-2a3b4c5d6e7f",
    "ws_67ccf18f64008190a39b619f4c8455ef087bb177ab789d5c",
    "x-goog-request-id: 01jabcde2f3g4h5j6k7m8n9p0q",
]

HARMLESS = [
    "the risk-free-return-of-capital is low",
    "sk-learn-compatible-estimators-and-pipelines",
    "the pk-2024-annual-report-of-the-bank",
    "no bearer of bad news; a token=3 here",
    "Bearer authentication is required",
    "Basic Authentication and Basic information",
    "password: required",
    "api_key: Field required",
    "API key: missing. Set one.",
    "Unexpected token: identifier_expected_here1",
    "max_tokens: 4096000",
    "key=value",
    "a key-value store, fc-24 and SKU4711",
    '{"token": "identifier", "secret": true}',
    "the cookie: it was missing; Cookie: none",
    "AccountKey=missing",
    "1//0 is no number",
    "lin_api_v2 and ntn_page of hvs.example",
    "http://127.0.0.1:8000/items@latest",
    "at 12:30 write to ada@example.org",
    "hf_hub and gsk_x",
    "--auth basic or --auth required",
    "description: >-\n  a long text about the invoice",
    "secret: |\n  to be given by the user",
    "the primary key: customer_0001",
    "gsk_annual_report_2024 and pk_test_results_id",
    "xai-explainable-ai-methods-survey",
    "jina_embeddings_v3_text_matching_finetuned",
    "nvapi-documentation-overview, xapp-framework-overview, tvly-documentation-search",
    "pypi-attestations-and-other-packages-list",
    "r8_unorm_srgb_texture_format",
    "sk-learn-2024-internationalization",
    "ntn_notification_handler_for_workspace",
    "GET /items?key=customer_name&n=1 and /search?code=E12345",
    "pwd=/home/ada/projects",
    "Client(api_key=NOT_GIVEN), or api_key='YOUR_API_KEY'",
    "missing fields ['api-key', 'authorization', 'secret-key']",
    f"sha256:{HEX}{HEX} of 123e4567-e89b-12d3-a456-426614174000",
    "claude-sonnet-4-5-20250929, accounts/fireworks/models/llama-v3p1-405b-instruct",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "credentials = load_credentials(profile), token = tokens[index].value_of_1",
    "botocore.exceptions.NoCredentialsError: Unable to locate credentials",
    "PydanticDeprecatedSince211, LegacyBase64Encoder and IPv6InterfaceError",
    "the sort_key: customer_000000000000001, foreign key: order_20261123_000001",
    "thread 123e4567-e89b-12d3-a456-426614174000 at 2026-11-23T22:01:17.123456+00:00",
    "the secretary's key_findings: 3, token_count: 123456",
]


@pytest.mark.parametrize(("beginning", "alphabet", "length"), TOKENS)
def test_a_token_is_known_by_its_look(beginning, alphabet, length):
    """Hardly any of a hundred stay readable; the beginning of each does."""
    draw = random.Random(beginning)
    shown = 0
    for _ in range(100):
        body = "".join(draw.choices(alphabet, k=length))
        masked = without_keys(f"Incorrect key: {beginning}{body} (401)")
        assert masked.startswith(f"Incorrect key: {beginning[:4]}")
        shown += body[8:] in masked
    assert shown <= (10 if length >= 30 else 15)


def test_a_private_key_is_masked():
    """What stands between its two lines goes, whatever it is."""
    text = f"-----BEGIN EC PRIVATE KEY-----\nDEK-Info: A-1\n{BODY}\n-----END EC PRIVATE KEY-----"
    assert BODY not in without_keys(text)


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_credential_is_known_by_what_stands_before_it(text, value):
    """A header, a query, a DSN, JSON: the name stays and tells what was masked."""
    assert without_keys(text.format(value)) == text.format("[key]")


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_words_stay(text):
    """An error must still say what is wrong."""
    assert without_keys(text) == text


@pytest.mark.parametrize(
    "place", ["{}", "failed (request: {})", "GET /v1/x/{} 404", '{{"id": "{}"}}']
)
@pytest.mark.parametrize("text", IDS)
def test_an_id_that_support_asks_for_stays(text, place):
    """Ids of requests, objects, traces and files are no credentials, whatever they look like."""
    assert without_keys(place.format(text)) == place.format(text)


@pytest.mark.parametrize(("beginning", "alphabet", "length"), KNOWN)
def test_a_known_beginning_is_enough(beginning, alphabet, length):
    """Letters only, or separators anywhere: none of a hundred stays readable."""
    draw = random.Random(beginning)
    for _ in range(100):
        body = "".join(draw.choices(alphabet, k=length))
        for place in ("Incorrect key: {} (401)", "GET /v1?k={}&n=1", "{}"):
            masked = without_keys(place.format(beginning + body))
            assert body[8:] not in masked
            assert beginning[:4] in masked


@pytest.mark.parametrize("length", [32, 43, 64])
def test_separators_do_not_hide_a_token_without_a_known_beginning(length):
    """The measure is taken over the whole token."""
    draw, shown = random.Random(length), 0
    for _ in range(200):
        body = "".join(draw.choices(URL_SAFE, k=length))
        shown += body[8:] in without_keys(f"Incorrect key: {body} (401)")
    assert shown <= (14 if length < 40 else 8)


@pytest.mark.parametrize("digits", [HEX, "abcdef" * 6, HEX.upper(), HEX * 2])
@pytest.mark.parametrize(
    "place",
    ["x-rapidapi-key: {}", "DEEPGRAM_KEY={}", "/v1?key={}&n=1", "weather key: {}", "appKey: '{}'",
     "api_key={}", "HELICONE_KEY: {}"],
)  # fmt: skip
def test_hexadecimal_digits_after_a_name_that_says_key_are_masked(place, digits):
    """A hash after the name of a key of data stays; see `IDS`."""
    assert without_keys(place.format(digits)) == place.format("[key]")


@pytest.mark.parametrize(
    "piece",
    ["sk-", "eyJ-", "password:", "Bearer ", "api_", "://", "cookie:", "'token':", "1:AA", "--"],
)
@pytest.mark.slow
def test_a_long_text_is_read_in_linear_time(piece):
    """Quadratic time would be hours here."""
    assert len(without_keys(piece * (100_000 // len(piece)))) > 1_000


@pytest.mark.parametrize(("size", "most"), [(24, 5), (32, 2), (48, 1)])
def test_few_random_tokens_without_a_known_beginning_stay_readable(size, most):
    """The changes between kinds of characters are measured over the whole token."""
    draws = random.Random(size)
    tokens = [
        base64.urlsafe_b64encode(draws.randbytes(size)).decode().rstrip("=") for _ in range(400)
    ]
    readable = [token for token in tokens if token in without_keys(f"no user for {token} here")]
    assert len(readable) * 100 < most * len(tokens)


@pytest.mark.parametrize(
    "name",
    [
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-NVFP4",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "BetaClearToolUses20250919EditResponse",
        "convertFontInfoValueForAttributeFromVersion1ToVersion2",
    ],
)
def test_a_long_name_is_no_token(name):
    """Models and classes are asked for by support."""
    assert without_keys(f"`{name}` is not known") == f"`{name}` is not known"
