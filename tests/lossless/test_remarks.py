"""Sentences beside an answer, in five languages: which of them speak of the answer itself?"""

import json

import pytest

from graph_retry.lossless import read as parse_output
from graph_retry.lossless.remarks import REMARKS, remark

F = "```"
HARMLESS = [
    "I only showed the result.",
    "I only listed the top priorities here.",
    "The invoice only lists two items.",
    "Continue with the rest of the day.",
    "I forgot nothing.",
    "The rest of the e-mail follows standard terms.",
    "The customer said the invoice was wrong.",
    "Please wait for the confirmation of the bank.",
    "He wrote that the delivery was not correct.",
    "It should be paid by Friday.",
    "The remaining amount follows next week.",
    "I ignored the greeting at the top.",
    "Mistakes in the bill were corrected by hand.",
    "The customer forgot the order number.",
    "Actually, the meeting took place on Monday.",
    "This is not a reminder.",
    "The parcel is still missing.",
    "No further documents were attached.",
    "The refund should be credited within 14 days.",
    "Please correct me if the date was meant differently.",
    "The ticket was reopened twice.",
    "In case of errors, contact support.",
    "The attachment was truncated by the mail server.",
    "I see no problems with the data.",
    "The last page of the report is blank.",
    "Es wurde nichts vergessen.",
    "Der Rest der Nachricht enthält nur Grußformeln.",
    "Die Rechnung war laut Kunde falsch.",
    "Bitte warten Sie auf die Freigabe.",
    "Der Betrag sollte bis Freitag bezahlt sein.",
    "Das Ticket wurde geschlossen.",
    "Moment der Aufnahme: 12 Uhr.",
    "Der Kunde hat die Anlage vergessen.",
    "Die übrigen Punkte folgen im nächsten Termin.",
    "Je n'ai rien oublié.",
    "Le reste du message contient des formules de politesse.",
    "Le client dit que la facture est fausse.",
    "Veuillez attendre la confirmation.",
    "Le montant devrait être payé vendredi.",
    "L'erreur a été corrigée par le service.",
    "Attendez la livraison avant de payer.",
    "No olvidé nada.",
    "El resto del correo son saludos.",
    "El cliente dice que la factura está mal.",
    "Espere la confirmación del banco.",
    "El importe debería ser pagado el viernes.",
    "El cliente se equivocó de dirección.",
    "没有遗漏任何内容。",
    "客户说发票有错误。",
    "请等待银行确认。",
    "其余部分是问候语。",
    "金额应该在周五前支付。",
    "Ho estratto tutti i campi richiesti.",
    "Il resto della mail contiene saluti.",
]
RETRACTING = [
    "Note that I've only included the first few items in the list.",
    "I only returned 5 records.",
    "Let me know if I should continue with the remaining entries.",
    "Ich habe nur die ersten fünf Einträge aufgeführt.",
    "Je n'ai inclus que les dix premiers éléments.",
    "Solo he incluido los primeros 5 registros.",
    "Wait, the total is wrong.",
    "Actually, total is 4, not 3.",
    "I got the total wrong.",
    "The remaining rows follow.",
    "The rest was left out.",
    "Oops, I swapped the two numbers.",
    "Correction: the name is Adam.",
    "That is not right.",
    "The total should be 4, not 3.",
    "Sorry, I made a mistake in the total.",
    "I forgot the last item.",
    "Please disregard the above.",
    "Ignore that, I will redo it.",
    "Hold on, this is incorrect.",
    "My mistake, total is 4.",
    "The answer above is wrong.",
    "Scratch that.",
    "Edit: total is 4.",
    "Hmm, I misread the total.",
    "Hmm, that's not quite right.",
    "The JSON above has an error.",
    "Moment, das ist falsch.",
    "Korrektur: total ist 4.",
    "Das Ergebnis ist nicht korrekt.",
    "Entschuldigung, ich habe mich vertan.",
    "Der Wert sollte 4 sein, nicht 3.",
    "Ups, da fehlt ein Eintrag.",
    "Ich habe einen Eintrag vergessen.",
    "Bitte ignorieren Sie das obige JSON.",
    "Attendez, c'est faux.",
    "Correction : total vaut 4.",
    "J'ai fait une erreur.",
    "La réponse est incorrecte.",
    "Oups, j'ai oublié une ligne.",
    "La valeur devrait être 4.",
    "Ignorez ce qui précède.",
    "Espera, eso está mal.",
    "Corrección: el total es 4.",
    "Me equivoqué.",
    "La respuesta es incorrecta.",
    "Olvidé una fila.",
    "Ignora lo anterior.",
    "El total debería ser 4.",
    "更正：total 应为 4。",
    "等等，上面的答案有错误。",
    "抱歉，我忘了一项。",
    "请忽略上面的结果。",
    "(20 more rows omitted)",
    "The rest of the list was truncated.",
    "... and 12 others",
    "[truncated]",
    "Der Rest wurde weggelassen.",
    "Le reste a été omis.",
    "El resto se omite.",
    "其余省略。",
    "To be continued.",
]
VALUE = {"name": "Ada", "total": 3}
PLACES = ["@\n\n%", "@ %", f"{F}json\n@\n{F}\n%"]


def read(place, sentence):
    """Read the answer beside a sentence."""
    return parse_output(place.replace("@", json.dumps(VALUE)).replace("%", sentence))


@pytest.mark.parametrize("place", [*PLACES, "%\n\n@"])
@pytest.mark.parametrize("sentence", HARMLESS)
def test_a_sentence_about_something_else_is_prose(place, sentence):
    """It is left out with a note, whatever words are in it."""
    parsed = read(place, sentence)
    assert parsed.value == VALUE, parsed.failure
    assert "surroundings" in [each["kind"] for each in parsed.repairs]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("sentence", RETRACTING)
def test_a_sentence_that_takes_the_answer_back_refuses_it(place, sentence):
    """The value is not what the writer means."""
    assert read(place, sentence).failure is not None


@pytest.mark.parametrize("row", range(len(REMARKS)))
def test_each_remark_is_made_by_a_sentence(row):
    """A row that no sentence needs would be deleted."""
    told = [("after", each) for each in RETRACTING]
    told += [("before", "The answer is not "), ("before", "Bad example:"), ("before", "(partial)")]
    told += [("after", "The value is 4, not 3."), ("after", "3 more rows follow."), ("after", EACH)]
    assert REMARKS[row] in [remark(side, each, VALUE) for side, each in told]


EACH = "The rest of the list follows."
