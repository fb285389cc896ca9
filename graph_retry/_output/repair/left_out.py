"""Words around an answer by which a writer says that the answer is not all there.

`(97 more items omitted)` does; `Nothing was omitted` says the opposite, and `Empty fields are
omitted` says how the answer was made.
"""

import re

from graph_retry._output.repair.comments import LEFT_OUT_ELSEWHERE

_THINGS = (
    r"(?:items?|entries|data|list|records?|results?|rows?|users?|output|json|array|object|values?"
    r"|elements?|keys?|lines?|products?|questions?|steps?)"
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
    rf"|only the first (?:{_FEW}|page|part|batch|{_THINGS})\b"
    rf"|not all (?:of (?:the|them|these) ?)?(?:\w+ )?(?:are|is|were|was) (?:included|listed|shown)"
    r"|not (?:the|a) (?:full|complete|entire|whole) "
    rf"|{_THINGS} is (?:still )?(?:incomplete|not complete|partial)\b|only (?:a )?part of the\b"
    rf"|(?:could|can|did) only (?:include|fit|list|show)|stopped after {_FEW}"
    rf"|the other \d+ {_THINGS}|(?:übrigen|restlichen) (?:zeilen|einträge|elemente)"
    rf"|left out (?:the|some|all|most|several|{_FEW})\b|(?:want|need|get|see|fill in) the rest\b"
    r"|nur die ersten|autres (?:lignes|éléments|entrées)|demás (?:filas|elementos|entradas)"
    r"|только первые)\b|只列出|仅列出|のみ表示|[\"“]continue[\"”]"
    r"|(?:\.\.\.|…) ?and (?:more|others)\b|^[^\w\n.…]*+(?:\.\.\.|…)[^\w\n]*$"
)
# At the start of a line, where the next item would stand.
_AND_SO_ON = re.compile(r"(?m)(?:^|\|)[^\w\n]*(?:and so (?:on|forth)|etc|usw|и т\. ?д)\b")
# What was done to something, which may be the answer.
_OMITTED = re.compile(
    r"\b(?:truncated|omitted|abbreviated|shortened|for brevity|excerpt|snip(?:ped)?)\b"
)
_SENTENCE_END = re.compile(r"[.!?;\n。！？]")
# Before that in the sentence: that nothing was, or that it was not the answer.
_DENIED = re.compile(
    r"\b(?:no|not|nothing|none|never|without|nor|n[ií]ng[uú]n\w*|nada|nenhum\w*|n[ãa]o|aucune?|rien"
    r"|nichts?|keine?\w*|niente|nessun\w*|ничего|empty|null|missing|unknown|absent|irrelevant"
    r"|duplicates?|fehlende\w*|leere\w*|kann|можно|the (?:input|text|document|article|source))\b"
    r"|n['’]t\b|没有|未"
)
# Anywhere in it: that it was done to the wording, or to what is empty.
_OF_WORDING = re.compile(
    r"\b(?:symbols?|summary|descriptions?|titles?|wording|codes?|draft|vides?|vac[ií][oa]s?)\b"
    r"|ません|없|空"
)
_DATA = re.compile(r"\b(?:list|output|json|array|rows?|items?|entries|records?|results?)\b")


def tells_of_more(lowered: str) -> bool:
    """Tell whether a text beside an answer, in lower case, says that the answer is not whole."""
    if _PARTIAL.search(lowered) or _AND_SO_ON.search(lowered):
        return True
    matches = [*_OMITTED.finditer(lowered), *LEFT_OUT_ELSEWHERE.finditer(lowered)]
    return not all(_is_harmless(lowered, match.start()) for match in matches)


def _is_harmless(text: str, position: int) -> bool:
    """Tell whether the sentence around a word for leaving out says nothing against the answer."""
    before = _SENTENCE_END.split(text[max(0, position - 200) : position])[-1]
    sentence = before + _SENTENCE_END.split(text[position : position + 200], maxsplit=1)[0]
    of_wording = _OF_WORDING.search(sentence) and not _DATA.search(sentence)
    return bool(of_wording or _DENIED.search(before))
