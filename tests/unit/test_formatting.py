import pytest

from trainjob.formatting import done, plain_number, score


@pytest.mark.parametrize(
    ("value", "digits", "sign", "text"),
    [
        (11_330.4, 4, "+", "+11330"),
        (1_234_567.0, 9, "", "1234567"),
        (1_234_567.8, 9, "", "1234567.8"),
        (-0.5, 4, "+", "-0.5"),
        (126.02, 6, "", "126.02"),
        (2e-7, 4, "", "2e-07"),
        (3e20, 4, "", "3e+20"),
    ],
)
def test_numbers_have_no_exponent_within_reach(value: float, digits: int, sign: str, text: str) -> None:
    assert plain_number(value, digits, sign) == text
    assert score(31_602.2) == "31600"


def test_a_job_is_done_at_its_end_alone():
    assert [done(99.99), done(100.0), done(0.0)] == ["99", "100", "0"]
