"""The note of an entity: what is given comes back, a person's bytes stay, and an ordinal is given once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from index.model import Statement
from syncd import entity
from syncd.note import properties, split

PATH = "Captures/default/Entities/Ada Lovelace.md"
OWN = {"id": "ada", "type": "entity", "entity_type": "person", "created_at": "2026-11-20T14:32:05.120Z"}

# What a line of an observation may look like and must not be taken for.
LOOKS = [
    "## Observations",
    "# Relations",
    "- item",
    "* item",
    "12. item ^o3",
    "- [ ] task",
    "knows:: [[Charles Babbage]]",
    "[knows:: [[X]]] in a sentence",
    "```",
    "```python",
    "~~~~",
    "%%",
    "%% note %%",
    "<!--",
    "-->",
    "$$",
    "---",
    "===",
    "- - -",
    "* * *",
    "> quote",
    "| a | b |",
    "^o7",
    "text ^o7",
    "text ^o999999999999",
    "^block",
    "    code",
    "\tcode",
    "a  ",
    "#tag [[link|shown]] ![[embed]]",
    'said "so", \\n it\'s `code`',
    "👩🏽‍🚀 emoji",
    "עברית \u200fמימין",
    "日本語の事実　です。",
    "\ufeffmark",
    "a\u2028b\x0bc\x85d\x1ce",
    "",
    "   ",
    "\u3000",
]
lines = st.sampled_from(LOOKS) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0\r"), max_size=12
)
contents = (
    st.lists(lines, min_size=1, max_size=6)
    .map("\n".join)
    .filter(lambda text: text.strip())
    .map(lambda text: text.replace("\r", ""))
)


def said(text):
    front, body = split(text)
    return entity.node(properties(front), body, PATH)[0]


def observed(text):
    return {one.ordinal: one.content for one in said(text).observations}


def normal(text):
    return text.replace("\r\n", "\n").strip()


@given(st.lists(contents, max_size=5))
@settings(max_examples=300, deadline=None)
def test_what_is_given_comes_back_as_it_was_given(given_contents):
    text = entity.compose(OWN, given_contents, [("knows", "Charles Babbage")])
    assert list(observed(text).items()) == list(enumerate(map(normal, given_contents), 1))
    assert said(text).relations == (Statement("knows", "Charles Babbage"),)
    assert not said(text).unsettled
    assert said(text).last_ordinal == len(given_contents)
