"""The report's section on the data."""

from pathlib import Path

from report_runs import TEXT_JOB, Page, finish, write_run
from trainjob.api.data_profile import ClassSizes, DataProfile, Dropped, SetProfile
from trainjob.report.render import render

PROFILE = DataProfile(
    sets={
        "train": SetProfile(
            rows=8000,
            duplicates=1200,
            contradictions=7,
            empty=3,
            dropped=[Dropped(reason="the label is <b>", rows=62, first=["a.csv, row 3", "a.csv, row 9"])],
        ),
        "validation": SetProfile(rows=100, in_training=0),
        "test": SetProfile(rows=100, in_training=90),
    },
    cut_share=0.25,
    class_sizes=ClassSizes(
        classes=2, rare=1, smallest="ham", smallest_rows=9, median_rows=4000, largest="spam", largest_rows=7991
    ),
    folders=["data: train/ and valid/ taken as the train and validation rows"],
)


def test_the_section_on_the_data(tmp_path: Path) -> None:
    run = write_run(tmp_path, TEXT_JOB, [])
    finish(run, ["ham", "spam"], profile=PROFILE)
    page = Page(render(run))
    assert page.tables["rows"][0][4] == "Without text"
    assert page.tables["rows"][1:] == [
        ["train", "8,000", "1,200", "7", "3", "", "62"],
        ["validation", "100", "0", "0", "0", "0", "0"],
        ["test", "100", "0", "0", "0", "90", "0"],
    ]
    assert page.terms["Smallest class"] == "ham: 9 training rows"
    assert page.terms["Training texts longer than maxLength"] == "25.0%"
    assert "Dropped 62 rows of train: the label is <b> (a.csv, row 3; a.csv, row 9 and 60 more)." in page.text
    assert "data: train/ and valid/ taken as the train and validation rows." in page.text
    # in the header and in the section
    alarm = "90 (90%) of the test rows are among the training rows"
    assert page.text.count(alarm) == 2 == sum(a.get("class") == "alarm" for _, a in page.elements)
    assert page.text.index(alarm) < page.text.index("Accuracy, test")


def test_rows_of_a_table_have_no_text_that_can_be_empty(tmp_path: Path) -> None:
    job = TEXT_JOB.replace("textClassifier: {encoder: {layers: 1}}", "tableClassifier: {tabm: {}}")
    run = write_run(tmp_path, job.replace("text: [body], ", ""), [])
    finish(run, ["ham", "spam"], profile=PROFILE)
    page = Page(render(run))
    assert page.tables["rows"][0][3:] == ["Same input, other label", "Among the training rows", "Dropped"]
    assert page.tables["rows"][1] == ["train", "8,000", "1,200", "7", "", "62"]


def test_a_run_of_an_earlier_version_has_no_such_section(tmp_path: Path) -> None:
    run = write_run(tmp_path, TEXT_JOB, [])
    finish(run, ["ham", "spam"])
    assert "data" not in Page(render(run)).headings
