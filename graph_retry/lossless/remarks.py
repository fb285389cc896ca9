"""Find sentences that retract the answer, or say that it is not complete.

A row of `REMARKS` has the words of such a statement, in several languages. A pattern may have the
group `about`. The text of this group must be a word for the answer (in `ABOUT`) or a key in the
answer. So `The rest follows` counts, and `The rest of the e-mail follows standard terms` does not.
"""

import re
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple, cast

from graph_retry.lossless._ground import lazy
from graph_retry.lossless.results import RefusalKind

ABOUT = frozenset(
    re.findall(
        r"\w+",
        "answer json output response object list array result record entry entries row item element"
        " field value data above example format ones others one id key antwort ausgabe objekt liste"
        " ergebnis eintrag einträge zeile zeilen feld felder wert werte daten réponse sortie objet"
        " résultat entrée ligne champ valeur données élément respuesta salida objeto lista"
        " resultado registro fila campo valor dato elemento",
    )
)
_END = lazy(r"(?<=[.!?。！？…])\s+|\n+")
_FILLER = lazy(
    r"(?i)\W*(?:(?:oh|ah|hm+|no|hold on|ok(?:ay)?|but|sorry|please|actually|nein|aber"
    r"|entschuldigung"
    r"|bitte|tut mir leid|non|mais|désolée?|pardon|pero|perdón|lo siento|抱歉|不好意思)\b\W{1,4})*"
)
_IT = r"(?:that|this|it|(?:the|my) (?:\w+ )?(?P<about>\w+)(?: above)?)"
_VALUE = r"(?=[\"'“`\d-]|true\b|false\b|null\b|[^.\n]{1,60}\b(?:not|nicht|pas|no)\b)"


class Remark(NamedTuple):
    """One kind of statement about the answer.

    side: Where the statement counts: in the text before the answer, after it, or in both.
    kind, told: The kind and the message of the refusal.
    pattern: The words of the statement.
    """

    side: Literal["before", "after", "both"]
    kind: RefusalKind
    told: str
    pattern: re.Pattern[str]


def _remarks(side: Any, kind: RefusalKind, told: str, *patterns: str) -> Iterator[Remark]:
    """Return a `Remark` for each pattern. A pattern may have the group `about` only once."""
    return (Remark(side, kind, told, lazy(f"(?i){pattern}")) for pattern in patterns)


REMARKS = (
    *_remarks(
        "after", "ambiguous", "The text after the answer retracts it",
        # what is said on finding a mistake
        r"wait(?=\s*[,.!…:;—–-]|\s+(?:i|that|no)\b)|oops|(?:correction|edit)\s*:|my (?:mistake"
        r"|bad)\b|(?:scratch|strike|ignore|disregard) (?:that|this|it|the (?:\w+ )?above)\b|let me"
        r" (?:fix|correct) |(?:moment|warte)\s*[,.!…—–-]|korrektur\s*:|ups\b|mein fehler"
        r"|(?:ignor\w+ .*\b)?(?:das obige|obiges)\b(?:.*\bignor|.*\Z)"
        r"|atten(?:ds|dez)\s*[,.!…—–-]|oups|mon erreur|au temps pour moi|ignore[zr]? ce qui précède"
        r"|espera\s*[,.!…—–-]|corrección\s*:|uy\b|mi error|ignor[ae] (?:lo anterior|eso)"
        r"|更正\s*[:：]|等等[，,]|请忽略|我(?:忘|漏)了|訂正\s*[:：]",
        # the answer is wrong
        rf"(?:i (?:think|believe|see) )?{_IT}(?:(?:['’]s| is| was| looks) (?:wrong|incorrect|not"
        rf" (?:quite |entirely )?(?:right|correct))| has an? (?:error|mistake))\b",
        r"(?:das|dies|es|(?:die|das) (?P<about>\w+)) (?:ist|war) (?:falsch|nicht (?:richtig"
        r"|korrekt))\b",
        r"(?:c['’](?:est|était)|(?:la|le) (?P<about>\w+) est) (?:faux|incorrecte?|erronée?)\b",
        r"(?:eso|esto|(?:la|el) (?P<about>\w+)) (?:es|está|era|estaba) (?:mal|incorrect[oa]"
        r"|equivocad[oa])\b|(?:这|那|上面|答案).{0,6}(?:错|不对|不正确)",
        # the answer should be another one
        rf"{_IT} should (?:be|have been) {_VALUE}",
        rf"(?:es|das|(?:die|der|das) (?P<about>\w+)) (?:sollte|müsste|muss) {_VALUE}"
        r"|.{1,20}(?:应该是|应为)\s*[\"\d]",
        rf"(?:cela|ça|(?:la|le) (?P<about>\w+)) devrait être {_VALUE}",
        rf"(?:(?:la|el) (?P<about>\w+) )?debería ser {_VALUE}",
        r"(?P<about>\w+) (?:is|ist|est|es) [^.\n]{1,40}[,;] (?:not|nicht|pas|no) [\"'\d]",
        # the writer made a mistake
        r"i (?:made|see|made) an? (?:mistake|error)(?: (?:there|above|here)\b|\W*\Z| in the"
        r" (?P<about>\w+))",
        r"i (?:forgot|missed|misread|left out) (?:the |an? |to include (?:the |an? )?)?(?:other "
        r"|last )?(?P<about>\w+)",
        r"i got (?:the |an? )?(?P<about>\w+) wrong\b",
        r"(?:da )?(?:habe ich|ich habe) (?:einen fehler gemacht|mich (?:vertan|geirrt)|(?:den "
        r"|das |die |einen? )?(?P<about>\w+) vergessen)",
        r"j['’]ai (?:fait une erreur|oublié (?:le |la |l['’]|les |une? )?(?P<about>\w+))",
        r"(?:me equivoqué|cometí un error|(?:se me )?olvid[éó] (?:el |la |los |las |una?"
        r" )?(?P<about>\w+))",
    ),
    *_remarks(
        "before", "ambiguous", "The text says that this is not the answer",
        r"(?:.*[\s*_~`>])?(?:not|never|nicht|pas|no (?:devuelvas|uses|escribas))(?: (?:return"
        r"|use|write|output|answer|say|give|send|print))?[\s:`*]*\Z"
        r"|(?:.*\s)?(?:wrong|bad|invalid|incorrect|falsch|faux|incorrecto)(?:e[sn]?)?(?:"
        r" (?P<about>\w+))?[\s:`*]*\Z|.*(?:~~|<del>)\Z",
    ),
    *_remarks(
        "both", "elided", "The text says that data was left out",
        r"[^\w.…]*(?:\.\.\.|…)\W*\Z|\W{0,20}[(\[]?(?:truncated|partial|snip(?:ped)?|gekürzt|tronqué"
        r"|truncado|省略)[)\]]|\W*(?:and |und |et |y )?\d+ (?:more|others|weitere|autres|más)\W*\Z"
        r"|.*\b(?:to be continued|fortsetzung folgt|continuará|à suivre)\b|.*\bpart \d+ of "
        r"(?!1\b)\d|.*(?:其余|以下|其他).{0,6}省略",
        r".*?\b\d+ (?:more|others|weitere|autres|más)(?: (?P<about>\w+))?\b[^.\n]{0,40}\b(?:omitted"
        r"|truncated|left out|follow\w*|omis\w*|omitid\w*|ausgelassen|weggelassen)",
        # the writer gave a part, or offers the others
        r".*?\b(?:i|we)(?:['’]ve| have)? only (?:included?|show(?:ed|n)?|list(?:ed)?|return(?:ed)?"
        r"|provided?|gave|given|extract(?:ed)?|wrote) (?:the |an? )?(?:first|top|few|some|several"
        r"|\d+|two|three|five|ten|part|subset|sample)(?: (?:few|\d+|two|three|five|ten|of|the))*"
        r" (?P<about>\w+)",
        r".*?\bcontinue (?:\w+ )?(?:with )?the (?:rest of the|remaining|other) (?P<about>\w+)",
        r".*?\bnur die ersten (?:\w+ )?(?P<about>\w+) (?:auf(?:geführt|genommen)|ausgegeben)",
        r".*?\b(?:inclus|donné|listé) que les (?:\w+ )?premi(?:ers|ères) (?P<about>\w+)",
        r".*?\bs[oó]lo (?:he )?(?:incluido|incluí) l[oa]s primer[oa]s (?:\d+ )?(?P<about>\w+)",
        r".*?\b(?:rest|remainder|remaining (?P<about>\w+))\b(?! of\b)[^.\n]{0,40}\b(?:omitted"
        r"|truncated|left out|follows?\b)",
        r".*?\b(?:rest|remainder) of (?:the |this |your )?(?P<about>\w+)[^.\n]{0,40}\b(?:omitted"
        r"|truncated|left out|follows?\b)",
        r".*?\b(?:der rest|le reste|el resto|die (?:übrigen|restlichen) (?P<about>\w+))\b(?!"
        r" de[rsl]?\b)[^.\n]{0,40}\b(?:ausgelassen|weggelassen|gekürzt|omis|omit\w*|folg\w+|suit"
        r"|suivra|sigue)\b",
    ),
)  # fmt: skip


def remark(side: str, text: str, value: Any) -> Remark | None:
    """Return the row for the first remark in the text on one `side` of the answer, or None.

    `value` is the answer, whose keys count as words for it.
    """
    rows = [row for row in REMARKS if row.side in {side, "both"}]
    names: frozenset[str] | None = None
    sentences = [one for one in _END.split(text) if one.strip()]
    for number, sentence in enumerate(sentences, 1):
        filler = _FILLER.match(sentence)
        spoken = sentence[filler.end() if filler else 0 :]
        for row in rows:
            if row.side == "before" and number < len(sentences):
                continue  # Only the last sentence speaks of the answer.
            found = row.pattern.match(spoken) or row.pattern.match(sentence)
            if found:
                about = found.groupdict().get("about")
                names = names or (frozenset(_names(value)) if about else None)
                if about is None or _is_about(about.lower(), names or frozenset()):
                    return row
    return None


def _is_about(word: str, names: frozenset[str]) -> bool:
    return not ABOUT.isdisjoint({word, word.removesuffix("s")}) or word in names


def _names(value: Any) -> Iterator[str]:
    todo, left = [value], 10_000
    while todo and (left := left - 1):
        one: Any = todo.pop()
        if isinstance(one, dict):
            members = cast("dict[str, Any]", one)
            yield from map(str.lower, members)
            todo += members.values()
        elif isinstance(one, list):
            todo += cast("Any", one)
