"""Credentials are known by their shape, and masked in what errors say."""

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
    "text", ["chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12", "req_011CQeu4nL4AWbX2a2Fd8T1x"]
)
def test_an_id_that_looks_like_a_key_stays_recognisable(text):
    """Who looks for the request finds it by its beginning."""
    assert without_keys(text).removesuffix("[key]") == text[: len(without_keys(text)) - 5]
    assert len(without_keys(text)) > 12


@pytest.mark.parametrize(
    "piece",
    ["sk-", "eyJ-", "password:", "Bearer ", "api_", "://", "cookie:", "'token':", "1:AA", "--"],
)
def test_a_long_text_is_read_in_linear_time(piece):
    """Quadratic time would be hours here."""
    assert len(without_keys(piece * (100_000 // len(piece)))) > 1_000
