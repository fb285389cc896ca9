"""Credentials are known by their shape: masked in what errors say, and warned of in params."""

import logging

import pytest
from langgraph.checkpoint.memory import InMemorySaver

from graph_retry._credentials import without_keys
from graph_retry._engine import credential_warnings
from tests.loops import Model, one_call, reviews, thread

BODY = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"

HEX = "0123456789abcdef0123456789abcdef"

TOKENS = [
    f"sk-{BODY}",
    f"sk-proj-{BODY}-{BODY}_x",
    f"sk-ant-api03-{BODY}",
    f"sk-or-v1-{BODY}",
    f"sk-lf-{BODY}",
    f"pa-{BODY}",
    f"sk_live_{BODY}",
    f"rk_test_{BODY}",
    f"whsec_{BODY}",
    f"AIzaSy{BODY}",
    f"ya29.{BODY}",
    "AKIAABCDEFGHIJKLMNOP",
    "ASIAABCDEFGHIJKLMNOP",
    f"ghp_{BODY}",
    f"gho_{BODY}",
    f"ghs_{BODY}",
    f"github_pat_{BODY}_{BODY}",
    f"glpat-{BODY[:20]}",
    f"hf_{BODY}",
    f"gsk_{BODY}",
    f"xai-{BODY}",
    f"pplx-{BODY}",
    f"nvapi-{BODY}",
    f"r8_{BODY}",
    f"fw_{BODY}",
    f"tgp_v1_{BODY}",
    f"tvly-{BODY}",
    f"pcsk_{BODY}",
    f"lsv2_pt_{BODY}_{BODY[:10]}",
    f"lsv2_sk_{BODY}_{BODY[:10]}",
    "xoxb-1234567890-abcdefghij",
    f"xapp-1-{BODY}",
    f"sk_{HEX}{HEX}",
    f"csk-{HEX}",
    f"AQ.Ab8RN6{BODY}",
    f"GOCSPX-{BODY}",
    f"1//0g{BODY}",
    f"ABSKQmVkcm9ja0FQSUtleS{BODY}{BODY}==",
    f"bedrock-api-key-{BODY}",
    f"glrt-{BODY[:20]}",
    f"jina_{BODY}",
    f"fc-{HEX}",
    f"bce-v3/ALTAK-{BODY[:20]}/{HEX}",
    f"LTAI5t{BODY[:18]}",
    f"{HEX}.{BODY[:16]}",
    f"dapi{HEX}",
    f"vck_{BODY}",
    f"sb_secret_{BODY}",
    f"sbp_{HEX}",
    f"wandb_v1_{BODY}",
    f"bot1234567890:AA{BODY}",
    f"ntn_{BODY}",
    f"lin_api_{BODY}",
    f"figd_{BODY}",
    f"ATATT3{BODY}=",
    "pat-na1-01234567-0123-0123-0123-0123456789ab",
    f"shpat_{HEX}",
    f"SK{HEX}",
    f"key-{HEX}",
    f"glsa_{BODY}_{HEX[:8]}",
    f"sntrys_{BODY}",
    f"phx_{BODY}",
    f"hvs.{BODY}",
    f"dckr_pat_{BODY}",
    f"AGE-SECRET-KEY-1{HEX.upper()}{HEX.upper()}",
    f"npm_{BODY}{BODY}",
    f"pypi-{BODY}{BODY}",
    "dop_v1_0123456789abcdef0123456789abcdef",
    f"SG.{BODY}.{BODY}",
    f"glsoat-{BODY[:20]}",
    f"e2b_{HEX}{HEX[:8]}",
    f"napi_{BODY}{BODY}",
    f"pscale_tkn_{BODY}",
    f"rnd_{BODY}",
    f"dp.st.prd.{BODY}",
    f"PMAK-{HEX[:24]}-{HEX}ab",
    f"NRAK-{BODY[:27].upper()}",
    f"dt0c01.{BODY[:24]}.{BODY}{BODY}",
    f"xkeysib-{HEX}{HEX}-{BODY[:16]}",
    f"re_{BODY[:8]}_{BODY[:24]}",
    f"pul-{HEX}{HEX[:8]}",
    f"{BODY[:14]}.atlasv1.{BODY}{BODY}",
    f"rubygems_{HEX}{HEX[:16]}",
    f"sgp_{HEX[:16]}_{HEX}{HEX[:8]}",
    f"tskey-auth-{BODY[:17]}-{BODY}",
    f"sk.eyJ1IjoiYWRhIiwiYSI6ImNsIn0.{BODY[:22]}",
    f"CFPAT-{BODY}{BODY[:11]}",
    f"llx-{BODY}",
    f"HRKU-AA{BODY}{BODY}",
    f"fm2_{BODY}{BODY}",
    f"ops_eyJzaWduSW5BZGRyZXNzIjoi{BODY}",
    f"pat{BODY[:14]}.{HEX}{HEX}",
    f"MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.{BODY[:27]}",
    f"abc8Q~{BODY}xy",
    f"ak-{BODY[:22]}",
    f"bb_live_{BODY[:27]}",
    f"xoxe.xoxp-1-{BODY}",
    f"xwfp-{BODY}",
    f"sq0atp-{BODY[:22]}",
    f"{HEX}-us12",
    f"AKCp5{BODY}{BODY}",
    f"v2.public.eyJ{BODY}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{BODY}",
    f"eyJhbGciOiJkaXIifQ..{BODY[:16]}.{BODY}.{BODY[:22]}",
    f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n{BODY}\n-----END PGP PRIVATE KEY BLOCK-----",
    f"-----BEGIN EC PRIVATE KEY-----\nDEK-Info: A-1\n{BODY}\n-----END EC PRIVATE KEY-----",
    f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----",
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
    ("GET /v1?key={}&alt=json", "AIzaSyA1234567890"),
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
    ("https://hooks.slack.com/services/{}", "T00000000/B00000000/XXXXXXXXXXXX"),
    ("https://discord.com/api/webhooks/{}", f"1234567890/{BODY}"),
    ("https://x.webhook.office.com/webhookb2/{}", f"{HEX}@{HEX}/IncomingWebhook/x"),
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
    "chatcmpl-9aBcDeFgHiJkLmNoPqRsTuVwXyZ12, toolu_01T1x1fJ34qAmk2tNTrN7Up6",
    "the secretary's key_findings: 3, token_count: 123456",
]


@pytest.mark.parametrize("token", TOKENS, ids=[token[:8] for token in TOKENS])
def test_a_token_is_known_by_its_beginning(token):
    """Each kind, in a sentence and in quotes."""
    assert without_keys(f"Incorrect key: {token} (401)") == "Incorrect key: [key] (401)"
    assert token not in without_keys(f'{{"sent": "{token}"}}')


@pytest.mark.parametrize(("text", "value"), NAMED)
def test_a_credential_is_known_by_what_stands_before_it(text, value):
    """A header, a query, a DSN, JSON: the name stays and tells what was masked."""
    assert without_keys(text.format(value)) == text.format("[key]")


@pytest.mark.parametrize("text", HARMLESS)
def test_ordinary_words_stay(text):
    """An error must still say what is wrong."""
    assert without_keys(text) == text


@pytest.mark.parametrize(
    "piece",
    ["sk-", "eyJ-", "password:", "Bearer ", "api_", "://", "cookie:", "'token':", "1:AA", "--"],
)
def test_a_long_text_is_read_in_linear_time(piece):
    """Quadratic time would be hours here."""
    assert len(without_keys(piece * (100_000 // len(piece)))) > 1_000


PARAMS = {
    "prompt": "how many tokens has this?",
    "api_key": "sk-test",
    "headers": {"Authorization": "anything", "accept": "json"},
    "clientSecret": "x",
    "tools": [{"password": "correct horse"}, f"use {TOKENS[0]}"],
    "max_tokens": 100,
    "eos_token": "</s>",
    "token_count": "3",
    "password_hint": "",
    "db_password": "",
}


def test_a_field_that_looks_like_a_credential_is_warned_of_once(form, caplog, monkeypatch):
    """By its name or its value; the log names the field, and never says what is in it."""
    monkeypatch.setattr(credential_warnings, "_told", set())
    graph = one_call(form, None, Model(lambda params: "no"), InMemorySaver())
    for name in "ab":
        graph.invoke({"params": PARAMS}, thread(name))
    records = [record for record in caplog.records if record.name == "graph_retry.params"]
    assert [record.levelno for record in records] == [logging.WARNING] * 5
    fields = [record.args[0] for record in records]
    expected = ["/api_key", "/headers/Authorization", "/clientSecret"]
    assert fields == [*expected, "/tools/0/password", "/tools/1"]
    assert not any(secret in caplog.text for secret in ("sk-test", "anything", "horse", TOKENS[0]))


@pytest.mark.parametrize("kind", [ValueError, LookupError])
def test_what_a_validator_or_a_reviewer_raises_is_masked(form, mode, kind):
    """Both may ask a service, and quote its address and key."""
    graph = one_call(
        form, mode, Model(), InMemorySaver(), output=refuse(kind), reviewer=refuse(kind)
    )
    mode.invoke(graph, {"params": {"n": 1}}, thread())
    (review,) = reviews(mode, graph, thread())
    shown = "401 for https://h/v1?key=[key]"
    assert all(shown in review.value[name] for name in ("error", "note"))
    assert shown in review.issues[0]["message"]
    assert SENT not in repr(vars(review))


SENT = "AIzaSyA1234567890"


def refuse(kind):
    """Return a function that raises what its service said."""

    def ask_service(_):
        raise kind(f"401 for https://h/v1?key={SENT}")

    return ask_service
