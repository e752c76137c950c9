import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainjob.api import Cleaning
from trainjob.kinds.inputs.cleaning import clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  one\ttwo\r\n\n three  ", "one two three"),
        ("non\u00a0breaking\u2003space", "non breaking space"),
        ("bell\x07 nul\x00 c1\x9f", "bell nul c1"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ufb01ne stays", "\ufb01ne stays"),
        ("Case <b>and</b> https://stay.org &amp;", "Case <b>and</b> https://stay.org &amp;"),
        ("family \U0001f469\u200d\U0001f467", "family \U0001f469\u200d\U0001f467"),
        ("", ""),
    ],
)
def test_what_is_always_done(text: str, expected: str) -> None:
    assert clean(text, Cleaning()) == expected


@pytest.mark.parametrize(
    ("cleaning", "text", "expected"),
    [
        (Cleaning(lowercase=True), "Ein GROẞES Wort", "ein großes wort"),
        (Cleaning(remove_urls=True), "see https://a.b/c?d=e#f and www.x.org, HTTP://UP.org", "see and"),
        (Cleaning(remove_urls=True), "awww.no and http:/no", "awww.no and http:/no"),
        (Cleaning(remove_html=True), "<p class='x'>a&nbsp;&amp;&lt;b&gt;<br/>c</p><!-- d\n -->e", "a &<b> c e"),
        (Cleaning(remove_html=True), "1 < 2 and 3 > 2, x<y", "1 < 2 and 3 > 2, x<y"),
        (Cleaning(remove_html=True, remove_urls=True), '<a href="https://a.b">here</a>', "here"),
    ],
)
def test_what_is_done_when_asked(cleaning: Cleaning, text: str, expected: str) -> None:
    assert clean(text, cleaning) == expected


@given(st.text())
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    once = clean(text, Cleaning())
    assert clean(once, Cleaning()) == once
