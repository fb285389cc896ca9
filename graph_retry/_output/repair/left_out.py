"""Words around an answer by which a writer says that the answer is not all there.

`(97 more items omitted)` does; `Nothing was omitted` says the opposite, and `Empty fields are
omitted` says how the answer was made.
"""

import re

from graph_retry._output.repair.comments import LEFT_OUT_ELSEWHERE

_THINGS = (
    r"(?:items?|entries|data|list|records?|results?|rows?|users?|output|json|array|object|values?"
    r"|elements?|keys?|lines?|products?|names?|questions?|steps?)"
)
_FEW = r"(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|few|couple|half)"
# What is said of the answer as a whole. All that is searched here is in lower case.
_PARTIAL = re.compile(
    r"(?m)\b(?:\d+ (?:more|others?|further|additional)\b"
    r"|(?:rest|remaining|remainder|other \d+)\b[^.\n]{0,60}\b(?:follow|below|similar|same|continu"
    r"|later)\w*"
    rf"|(?<!\bno )(?:the rest|remaining|remainder)(?: of (?:the|your))? (?:{_THINGS}|fields?)\b"
    r"(?! (?:is|are|was|were) (?:null|empty|unknown|unchanged|optional))"
    r"|to be continued|continued in|(?:me to|shall i) continue(?! with (?:the next|an?other|a)\b)"
    r"|continue in (?:the|my|a) (?:next|following|second)|in my next (?:message|response|reply)"
    r"|(?:list|output|array|table|data|json) (?:goes|go) on|continues (?:below|in|on)"
    rf"|only showing|first \d+ of|(?:the|only the) first {_FEW}\b(?: \w+){{0,2}} of\b"
    rf"|only the first (?:{_FEW}|page|part|batch|{_THINGS})\b(?! name)"
    rf"|not all (?:of (?:the|them|these) ?)?(?:\w+ )?(?:are|is|were|was) (?:included|listed|shown)"
    r"|not (?:the|a) (?:full|complete|entire|whole) "
    rf"|{_THINGS} is (?:still )?(?:incomplete|not complete|partial)\b|only (?:a )?part of the\b"
    rf"|(?:could|can|did) only (?:include|fit|list|show)|stopped after {_FEW}"
    rf"|left out (?:the|some|all|most|several|{_FEW})\b|(?:want|need|get|see|fill in) the rest\b"
    r"|nur die ersten|autres (?:lignes|éléments|entrées)|demás (?:filas|elementos|entradas)"
    r"|только первые)\b|只列出|仅列出|のみ表示"
    r"|^[^\w\n.…]*+(?:\.\.\.|…)[^\w\n]*$"
)
# At the start of a line, where the next item would stand.
_AND_SO_ON = re.compile(r"(?m)(?:^|\|)[^\w\n]*(?:and so (?:on|forth)|etc|usw|и т\. ?д)\b")
# What was done to something, which may be the answer.
_OMITTED = re.compile(
    r"\b(?:truncated|omitted|abbreviated|shortened|for brevity|excerpt|snip(?:ped)?)\b"
)
_SENTENCE = re.compile(r"[^.!?;\n。！？]*")
# In the sentence: that nothing was left out, or only what is not there, or what is no data.
_HARMLESS = re.compile(
    r"\b(?:no|not|nothing|none|never|without|nor|n[ií]ng[uú]n\w*|nada|nenhum\w*|n[ãa]o|aucune?|rien"
    r"|nichts?|keine?\w*|niente|nessun\w*|ничего)\b|n['’]t\b|没有|未|ません|없"
    r"|\b(?:empty|null|missing|unknown|absent|irrelevant|duplicates?|symbols?|summary|descriptions?"
    r"|titles?|wording|codes?|draft|the (?:input|text|document|article|source))\b"
)


def tells_of_more(lowered: str) -> bool:
    """Tell whether a text beside an answer, in lower case, says that the answer is not whole."""
    if _PARTIAL.search(lowered) or _AND_SO_ON.search(lowered):
        return True
    matches = [*_OMITTED.finditer(lowered), *LEFT_OUT_ELSEWHERE.finditer(lowered)]
    return any(not _HARMLESS.search(_sentence_at(lowered, match.start())) for match in matches)


def _sentence_at(text: str, position: int) -> str:
    """Return the sentence around `position`, as far as 200 characters to either side."""
    before = re.split(r"[.!?;\n。！？]", text[max(0, position - 200) : position])[-1]
    sentence = _SENTENCE.match(text, position, position + 200)
    return before + (sentence[0] if sentence else "")
