"""What others published: ids that stay, and the forms of credentials that gitleaks knows."""

import random
import string

import pytest

from graph_retry._core.ground.credentials import without_keys

BASE62, BASE32 = string.ascii_letters + string.digits, string.ascii_uppercase + "234567"
HEXADECIMAL = "0123456789abcdef"
LETTERS, URL_SAFE = string.ascii_letters, BASE62 + "-_"

# Found in public files and in the commits of a public repository, on 2026-11-28.
FOUND = [
    "x-amz-id-2: eftixk72aD6Ap51TnqcoF8eFidJG9Z/2mkiDFu8yU9AS1ed4OpIszj7UDNEHGran",
    "x-amz-id-2: nxgqBVRInfsy/+PYjepixKMATpy+iSIBh9FGHqrtS/j7YgRq3bh53lpvx32bePYcT8jx/tajk7k=",
    "Via: 1.1 3ccccbb11cd13ec9757e157d25a18093.cloudfront.net (CloudFront)",
    "X-Github-Request-Id: A4C8:48A5A:12D10FD4:1234D4F7:6A9EE252",
    "x-github-request-id: D139:2FAB9E:11C74B2:43DB60F:6A0F6D0B",
    "X-GitHub-Request-Id: EB38:2597E:1126615:197B74F:5A5BFC7B",
    "x-github-request-id: 8688:517A:7F4465:8CE2EF:5FCF70B6",
    "x-github-request-id: E330:6E4D:33B13B:3C90FB:637057D9",
    "x-github-request-id: B12C:1603CC:36ABDB:49EBD0:68756A3B",
    "X-Amz-Id-2: /bp/eY0PDOuiOqOrW5yx9EvbJ6x/qBX5XPRUQr8kEfUhRu0BeS86T8UeoqaTMA6c4O5oeZOk32Y=",
    "x-amz-id-2: YgIPIfBiKa2bj0KMg95r/0zo3emzU4dzsD4rcKCHQUAdQkf3ShJTOOpXUueF6QKo",
    "x-amz-id-2: NVKxnU1aIQMmpGKhSwpCBh8y2JPbak18QLIfE+OiUDOos+7UftZKjtCFqrwsGOZRN5Zee0jpTd0=",
    "x-amz-id-2: STN69VZxIFSz9YJLbz1GDbxpbjG6Qjmmq5E3DxRhOUw+Et0p4hr7c/Q8qNcx4oAD",
    "x-amz-id-2: eQa0SXtgPk3A+jASSyarZLw6FgFtXg+7m+Br6Xr/YBXQ0aot/dBTKBf5QSoE0x8TwzqBKXJ+MBw=",
    "x-amz-id-2: NxqO3PNiMHXXGwjgv15LLgUoAmPVmG0xtZw2sxePXLhpIvcyouXDrcQUaWWXcOK0",
    "X-Amz-Id-2: dd9025bab4ad464b049177c95eb6ebf374d3b3fd1af9251148b658df7ac2e3e8",
    "x-amz-request-id: 318BC8BC148832E5",
    "X-Amz-Request-Id: BC8936DD6346508C",
    "X-Amz-Request-Id: 189099908FCB2B36",
    "x-amz-request-id: 236A8905248E5A01",
    "x-amz-request-id: 4Z0SEN8YER8PBYAG",
    "X-Amz-Request-Id: 322FXJKFDN2ZRHNZ",
    "x-amz-request-id: C651BC9B4E1BD401",
    "x-amz-request-id: dca204eb-72b5-4e2a-a142-808d2a5c2a87",
    "X-Amz-Cf-Id: pSmjra6obpAoToyy7OI4vgCUC_PHbKo89LM48I-f5XX2ZMYdxy99ew==",
    "x-amz-cf-id: tpNceG4xNH5d_8kc4ANzRzz4dexbgOwG28g4Baphr8N7ujwbMTTzQQ==",
    "x-amz-cf-id: 6w_UWZmNTEpKJKaKfj9rk4fskLN3lP7UWEE2cMOCwH-emEhBO_XejQ==",
    "X-Amz-Cf-Id: TOl0FEm6uI4fgLdrKJx0Vao5hpkKGZULYN2TWD2gAWLtr7vlNjTvZw==",
    "x-amz-cf-id: 3p7qiAxIy0FU3kTGStU7CsJUMJlISSx9tVA4OKWIPT-CLnCM9VGwYw==",
    "X-Amz-Cf-Id: dDSBgR86EKBemW6el-pBI9kAnuYJEaPQYEqGmBnilD12CbixCuZYVQ==",
    "x-amz-cf-id: SceQPNcaSMF3OdNCp7wtqLS13rcJlXiyTtld_kE4JIU0Jl64tGiQwA==",
    "X-Amz-Cf-Id: pEdS3aaiZ-PoYmdcr4VwOTAAtFM_8SqNk6B6s-c3VVUxK65hrCOjZg==",
    "Via: 1.1 b2f6943465d79fdac69ff5e361607cf1.cloudfront.net (CloudFront)",
    "via: 1.1 63779d9b24354ddbcd3ded5970ee8f48.cloudfront.net (CloudFront)",
    "via: 1.1 83fa2b0fcfdd33500c450580584dd080.cloudfront.net (CloudFront)",
    "Via: 1.1 eb67cb25620df959ba21a943fbc49ef6.cloudfront.net (CloudFront)",
    "chatcmpl-dce42116-9224-97d1-b606-ab49067948a6",
    "chatcmpl-tool-a04ef986dd9b60df",
    "msg_011CfZyKc5uH1VkAS968ngyu",
    "msg_016E7asHK7dr3q6KJwN4xWuP",
    "msg_013Zva2CMHLNnXjNJJKqJ2EF",
    "msg_01Aq9w938a90dw8q",
    "thread_CrXtCzcyEQbkAcXuNmVSKFs1",
    "thread_0Oq7b8NlD8gayMrM9huQyv21",
    'ETag: "686eef0d2c12ae0108d2310cccb414a6"',
    '"system_fingerprint": "fp_44709d6fcb"',
    '"system_fingerprint": "fp_82ce25c0d4"',
    '"system_fingerprint": "fp_f1927ca00b"',
    '"generation_id": "ca0f398e-f8c8-48f0-b093-12d1754d00ed"',
    '"generation_id": "7d516b70-d8ab-47d1-b2dc-5b1250138789"',
    "x-request-id: 3c117181-3b0f-491d-ae85-6c1cf142bdb3",
    "X-Request-Id: 0f4b2e2e-9c2a-4d2c-8b91-3a86d5f6f1c7",
    "req_Xb3lAzGiTgtlV0",
    "commit b58d3f102cf3a2c84cb7f923d05c25c9b1aed84b",
    "gitleaks@84df63c82c66a5cfb555d52203258b6c1f3e4622",
    "github.com/gitleaks/gitleaks/blob/5e0db62ccc98a7f899e5ac7903c8354c3685d693/config/allowlist.go",
    "https://github.com/gitleaks/gitleaks/commit/c72ef7a89c64ea92d51e87b7a2b82cc8129c4cc2",
    "index 0c9e2a0f4915d0e1929c841008ea84422d571dff..327ce3ee14c398e3ef2f6769aa4c86bbe1725427",
    'W/"5e1b2f-5d8c2a7b9e340"',
    "X-B3-TraceId: 80f198ee56343ba864fe8b2a57d3eff7",
]


@pytest.mark.parametrize(
    "place", ["{}", "got {{{}}} (400)", "{{'{name}': '{value}'}}", "[(b'{name}', b'{value}')]"]
)
@pytest.mark.parametrize("text", FOUND)
def test_an_id_that_somebody_published_stays(text, place):
    """So do headers of providers, as their clients print them, and commits in addresses."""
    name, _, value = text.replace('"', "").partition(": ")
    shown = place.format(text, name=name, value=value or name)
    assert without_keys(shown) == shown


UPPER, LOWER = string.ascii_uppercase + string.digits, string.ascii_lowercase + string.digits

# Rules of gitleaks whose credentials have a form of their own, as the parts to draw.
FORMS = {
    "1password": ["A3-", (UPPER, 6), "-", (UPPER, 11), *["-", (UPPER, 5)] * 3],
    "airtable": ["pat", (BASE62, 14), ".", (HEXADECIMAL, 64)],
    "authress": ["sc_", (LOWER, 9), ".", (LOWER, 5), ".acc_", (LOWER, 12), ".", (URL_SAFE, 60)],
    "aws": ["A3T", (UPPER, 1), (BASE32, 16)],
    "azure": [(URL_SAFE, 3), (string.digits, 1), "Q~", (URL_SAFE, 32)],
    "cloudflare": ["v1.0-", (HEXADECIMAL, 24), "-", (HEXADECIMAL, 146)],
    "duffel": ["duffel_live_", (LOWER + "_-=", 43)],
    "facebook": [(string.digits, 15), "|", (URL_SAFE, 30)],
    "flutterwave": ["FLWSECK_TEST-", ("0123456789abcdefgh", 12)],
    "intra42": ["s-s4t2af-", (HEXADECIMAL, 64)],
    "sendgrid": ["SG.", (LOWER + "=_-.", 66)],
    "slack": ["xoxs-", (string.digits, 4), "-", (string.digits, 5), "-", (HEXADECIMAL, 9)],
    "stripe": ["rk_prod_", (LETTERS, 14)],
    "terraform": [(LOWER, 14), ".atlasv1.", (LOWER + "=_-", 65)],
}


@pytest.mark.parametrize("rule", FORMS)
def test_a_form_of_a_public_rule_is_known(rule):
    """None of a hundred stays readable, whatever stands in its parts."""
    draw = random.Random(rule)
    for _ in range(100):
        parts = [
            part if isinstance(part, str) else "".join(draw.choices(part[0], k=part[1]))
            for part in FORMS[rule]
        ]
        assert "".join(parts)[16:] not in without_keys(f"Incorrect key: {''.join(parts)} (401)")
