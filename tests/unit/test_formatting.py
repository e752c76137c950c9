import pytest

from trainjob.formatting import done, plain_number, score, title


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
    ("name", "shown"),
    [("validation_r2", "Validation R²"), ("micro_f1", "Micro F1"), ("recall_at_10", "Recall@10"), ("hits", "Hits")],
)
def test_a_metric_has_one_title(name: str, shown: str) -> None:
    assert title(name) == shown


def test_a_job_is_done_at_its_end_alone():
    assert [done(99.99), done(100.0), done(0.0)] == ["99", "100", "0"]
