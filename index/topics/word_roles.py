"""Decide the role of each word in its sentence: a noun, an adjective beside one, or nothing that a term contains.

The words around it, its ending and word lists decide; no model is needed. In doubt, an English or German word is a
noun, and a word of a Romance language is none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from index.deferred_patterns import compile_later
from index.text import stopwords
from index.text.words import JOINS, SPACED, TextLanguage, Token
from index.topics import word_classes

LATIN: Final = "\u024f"  # the last Latin letter: of other scripts with spaces, only function words are known


class Role(Enum):
    """Says what a word is in its sentence."""

    NOUN = "noun"
    MODIFIER = "modifier"  # an adjective or a participle beside a noun
    JOIN = "join"  # a preposition between two nouns
    OTHER = "other"  # anything that no term contains


@dataclass(frozen=True, slots=True)
class _Place:
    """Holds a word with the words around it; "" where punctuation is."""

    token: Token
    earlier: str  # the word before `before`
    before: str
    after: str
    behind_noun: bool  # `earlier` is a noun or its adjective
    behind_adjective: bool  # `earlier` is an adjective
    joined: bool  # `before` is a preposition that may occur inside a term
    beside: bool  # a meaningful word follows
    beside_name: bool  # a word with a capital follows
    behind_word: bool  # `before` is a meaningful word
    behind_term: bool  # `before` is a noun or its adjective


def word_roles(line: Sequence[Token | None], language: TextLanguage) -> list[Role]:
    """Return the role of each word of a sentence."""
    roles: list[Role] = []
    for n, token in enumerate(line):
        roles.append(_role(_place(line, n, token, roles), language.language) if token else Role.OTHER)
    for n, role in enumerate(roles):
        if role is Role.JOIN and (
            n + 1 == len(roles) or roles[n + 1] is not Role.NOUN or roles[n - 1] is Role.OTHER or _is_adverb(line, n)
        ):
            roles[n] = Role.OTHER
    return roles


def _is_adverb(line: Sequence[Token | None], n: int) -> bool:
    """Return whether "à" and the word after it are an adverb, not a part of a term such as "boîte à outils"."""
    joining, noun = line[n], line[n + 1]
    return joining is not None and joining.text == "à" and noun is not None and not noun.text.endswith("s")


def _place(line: Sequence[Token | None], n: int, token: Token, roles: Sequence[Role]) -> _Place:
    before = line[n - 1] if n else None
    earlier = line[n - 2] if n > 1 else None
    after = line[n + 1] if n + 1 < len(line) else None
    return _Place(
        token,
        earlier=earlier.text if earlier else "",
        before=before.text if before else "",
        after=after.text if after else "",
        behind_noun=n > 1 and roles[n - 2] in (Role.NOUN, Role.MODIFIER),
        behind_adjective=n > 1 and roles[n - 2] is Role.MODIFIER,
        joined=bool(before and before.join),
        beside=bool(after and (after.worth or after.part)),
        beside_name=bool(after and after.capital),
        behind_word=bool(before and (before.worth or before.part)),
        behind_term=n > 0 and roles[n - 1] in (Role.NOUN, Role.MODIFIER),
    )


def _role(place: _Place, language: str) -> Role:
    token = place.token
    if not (token.worth or token.part) or (token.verb and place.before != "的"):
        return Role.JOIN if token.join else Role.OTHER
    if token.wide:
        if token.text in word_classes.CHINESE_VERBAL:
            return Role.OTHER
        return Role.NOUN if token.thing or token.verb else Role.MODIFIER
    if language == "de" and _is_no_german_noun(place):
        return Role.OTHER
    if token.text[0] > LATIN or (token.capital and not _is_other_word(place, language)):
        return Role.NOUN
    match language:
        case "en":
            role = _english_role(place)
        case "de":
            role = Role.NOUN if token.first and _GERMAN_NOUN.fullmatch(token.text) else Role.OTHER
        case "es" | "pt" | "it" | "fr" if token.capital:  # a button, as in "el menú Insertar"
            role = Role.MODIFIER if place.behind_word else Role.OTHER
        case "es" | "pt" | "it" | "fr":
            role = _romance_role(place, language)
        case _:
            role = Role.NOUN
    return role


_GERMAN_NOUN: Final = compile_later(
    r".{4,}(?:ung|ungen|heit|keit|keiten|schaft|tion|tionen|tät|ismus|nis|tum|werk|zeug|ling|ator|ik)"
)

_GERMAN_INFINITIVE: Final = compile_later(
    r"(?!.*(?:pap|man|turn|offiz|klav|scharn|barr|karr|rev|qu?art)ieren).{3,}ieren"
)
_GERMAN_ADJECTIVE: Final = compile_later(
    r".+-(?:typisch|spezifisch|basiert|fähig|artig|ähnlich|bezogen|kompatibel|kompatibl)\w{0,2}"
)  # "Unix-typisch" has a capital, but is no noun
_GERMAN_VERB: Final = compile_later(r".{2,}(?:[bcdfghklmnprstwz]en|eln|ern)")


def _is_no_german_noun(place: _Place) -> bool:
    """Return whether a German word with a capital is no noun: a verb, as in "beim Erstellen", or an adjective."""
    word = place.token.text
    return (
        word in word_classes.GERMAN_VERBS
        or bool(_GERMAN_ADJECTIVE.fullmatch(word))
        or bool(_GERMAN_INFINITIVE.fullmatch(word))
        or (place.before in ("beim", "zum", "vom") and bool(_GERMAN_VERB.fullmatch(word)))
    )


# English

_ADJECTIVE: Final = compile_later(r".{3,}(?:able|ible|ful|less|ous|ish|iest|ally)")
_MAYBE_ADJECTIVE: Final = compile_later(r".{2,}(?:al|ic|ive|ent|ant|ary|ory|ate|ed|ing|y|er|ar|id|ian|ese)")
_ADVERB: Final = compile_later(r"(?!.*(?:fami|assemb|supp|rep|anoma|ital|monopo|butterf)ly).{2,}ly|.+wise|.+ward")
_SURE_ENGLISH_NOUN: Final = compile_later(r".{2,}(?:tion|sion|ness|ity|ance|ence|ship|ism|logy|ware|hood)|.{4,}ment")
_PARTICIPLE: Final = compile_later(r"(?!.*(?:eed|bed|shed|sled|hundred|thread|bread|head|seed)).{2,}ed")
_ENDINGS: Final = (("s", ""), ("es", ""), ("ies", "y"), ("ed", ""), ("d", ""), ("ied", "y"), ("ing", ""), ("ing", "e"))


def _english_role(place: _Place) -> Role:
    word = place.token.text
    if _ADVERB.fullmatch(word) or word.startswith("re-") or word in word_classes.ENGLISH_EVALUATIVE or _names(place):
        return Role.OTHER
    base = _verb_base(word)
    if place.token.part:
        return Role.NOUN if _is_compounding(place) else Role.OTHER
    if _SURE_ENGLISH_NOUN.fullmatch(word) and not base:
        return Role.NOUN
    modifying = (
        word in word_classes.ENGLISH_ADJECTIVES
        or bool(_ADJECTIVE.fullmatch(word) or _PARTICIPLE.fullmatch(word) or _is_comparative(word))
        or (base in word_classes.ENGLISH_EITHER and not place.before)  # an imperative, or a noun before another
    )
    if modifying:
        return Role.MODIFIER if place.beside else Role.OTHER
    if base and (word.endswith("ing") or base not in word_classes.ENGLISH_EITHER):
        return _sure_verb_role(place)
    return Role.OTHER if _is_verb_here(place, base) or _is_predicate(place) else Role.NOUN


def _names(place: _Place) -> bool:
    """Return whether a word only announces a name: a cat named Tom."""
    return place.beside_name and place.token.text in word_classes.ENGLISH_NAMING


def _is_comparative(word: str) -> bool:
    """Return whether an English word is the comparative of an adjective that is known."""
    return word.endswith("er") and not word_classes.ENGLISH_ADJECTIVES.isdisjoint((word[:-1], word[:-2]))


def _sure_verb_role(place: _Place) -> Role:
    """Return the role of a word that is a verb, or made of one: after an article or a compound it belongs to a noun."""
    gerund = place.token.text.endswith("ing") and place.after not in word_classes.ENGLISH_OBJECTS
    if place.before not in word_classes.ENGLISH_ARTICLES:
        return Role.NOUN if gerund and "-" in place.before and not place.beside else Role.OTHER  # row-level locking
    if place.beside:
        return Role.MODIFIER
    return Role.NOUN if gerund else Role.OTHER


def _is_verb_here(place: _Place, base: str) -> bool:
    """Return whether the words around it show that a word is a verb. `base`: the verb that it may be a form of."""
    if (
        base
        and place.token.plural
        and (place.before in ("this", "that") or place.after in word_classes.ENGLISH_QUESTIONS or _has_subject(place))
    ):
        return True  # this sounds; a plural would stand after "these"; the option controls how
    if place.token.text.endswith("ing") and place.before in word_classes.ENGLISH_GERUND_OPENERS:
        return True  # when filtering queries
    if base and place.before.endswith("ly") and not place.token.plural:
        return True
    if place.before in word_classes.ENGLISH_ARTICLES | word_classes.ENGLISH_PREPOSITIONS:
        return place.token.text.endswith("ing") and place.after in word_classes.ENGLISH_OBJECTS
    if base and place.token.plural and (place.before == "it" or (place.behind_word and place.beside)):
        return True  # the search handles tasks
    return (
        place.after in word_classes.ENGLISH_OBJECTS
        or (bool(base) and place.after in word_classes.ENGLISH_QUESTIONS)
        or (bool(base) and place.after == "to")
        or place.before in word_classes.ENGLISH_SUBJECTS
        or (bool(base) and place.before in word_classes.ENGLISH_LINKS)
        or (place.token.text.endswith("ing") and place.before in word_classes.ENGLISH_COPULAS)
    )


def _has_subject(place: _Place) -> bool:
    """Return whether a form with the ending s stands after a singular subject, or begins a clause: matches packages."""
    return (not place.before and place.beside) or (
        place.behind_word and place.earlier in word_classes.ENGLISH_SINGULARS
    )


def _is_compounding(place: _Place) -> bool:
    """Return whether an English word that is usually no noun belongs to one: start date, line break, code block."""
    if place.before in word_classes.ENGLISH_SUBJECTS | word_classes.ENGLISH_LINKS | {""}:
        return False
    if place.after in word_classes.ENGLISH_OBJECTS | {"that", "to"}:
        return False
    return place.beside or (place.behind_word and place.token.text in word_classes.ENGLISH_ENDS)


def _is_predicate(place: _Place) -> bool:
    """Return whether a word is probably an adjective after "is" or "very"."""
    return (
        place.before in word_classes.ENGLISH_COPULAS
        and not place.beside
        and bool(_MAYBE_ADJECTIVE.fullmatch(place.token.text))
    )


def _is_other_word(place: _Place, language: str) -> bool:
    """Return whether a word that is no noun has a capital because a quotation, a heading or a button begins with it."""
    if language in SPACED:
        return bool(_INFINITIVE[language].fullmatch(place.token.text)) or _is_no_romance_noun(place.token.text)
    if language != "en":
        return False
    base = _verb_base(place.token.text)
    if place.behind_word and not place.beside_name and _ADVERB.fullmatch(place.token.text):
        return True  # CREATE INDEX CONCURRENTLY
    return bool(base) and base not in word_classes.ENGLISH_EITHER and not place.beside_name


def _verb_base(word: str) -> str:
    """Return the basic form of an English verb; "" if the word is none that is known."""
    if word in word_classes.ENGLISH_GERUNDS:
        return ""
    forms = [word]
    for ending, instead in _ENDINGS:
        stem = word.removesuffix(ending)
        if len(word) > len(stem) > 1:
            forms.append(stem + instead)
            if not instead and len(stem) > 2 and stem[-1] == stem[-2]:
                forms.append(stem[:-1])
    forms += [form.removeprefix(prefix) for form in forms for prefix in ("over", "under", "re", "mis", "un", "dis")]
    inflected = word.endswith(("ing", "ed"))
    return next(
        (form for form in forms if form in word_classes.ENGLISH_VERBS or (inflected and form in stopwords.ENGLISH)), ""
    )


# Spanish, French, Italian and Portuguese

_VERBAL: Final = {
    "es": compile_later(r".{2,}(?:ando|iendo|[aei]rse|aron|ieron|aba|aban|ían|[aei]mos|[áéíóú][^aeiouáéíóú]{1,2}[ae](?:te|se|me|nos|l[aeo]s?)|[aei]rá|[aei]rán|ría|rían|[aei]rl[oa]s?|ar|er|ir|[ai]d[oa]s?)"),
    "pt": compile_later(r".{2,}(?:[aei]ndo|aram|eram|ava|avam|ar|er|ir|[ai]d[oa]s?)"),
    "it": compile_later(r".{2,}(?:ando|endo|[aei]re|[aei]rsi|[aiu]t[oaie]|ano|ono)"),
    "fr": compile_later(r".{2,}(?:er|ir|re|ait|aient|ant|ée?s?|era|eront|ez|ons)"),
}  # fmt: skip
# The verbs that may stand after a preposition.
_INFINITIVE: Final = {
    "es": compile_later(r"(?!lugar|hogar|poder|taller|alquiler|ejemplar|carácter|escáner|mujer|router|póster|dólar|altar).{2,}(?:[aeií]r(?:se|l[aeo]s?|nos|te|me)?|[aeiá]ndo(?:se|l[aeo]s?)?)"),
    "pt": compile_later(r".{2,}(?:[aei]r(?:-\w+)?|[aei]ndo)"),
    "it": compile_later(r"(?!mare|carcere|potere|genere|cantiere|quartiere).{2,}(?:[aei]re|[aei]r(?:si|l[aeoi])|[ae]ndo)"),
    "fr": compile_later(
        r"(?!(?:fich|pap|clav|atel|calendr|courr|mét|doss|escal|quart|chant|cah|prem|dern|part|rout|serv|scann|post|navig|comput)(?:er|ier)s?|hiver|cancer|plaisir|avenir|loisir|souvenir|soir|miroir|espoir).{2,}"
        r"(?:er|ir|ant|[ae]ndre|indre|ondre|erdre|oudre|aître|crire|uire|clure|traire|aincre|ompre)|.*(?:faire|prendre|rendre|vendre|perdre|mettre|battre|lire|dire|suivre|vivre|croire|boire|suffire)|être"
    ),
}  # fmt: skip
_FINITE: Final = compile_later(r".{2,}(?:[aei]r(?:án?|ían?|ait|aient|ont)|[^aeiou]era|aron|ieron|aban?)")
_ADVERBIAL: Final = compile_later(r".{3,}(?:mente|amment|emment|[eéiu]ment)")
_CLITIC: Final = compile_later(r"-(?:vous|nous|moi|toi|la|les?|lui|leur|en|y|ils?|elles?|on|ce)\Z")  # servez-vous
_SURE_NOUN: Final = compile_later(
    r".+(?:[^u]os|as|ones|ores|enes|ales|dades|ción|sión|dad|tad|miento|aje|ura|ez|ism[oe]|ista|or|eza|ncia|[ts]ion|té|age|ment|eur|ure|[ae]nce|zione|tà|ção|dade)"
)
_AGREEING: Final = {  # endings of adjectives
    "fr": compile_later(r".{2,}(?:ifs?|ives?|al|ales?|aux|els?|elles?|iques?|[ai]bles?|eux|euses?|aires?|ée?s?|[ae]ntes?|oires?|aine?s?|iens?|iennes?|oise?s?)"),
    "": compile_later(r".{2,}(?:al|ales|bles?|ntes?|icos?|iv[oa]s?|il|iles|ar|ares|bil[ei]|al[ei]|ais|vel|veis)"),
}  # fmt: skip
_FEMININE: Final = compile_later(
    r".{2,}(?:[aiu]d|iv|os|[ao]ri|an|[eu]rn|rrect|irect|rfect|scur|et|ond|und)as?|.*[áéíóú].+as?"
)  # the endings of adjectives that no verb has


def _is_no_romance_noun(word: str) -> bool:
    """Return whether a word is an adjective or an adverb wherever it stands."""
    return word in word_classes.ROMANCE_ADJECTIVES | word_classes.ROMANCE_ADVERBIAL or bool(_ADVERBIAL.fullmatch(word))


def _is_adverbial(place: _Place, articles: frozenset[str]) -> bool:
    """Return whether a preposition and a noun without an article are an adverb: "con regularidad", "en ligne".

    `articles`: those of the language; "a" is one in Portuguese."""
    plural = place.token.text.endswith(("s", "x"))
    alone = not place.beside and place.after not in JOINS
    return alone and not plural and place.before in word_classes.ADVERBIAL_PREPOSITIONS - articles


def _romance_role(place: _Place, language: str) -> Role:
    word = place.token.text
    articles = word_classes.ROMANCE_ARTICLES[language]
    function = word in word_classes.ROMANCE_ADJECTIVES | word_classes.ROMANCE_ADVERBIAL | articles
    if function or _CLITIC.search(word) or _is_adverbial(place, articles):
        return Role.OTHER
    if place.before in articles and place.before != "al":
        finite = place.before in ("todo", "tout") and bool(_FINITE.fullmatch(word))  # tout fonctionnera
        return Role.OTHER if finite or _is_behind_pronoun(place, language) else Role.NOUN
    before = word_classes.ROMANCE_ADJECTIVES | word_classes.ROMANCE_PREPOSITIONS[language]
    if place.joined or place.before == "al" or place.before in before:
        return Role.OTHER if _INFINITIVE[language].fullmatch(word) else Role.NOUN
    verbal = bool(_VERBAL[language].fullmatch(word))
    joined = place.before in word_classes.ROMANCE_CONJUNCTIONS
    if _ADVERBIAL.fullmatch(word) or (joined and place.behind_adjective):
        return Role.OTHER  # as in "prefijos binarios y decimales"
    if not verbal and (_SURE_NOUN.fullmatch(word) if joined else _is_noun_without_article(place)):
        return Role.NOUN
    modifying = place.behind_word and place.after not in articles and _agrees(place.before, word, language)
    return Role.MODIFIER if modifying else Role.OTHER


def _is_noun_without_article(place: _Place) -> bool:
    """Return whether a word is a noun of a title or a list: "Escala de grises", "anchura, desplazamientos"."""
    named = (
        place.after in ("de", "d'", "di")
        and not place.behind_term
        and place.before not in word_classes.ROMANCE_COPULAS
        and (not place.before or place.token.text.endswith("s"))
    )
    return named or (not place.before and bool(_SURE_NOUN.fullmatch(place.token.text)))


def _is_behind_pronoun(place: _Place, language: str) -> bool:
    """Return whether the article before a word is the object of a verb instead, as in "GIMP la divide"."""
    word = place.token.text
    if place.before in word_classes.ROMANCE_PLURALS and not word.endswith(("s", "x", "z")):
        return True  # il les développe
    if place.before in word_classes.ROMANCE_PRONOUNS and place.earlier in word_classes.INFINITIVE_OPENERS:
        return bool(_INFINITIVE[language].fullmatch(word))  # pour l'activer
    if (place.earlier in ("nous", "vous") and word.endswith(("ons", "ez"))) or (
        place.earlier == "en" and word.endswith(("ant", "ando", "endo"))
    ):
        return True  # nous les déplaçons, en le remplissant
    if place.before not in word_classes.ROMANCE_PRONOUNS or (place.before + word[-1]).endswith("ss"):
        return False  # a plural article before a plural is an article
    return place.behind_noun or place.earlier in word_classes.BEFORE_PRONOUNS


def _agrees(noun: str, word: str, language: str) -> bool:
    """Return whether `word` has the ending of an adjective that belongs to `noun`."""
    if noun.endswith(("s", "x")) != word.endswith(("s", "x")):
        return False
    if language == "fr":
        return bool(_AGREEING["fr"].fullmatch(word))
    ending, of_noun = word.rstrip("s")[-1:], noun.rstrip("s")[-1:]
    same = ending in ("a", "o") and (ending == of_noun or of_noun not in ("a", "o"))
    sure = ending == "o" or bool(_FEMININE.fullmatch(word))  # "registra" is a verb
    return (same and sure) or bool(_AGREEING[""].fullmatch(word))
