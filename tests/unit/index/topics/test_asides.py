"""index/topics/asides.py: what stands beside the main part of a sentence."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from index.topics.asides import split_asides


@pytest.mark.parametrize(
    ("sentence", "main", "asides"),
    [
        pytest.param("The boat (of lead) is old.", "The boat ,  is old.", ["(of lead)"], id="a remark"),
        pytest.param("Boats are old, as said in Section 2.1, “Old Boats”, of the book.", "Boats are old, as said in , , of the book.", [], id="a reference"),
        pytest.param("See the page about boats.", "", ["See the page about boats."], id="nothing but a reference"),
        pytest.param("Its name (ABC) is old.", "Its name (ABC) is old.", [], id="another name"),
        pytest.param("El barco es viejo, por ejemplo la quilla.", "El barco es viejo, , .", ["por ejemplo la quilla"], id="an example"),
        pytest.param("We have it on Linux, Android, the Mac and Windows in all of our offices.", "We have it on ,  in all of our offices.", ["Linux, Android, the Mac and Windows"], id="a list"),
        pytest.param("船は木、鉄、鉛、銅からできている、とても古い。", "船は, からできている、とても古い。", ["木、鉄、鉛、銅"], id="a Japanese list"),
        pytest.param("Milk, eggs, butter, bread.", "Milk, eggs, butter, bread.", [], id="the topic itself"),
        pytest.param("For example, the boat has a keel.", "", ["For example, the boat has a keel."], id="an example alone"),
    ],
)  # fmt: skip
def test_remarks_examples_and_lists_stand_beside_the_main_part(sentence, main, asides):
    assert split_asides(sentence) == (main, asides)


@given(st.text("ab, ()、and例えば。", max_size=80) | st.text(max_size=80))
def test_every_word_is_in_the_main_part_or_in_an_aside_once(sentence):
    main, asides = split_asides(sentence)
    assert sorted(re.findall(r"\w", sentence)) == sorted(re.findall(r"\w", main + "".join(asides)))
