"""The words that providers and their clients use for what went wrong.

Codes are spelled in lower case, letters and digits alone; patterns are for the names of exceptions'
classes, and for texts where a provider has no code.
"""

import re

QUOTA = frozenset(
    {"insufficientquota", "billinghardlimitreached", "accountdeactivated", "billingerror"}
    | {"servicequotaexceeded"}
)
OVERFLOW = frozenset(
    {"contextlengthexceeded", "contextwindowexceeded", "modelcontextwindowexceeded"}
    | {"exceedcontextsizeerror"}
)
FILTERED = frozenset(
    {"contentfilter", "contentpolicyviolation", "moderationblocked", "responsibleaipolicyviolation"}
)
DENIED = frozenset(
    {
        "accessdenied",
        "apikeyinvalid",
        "authenticationerror",
        "expiredtoken",
        "invalidapikey",
        "invalidsignature",
        "permissiondenied",
        "permissionerror",
        "unauthenticated",
        "unrecognizedclient",
    }
)
BUSY = frozenset(
    {
        "aborted",
        "apierror",
        "deadlineexceeded",
        "internal",
        "internalerror",
        "internalfailure",
        "internalserver",
        "internalservererror",
        "modelerror",
        "modelnotready",
        "modelstreamerror",
        "modeltimeout",
        "overloaded",
        "overloadederror",
        "provisionedthroughputexceeded",
        "ratelimiterror",
        "ratelimitexceeded",
        "requestlimitexceeded",
        "requesttimeout",
        "resourceexhausted",
        "servererror",
        "serviceunavailable",
        "slowdown",
        "throttling",
        "timeouterror",
        "toomanyrequests",
        "unavailable",
    }
)
REJECTED = frozenset({"invalidrequesterror", "invalidargument", "validation", "notfounderror"})

# The clients' own classes (httpx, openai, anthropic, requests, aiohttp, …) share names.
TRANSPORT_NAMES = re.compile(
    r"(?:Timeout|Connection|Transport|Network|Protocol)(?:Error|Exception)?\b"
    r"|\b(?:ChunkedEncodingError|ClientPayloadError|IncompleteRead(?:Error)?|BadStatusLine)\b"
    r"|\b(?:HTTPClientError|ResponseStreamingError|ServerDisconnectedError|SSLError|gaierror)\b"
)
REQUEST_NAMES = re.compile(
    r"\b(?:LocalProtocolError|UnsupportedProtocol|SSLCertVerificationError)\b"
)
"""Relatives of transport errors that come again however often the request is sent."""
DENIED_NAMES = re.compile(
    r"(?:Authentication|Permission(?:Denied)?|TokenRetrieval|UnauthorizedSSOToken)Error\b"
    r"|\b(?:No|Partial|Default)CredentialsError\b"
)
OVERFLOW_NAMES = re.compile(r"\bContext(?:Window|Length)?(?:Overflow|Exceeded)")
FILTERED_NAMES = re.compile(r"\bContent(?:PolicyViolation|FilterFinishReason)")

# Some have no code for these: a refused request says so in its text alone.
OVERFLOW_TEXT = re.compile(
    r"context (?:length|limit|size|window)|(?:prompt|input) is too long|maximum prompt length"
    r"|too many (?:input )?tokens|model token limit|tokens.{0,40} must be <="
    r"|(?:input )?token count.{0,60}exceeds|exceeds? .{0,40}maximum number of (?:input )?tokens"
    r"|range of input length should be",
    re.IGNORECASE,
)
TOO_LARGE_TEXT = re.compile(r"request too large for", re.IGNORECASE)
"""OpenAI and Groq answer 429 or 413 where one request is above the limit of a whole minute."""
FILTERED_TEXT = re.compile(
    r"content (?:filtering|management) policy|(?:by|of) (?:our|the) safety system"
    r"|(?:prompt|input) was flagged",
    re.IGNORECASE,
)
NO_CREDIT_TEXT = re.compile(r"credit balance is too low", re.IGNORECASE)
