"""index/search/language_check.py: what may be in a language, and what can't."""

from __future__ import annotations

import pytest

from index.search.language_check import may_be_in


@pytest.mark.parametrize(
    ("text", "languages", "expected"),
    [
        pytest.param("how warm is the oven", ("en",), True, id="english"),
        pytest.param("oven 200 °C", ("en",), True, id="too short to tell"),
        pytest.param("", ("en",), True, id="nothing"),
        pytest.param("2026-01-01 12:00", ("en",), True, id="no letters"),
        pytest.param("wie warm ist der Ofen", ("en",), False, id="german for english"),
        pytest.param("wie warm ist der Ofen", ("en", "de"), True, id="german for both"),
        pytest.param("wie warm ist der Ofen", ("ja",), False, id="german for japanese"),
        pytest.param("東京の天気", ("en",), False, id="japanese for english"),
        pytest.param("東京の天気", ("ja",), True, id="japanese"),
        pytest.param("東京の天気", ("zh",), False, id="kana for chinese"),
        pytest.param("天气预报", ("zh",), True, id="chinese"),
        pytest.param("天気予報", ("ja",), True, id="japanese without kana"),
        pytest.param("날씨 예보", ("zh", "ja"), False, id="korean for chinese and japanese"),
        pytest.param("погода завтра", ("en",), False, id="russian for english"),
        pytest.param("ამინდი ხვალ", ("en",), False, id="a script that is not listed"),
        pytest.param("ამინდი ხვალ", ("all",), True, id="all"),
        pytest.param("The note about 東京 is in the folder of the trips that we made", ("en",), True, id="a quoted name"),
        pytest.param("Kot pije mleko, pies goni kota, a ptak siedzi na drzewie obok domu", ("en",), False, id="long, and no word of english"),
        pytest.param("Kot pije mleko, pies goni kota, a ptak siedzi na drzewie obok domu", ("pl",), True, id="a language without a list"),
    ],
)  # fmt: skip
def test_a_text_may_be_in_languages(text, languages, expected):
    assert may_be_in(text, languages) is expected
