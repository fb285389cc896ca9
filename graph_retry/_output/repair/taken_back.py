"""Words by which a writer takes an answer back, contests it, or says that it is none.

They count only where they stand for that: at the start of a sentence behind the answer, or directly
beside it. `Let me know if this is wrong` takes nothing back.
"""

import re

# What is searched in long texts begins with letters, in lower case: that is many times as fast.
_SECOND_THOUGHT = re.compile(
    r"wait(?=\s*[,.!…:;—–-]|\s+(?:i|that|no|actually|it|this)\b)"
    r"|(?:correction|erratum|errata)\b(?! of)|(?:edit|update):\s"
    r"|(?:my (?:mistake|bad)|i (?:forgot|missed|misread|misspoke|mixed up))\b"
    r"|i (?:made|see|spotted|noticed) (?:an?|the|one|my) (?:mistake|error)"
    r"|i (?:take that back|should have (?:written|said|put)|got the \w+ wrong|just noticed)\b"
    r"|let me (?:fix|correct) (?:that|this|it)\b|actually,? the\b"
    r"|(?:please )?(?:ignore|disregard) (?:the (?:above|json above|answer above)|that)\b"
    r"|oops|whoops|(?:scratch|strike) that|on second thoughts?|never ?mind"
    r"|sorry,? (?:the|it|that)\b[^.\n]{0,60}\bshould\b|(?:perdón|désolé|извините),|抱歉|すみません"
    r"|the (?:correct|right|actual) (?:\w+ ){1,2}(?:for [`\w]+ )?(?:is|are|should)\b"
    r"|(?:korrektur|corrección|correção|correzione|исправление|更正|訂正|정정)\s?[:：]"
)
# Another value than the answer has: `It should be 35`, `The age could also be 35.`
_OTHER_VALUE = re.compile(
    r"\b(?:should(?: have)?|could|might|may)(?: also)? (?:be|been|read)"
    r" (?:-?\d[\d.,]*(?!\s*\w)|[\"'`])"
    r"|\b(?:change|replace) [^.\n]{1,40} (?:to|with) -?\d|\beither [^.\n]{1,20} or [\d\"'`]"
    r"|(?<![$€£])\b\d[\d.]* (?:rather than|instead of|not) \d|(?:richtig ist|ist falsch)\b"
)
_SENTENCE_START = re.compile(
    r"[\n.!?…—–][^\w\n]{0,10}"
    r"(?:(?:oh|hm{1,4}|uh|ah|no|hold on|ok(?:ay)?|but|sorry)[,.… ]{1,4})?\Z"
)
_IS_WRONG = re.compile(r"(?:wrong|incorrect|not (?:right|correct|valid))\b")
_OF_THE_ANSWER = re.compile(
    r"(?<!if )(?<!whether )(?<!case )\b(?:that|this|it|the above|(?:the|this) (?:answer|json)"
    r"|the \w+(?: in the (?:json|answer))?(?: above)?)(?:['’]s| is| was) \Z"
)
_SAYING_SO = ((_SECOND_THOUGHT, _SENTENCE_START), (_IS_WRONG, _OF_THE_ANSWER))
_ACTUALLY = re.compile(r"actually\b[^.\n]{0,80}\b(?:not|wrong|instead|mistake)\b")
# Directly behind the answer: ` or null`, ` if it is paid`, `; otherwise nothing`, ` is not valid`.
_CONTESTED_BEHIND = re.compile(
    r"[\s`]{0,9}(?:(?:or|\|\|?)\s(?:null|none|nothing|an? empty)\b|(?:if|unless)\b)"
    r"|[\s`;,.]{0,9}(?i:otherwise|else)\b"
    r"|[\s`]{0,9}(?:is|are|was|were)(?: not\b|n['’]t\b| wrong\b| invalid\b| incorrect\b)"
)
# The words directly before it: `Do not return `, `A wrong answer: `, `The format would be `.
_NEGATIONS = ["not", "never"]
_VERBS = ["return", "use", "write", "output", "send", "say", "print", "include", "give"]
_BAD = ["wrong", "bad", "invalid", "incorrect", "broken", "outdated"]
_ANSWERS = ["example", "answer", "output", "json", "response"]
_OUTLINES = ["format", "schema", "structure", "template"]
_CONTESTING = frozenset(
    [*_NEGATIONS, *_BAD, "instead of", "rather than"]
    + [f"{word} {verb}" for word in _NEGATIONS for verb in _VERBS]
    + [f"{word} {answer}" for word in _BAD for answer in _ANSWERS]
    + [f"{noun} {verb}" for noun in _OUTLINES for verb in ("would be", "should be", "looks like")]
)
# `~~{"a": 1}~~`, but not a fence of tildes.
_STRUCK_OUT = re.compile(r"(?:(?<!~)~~|<(?:del|strike)>)\s{0,9}\Z")
# One of several parts: `Part 1 of 2`, `(partial)`.
IS_PART = re.compile(
    r"(?:part|chunk|batch) \d{1,9} ?(?:of|/) ?(?!1\b)\d|[(\[](?:partial|incomplete)[)\]]"
    r"|(?:partial|incomplete) (?:output|answer|results?|response|list|json|data)\b"
)


def is_taken_back(gaps: tuple[str, ...]) -> bool:
    """Tell whether the text in `gaps`, before and after the answers, takes them back."""
    contested = _contests(gaps[0][-80:]) or _CONTESTED_BEHIND.match(gaps[-1])
    return bool(contested or _takes_back("\n".join(["", *gaps[1:]]).lower()))


def _contests(before: str) -> bool:
    """Tell whether the last words before an answer, three at most, say that it is none."""
    words = before.lower().rstrip(" \t\r\n:`*").split()[-3:]
    phrases = (" ".join(words[first:]) for first in range(len(words)))
    return not _CONTESTING.isdisjoint(phrases) or _STRUCK_OUT.search(before) is not None


def _takes_back(text: str) -> bool:
    """Tell whether a text in lower case says that what stands before it is not meant any more."""
    for words, before in _SAYING_SO:
        for match in words.finditer(text):
            if before.search(text, max(0, match.start() - 40), match.start()):
                return True
    return bool(_ACTUALLY.search(text) or _OTHER_VALUE.search(text))
