"""List the words with which a sentence states a change, a negation, a single event or a time, in ten languages.

The lists are lower case. They cover how people phrase a change, not its subject; a language without a list is still
compared by its figures and dates."""

from __future__ import annotations

import re
from typing import Final

ENGLISH: Final = "en"


class CuePhrases:
    """Holds words and phrases of one kind; `_` means a blank, `any` is for all languages, `wide` for scripts without blanks.

    The English ones count in every text: notes of all languages contain English words, and short notes are taken for
    English."""

    def __init__(self, *, any: str, wide: str, en: str, **languages: str) -> None:
        self._of = {name: _compile_phrases(f"{en} {any} {words}", wide) for name, words in languages.items()}
        self._of[ENGLISH] = _compile_phrases(f"{en} {any}", wide)

    def count(self, text: str, language: str) -> int:
        """Count the phrases in a text of this language."""
        return len(self.spans(text, language))

    def spans(self, text: str, language: str) -> list[tuple[int, int]]:
        """Return the positions of the phrases in a text of this language."""
        return [match.span() for match in self._of.get(language, self._of[ENGLISH]).finditer(text)]


def _compile_phrases(spaced: str, wide: str) -> re.Pattern[str]:
    return re.compile(rf"(?<![^\W_])(?:{_alternatives(spaced)})(?![^\W_])|{_alternatives(wide)}", re.IGNORECASE)


def _alternatives(text: str) -> str:
    words = sorted(text.split(), key=lambda word: (-len(word), word))
    return "|".join(re.escape(word).replace("_", r"\s+") for word in words)


# An earlier statement is no longer true.
CHANGE: Final = CuePhrases(
    en="""now no_longer anymore any_more instead moved moves switched changed changes replaced replaces replacing as_of from_now_on updated
    update corrected correction deprecated obsolete renamed raised lowered reduced increased postponed rescheduled after_all
    upgraded migrated moving settled after_the_move previously formerly used_to retired superseded revised simplified dropped""",
    de="""jetzt nun nicht_mehr statt stattdessen anstatt ab_sofort künftig geändert verschoben umgezogen gesenkt erhöht ersetzt abgelöst
    veraltet neu_eingestellt korrigiert umgestellt""",
    fr="désormais maintenant ne_plus au_lieu_de remplacé remplacée à_partir_de reporté reportée modifié modifiée déplacé déplacée",
    es="ahora ya_no en_vez_de en_lugar_de cambiado cambiada aplazada aplazado a_partir_de reemplazado reemplazada",
    pt="agora já_não em_vez_de adiada adiado a_partir_de alterado alterada mudou",
    it="ora adesso invece_di rimandata rimandato spostata spostato a_partire_da cambiato cambiata",
    nl="nu niet_meer in_plaats_van verplaatst gewijzigd voortaan",
    any="""теперь больше_не вместо перенесён перенесен перенесена изменён изменен заменён teraz już_nie zamiast przeniesiony zmieniono
    이제 더_이상 대신 변경 변경되었다""",
    wide="変更 今後 代わり 廃止 移行 延期 改めた 改为 改成 不再 现在 調整 调整 取代 代替 变更 变成",
)
# Also a change, unless the sentence reports one occasion: there "since" may give a reason.
SINCE: Final = CuePhrases(
    en="since", de="seit", fr="depuis", es="desde", pt="desde", nl="sinds", any="", wide="以来 自从 부터"
)  # fmt: skip
# In a title: the note describes the newer state.
NEW: Final = CuePhrases(
    en="new", de="neu neue neuer neues neuen", fr="nouveau nouvelle nouveaux nouvelles", es="nuevo nueva nuevos nuevas", pt="novo nova novos novas",
    it="nuovo nuova nuovi nuove", nl="nieuw nieuwe", any="новый новая новое новые nowy nowa nowe 새로운 새", wide="新しい 新",
)  # fmt: skip
# Something is replaced.
INSTEAD: Final = CuePhrases(
    en="instead instead_of no_longer not_any_more replaced replaces replacing rather_than",
    de="statt stattdessen anstatt anstelle nicht_mehr ersetzt", fr="au_lieu_de remplacé remplace", es="en_vez_de en_lugar_de ya_no reemplaza",
    pt="em_vez_de já_não substitui", it="invece_di al_posto_di non_più", nl="in_plaats_van niet_meer vervangt",
    any="вместо больше_не zamiast już_nie 대신 더_이상", wide="代わり 不再 取代 代替",
)  # fmt: skip
# Something has ended: earlier statements about it no longer hold.
OVER: Final = CuePhrases(
    en="deprecated obsolete no_longer retired discontinued cancelled canceled removed shut_down switched_off abolished",
    de="veraltet abgeschafft eingestellt abgeschaltet nicht_mehr entfällt", fr="annulé annulée supprimé supprimée obsolète",
    es="cancelado cancelada obsoleto obsoleta suprimido suprimida", pt="cancelado cancelada obsoleto obsoleta", it="annullato annullata abolito abolita",
    nl="vervallen afgeschaft", any="отменён отменен устарел", wide="廃止 非推奨 中止 取消 废弃 停用 不再 作废 폐지 중단",
)  # fmt: skip
# "Without" is not among these: "without a net" and "not connected" say the same.
NOT: Final = CuePhrases(
    en="not no never cannot can't won't doesn't don't isn't aren't wasn't didn't shouldn't mustn't nobody nothing none",
    de="nicht kein keine keinen keiner keinem nie niemals nichts", fr="pas jamais rien aucun aucune", es="no nunca tampoco nada ninguno ninguna",
    pt="não nunca nada nem", it="non mai niente nessun nessuna", nl="niet geen nooit niets",
    any="не нет никогда nigdy nie 않는다 않다 않고 없다 아니다", wide="ません ない なかった 不是 没有 不支持 不能 不会 不再 不可 无法 未",
)  # fmt: skip
# The sentence reports one occasion: another occasion may have gone differently.
ONCE: Final = CuePhrases(
    en="""today tonight yesterday this_morning this_week last_night took ran measured peaked slept spent bought scored weighed walked felt was were
    went came saw met introduced released published founded born died won lost played opened added launched shipped""",
    de="heute gestern dauerte war waren lief kostete brauchte wog ging kam wurde eingeführt veröffentlicht gegründet geboren gestorben", fr="aujourd'hui hier a_pris a_coûté était étaient introduit publié publiée fondé fondée né née",
    es="hoy ayer fue fueron tardó costó hicimos introducido publicado publicada nació", pt="hoje ontem foi levou custou", it="oggi ieri è_stato ha_impiegato", nl="vandaag gisteren was duurde",
    any="сегодня вчера был была dzisiaj wczoraj był była 오늘 어제", wide="今日 昨日 今朝 今夜 でした だった 今天 昨天 今早 今晚 用了 花了 開業 発表 発売 刊行 創立 設立 出生 发布 成立",
)  # fmt: skip
# Two states of which only one holds.
OPPOSITES: Final = tuple(
    (frozenset(first.split()), frozenset(second.split()))
    for first, second in (
        pair.split("/")
        for pair in (
            "enabled active aktiv activé activado aktiviert attivo 有効 启用/disabled inactive inaktiv désactivé desactivado deaktiviert disattivato 無効 禁用",
            "open offen ouvert abierto aperto/closed geschlossen fermé cerrado chiuso",
            "allowed permitted erlaubt permis permitido/forbidden prohibited verboten interdit prohibido",
            "required mandatory pflicht obligatoire obligatorio/optional freiwillig facultatif opcional",
            "online/offline", "public öffentlich/private privat", "available verfügbar/unavailable", "stable/beta experimental unstable deprecated",
            "supported/unsupported deprecated", "approved genehmigt/rejected pending abgelehnt", "waiting pending planned blocked/running done finished shipped cancelled",
            "draft entwurf/final published", "vacant/occupied", "vegetarian vegan/carnivore", "married/divorced",
        )
    )
)  # fmt: skip
# Two sides of one thing: a statement about one side says nothing about the other.
SIDES: Final = tuple(
    (frozenset(first.split()), frozenset(second.split()))
    for first, second in (
        pair.split("/")
        for pair in (
            "old alt alte alten altem vieux ancien viejo antiguo velho vecchio oud/new neu neue neuen neuem nouveau nuevo novo nuovo nieuw",
            "small klein kleine kleinen petit petite pequeño pequeña pequeno piccolo/large big groß große großen grand grande grosse",
            "first erste ersten premier première primero primera primeiro primo/second zweite zweiten deuxième segundo segunda secondo",
            "left linke linken links gauche izquierda esquerda sinistra/right rechte rechten rechts droite derecha direita destra",
            "upper obere oberen top/lower untere unteren bottom", "inner innere inside indoor/outer äußere outside outdoor",
            "front vordere/rear back hintere", "north nord norte/south süd sud sur sul", "east ost est este leste/west ouest oeste ovest",
            "staging dev development test/production prod live", "cold kalt froid frío/hot warm chaud caliente", "read/write", "min minimum/max maximum",
            "before vor avant antes prima/after nach après después depois dopo", "with mit avec con com/without ohne sans sin sem senza",
            "morning morgens matin mañana manhã mattina/evening abends soir tarde noite sera", "client/server", "input/output", "inbound/outbound",
        )
    )
)  # fmt: skip

# Names of parts of a work or of a list: the number after one says which part is meant.
_PARTS: Final = """issue issues ticket tickets pr pull bug bugs discussion page pages chapter section article paragraph step figure fig table appendix lesson
    part episode season volume vol line question exercise rfc pep cve iso commit invoice chap sec art item note quarter sprint
    seite kapitel abschnitt artikel schritt abbildung abb tabelle teil folge band zeile aufgabe frage paragraf rechnung quartal
    chapitre article étape tableau partie épisode ligne facture trimestre
    página capítulo sección artículo paso figura tabla parte episodio línea pregunta factura secção seção capitolo sezione articolo passo
    pagina hoofdstuk sectie artikel stap deel aflevering"""
PARTS: Final = frozenset(_PARTS.split())
COUNTED_PARTS: Final = frozenset("条條页頁章节節巻卷話话回集題题課课")  # names of parts that follow the number

# Names of parts of the day and other occasions: titles with different ones are about two moments.
MOMENT: Final = _compile_phrases(
    """morning noon evening night afternoon monday tuesday wednesday thursday friday saturday sunday spring summer autumn winter
    january february march april may june july august september october november december first second third fourth fifth
    morgens mittags abends nachts frühling sommer herbst januar februar märz april mai juni juli august september oktober november dezember
    montag dienstag mittwoch donnerstag freitag samstag sonntag
    lundi mardi mercredi jeudi vendredi samedi dimanche janvier février mars avril mai juin juillet août septembre octobre novembre décembre
    lunes martes miércoles jueves viernes sábado domingo enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    janeiro fevereiro março maio junho julho setembro outubro novembro dezembro gennaio febbraio aprile maggio giugno luglio settembre ottobre dicembre""",
    "朝 夜 昼 夕方 早上 晚上 第一 第二 第三 第四",
)
# A start date does not name a moment.
FROM: Final = re.compile(
    rf"(?<!\w)(?:from|as\s+of|starting(?:\s+in)?|since|ab|seit|à\s+partir\s+(?:de|du)|depuis|desde|a\s+partir\s+de|dal|da|vanaf|sinds)\s+{MOMENT.pattern}",
    re.IGNORECASE,
)

_MONTHS: Final = {
    1: "january jan januar janvier enero janeiro gennaio januari января stycznia jänner",
    2: "february feb februar février febrero fevereiro febbraio februari февраля lutego",
    3: "march mar märz mars marzo março maart марта marca",
    4: "april apr avril abril aprile апреля kwietnia",
    5: "may mai mayo maio maggio mei мая maja",
    6: "june jun juni juin junio junho giugno июня czerwca",
    7: "july jul juli juillet julio julho luglio июля lipca",
    8: "august aug août agosto augustus августа sierpnia",
    9: "september sep sept septembre septiembre setembro settembre сентября września",
    10: "october oct oktober octobre octubre outubro ottobre октября października",
    11: "november nov novembre noviembre novembro ноября listopada",
    12: "december dec dezember décembre diciembre dezembro dicembre декабря grudnia",
}
MONTHS: Final = {name: number for number, names in _MONTHS.items() for name in names.split()}
_DAYS: Final = (
    "monday mondays mon montag montags lundi lunes segunda lunedì maandag понедельник",
    "tuesday tuesdays tue dienstag dienstags mardi martes terça martedì dinsdag вторник",
    "wednesday wednesdays wed mittwoch mittwochs mercredi miércoles quarta mercoledì woensdag среда",
    "thursday thursdays thu donnerstag donnerstags jeudi jueves quinta giovedì donderdag четверг",
    "friday fridays fri freitag freitags vendredi viernes sexta venerdì vrijdag пятница",
    "saturday saturdays samstag samstags samedi sábado sabato zaterdag суббота",
    "sunday sundays sonntag sonntags dimanche domingo domenica zondag воскресенье",
)
WEEKDAYS: Final = {name: number for number, names in enumerate(_DAYS, 1) for name in names.split()}
_NUMBERS: Final = {
    "0.25": "quarter viertel",
    "0.5": "half halbe halben halber demi demie medio media meia mezzo mezza",
    "1": "one once eins einmal",
    "2": "two twice zwei zweimal deux dos dois duas due twee",
    "3": "three drei trois tres três tre drie",
    "4": "four vier quatre cuatro quatro quattro",
    "5": "five fünf cinq cinco cinque vijf",
    "6": "six sechs seis sei zes",
    "7": "seven sieben sept siete sete sette zeven",
    "8": "eight acht huit ocho oito otto",
    "9": "nine neun neuf nueve nove negen",
    "10": "ten zehn dix diez dez dieci tien",
    "11": "eleven elf onze undici",
    "12": "twelve zwölf douze doce doze dodici twaalf",
}
NUMBERS: Final = {name: number for number, names in _NUMBERS.items() for name in names.split()}
KANJI_DIGITS: Final = {c: n for n, c in enumerate("〇一二三四五六七八九")} | {"十": 10, "两": 2}
