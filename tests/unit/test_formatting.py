import pytest

from trainjob.formatting import done, plain_number, rounded, score, title


@pytest.mark.parametrize(
    ("value", "digits", "sign", "text"),
    [
        (11_330.4, 4, "+", "+11,330"),
        (1_234_567.0, 9, "", "1,234,567"),
        (1_234_567.8, 4, "", "1,234,568"),
        (999_999.96, 4, "", "1,000,000"),
        (151.123456, 6, "", "151.123"),
        (-0.5, 4, "+", "-0.5"),
        (126.02, 6, "", "126.02"),
        (2e-7, 4, "", "2e-07"),
        (3e20, 4, "", "3e+20"),
    ],
)
def test_a_number_has_all_digits_before_the_point(value: float, digits: int, sign: str, text: str) -> None:
    assert plain_number(value, digits, sign) == text
    assert score(31_602.2) == "31,602"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0000"),
        (0.000123456, "0.0001235"),
        (0.98765, "0.9877"),
        (-2.34567, "-2.3457"),
        (31.5, "31.50"),
        (126.0234, "126.0"),
        (-999.91, "-999.9"),
        (1234.56, "1,235"),
    ],
)
def test_a_score_shows_fewer_decimals_of_larger_numbers(value: float, text: str) -> None:
    assert score(value) == text
    assert rounded([value]) == [text]


def test_numbers_that_belong_together_have_equally_many_decimals() -> None:
    assert rounded([101.26, 98.714, 103.5], "+") == ["+101.3", "+98.7", "+103.5"]
    assert rounded([0.5, -0.00001, 0.0], "+") == ["+0.5000", "+0.0000", "+0.0000"]
    assert rounded([1234.56, 987.654]) == ["1,235", "987.7"]


@pytest.mark.parametrize(
    ("name", "shown"),
    [("validation_r2", "Validation R²"), ("micro_f1", "Micro F1"), ("recall_at_10", "Recall@10"), ("hits", "Hits")],
)
def test_a_metric_has_one_title(name: str, shown: str) -> None:
    assert title(name) == shown


def test_a_job_is_done_at_its_end_alone():
    assert [done(99.99), done(100.0), done(0.0)] == ["99", "100", "0"]
