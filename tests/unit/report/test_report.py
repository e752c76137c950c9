import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib import rc_context
from matplotlib.figure import Figure
from typer.testing import CliRunner

from report_runs import FUNCTION_JOB, TEXT_JOB, Page, epoch, finish, step, summary, write_run
from trainjob.errors import UserError
from trainjob.evaluation.paired import estimate_scores, lead
from trainjob.formatting import MISSING
from trainjob.report.charts import MAX_METRICS, STYLE, charts, inline_svg
from trainjob.report.formatting import with_code
from trainjob.report.render import render
from trainjob.runs.comparison import Baseline, Comparison, write_comparison
from trainjob.storage import Folder


@pytest.fixture
def text_run(tmp_path: Path) -> Folder:
    records = [step(n, loss=2.0 / n, learning_rate=1e-3 / n, samples_per_second=100.0) for n in range(1, 41)]
    records += [epoch(n, train_loss=1.0 / n, validation_loss=1.1 / n, validation_f1=0.2 * n) for n in range(1, 5)]
    run = write_run(tmp_path, TEXT_JOB, records)
    finish(run, ["ham", "spam"])
    return run


def test_the_tables_hold_the_scores(text_run: Folder) -> None:
    tables = Page(render(text_run)).tables
    assert tables["overall"][:4] == [
        ["Measure", "Test", "Validation"],
        ["Rows", "100", "100"],
        ["Loss", "0.3000", "0.5000"],
        ["Accuracy", "0.8500", "0.8500"],
    ]
    # of the 45 validation rows predicted as ham 40 are; of the 50 that are ham 40 are found
    assert tables["classes-validation"][1][:5] == ["ham", "50", f"{40 / 45:.4f}", "0.8000", f"{2 * 40 / 95:.4f}"]
    assert [line[1:] for line in tables["confusion-validation"][1:]] == [["40", "10"], ["5", "45"]]
    assert [line[1:] for line in tables["confusion-test"][1:]] == [["45", "10"], ["5", "40"]]
    assert tables["confused-validation"][1:] == [["ham", "spam", "10", "20.0%"], ["spam", "ham", "5", "10.0%"]]


def test_the_first_table_compares_the_model_with_the_baselines(text_run: Folder) -> None:
    assert "baselines" not in Page(render(text_run)).tables
    labels = np.arange(100) % 2
    predicted = np.where(np.arange(100) < 90, labels, 1 - labels)
    comparison = Comparison(
        set_name="validation",
        rows=100,
        of_rows=2000,
        model=estimate_scores(labels, predicted, 2),
        baselines=[
            Baseline(
                name="tfidf",
                standing=estimate_scores(labels, predicted, 2),
                lead=lead(labels, predicted, predicted, 2),
                notes=["learned from few rows"],
            ),
            Baseline(name="<b>", error="there are no words"),
        ],
    )
    write_comparison(text_run, comparison)
    page = Page(render(text_run))
    assert next(iter(page.tables)) == "baselines"
    model, tfidf, failed = page.tables["baselines"][1:]
    assert model[0] == "model"
    assert model[1] == tfidf[1]
    assert model[1].startswith("0.9000 [0.8")
    assert tfidf[3:] == ["+0.0000 [+0.0000, +0.0000]", "no clear difference"]
    assert failed == ["<b>", *[MISSING] * 4]
    for words in ("100 validation rows, drawn at random of 2,000", "There is no test set", "learned from few rows"):
        assert words in page.text
    assert "<b> could not be computed: there are no words" in page.text
    assert "scored better" not in page.text


def test_a_baseline_that_scored_better_is_told_even_if_it_may_be_chance(text_run: Folder) -> None:
    labels = np.arange(100) % 2
    predicted, better = (np.where(np.arange(100) < right, labels, 1 - labels) for right in (90, 93))
    tfidf = Baseline(name="tfidf", standing=estimate_scores(labels, better, 2), lead=lead(labels, predicted, better, 2))
    model = estimate_scores(labels, predicted, 2)
    write_comparison(text_run, Comparison(set_name="test", rows=100, of_rows=100, model=model, baselines=[tfidf]))
    text = Page(render(text_run)).text
    assert re.search(
        r"tfidf scored better than this model: its F1 is better by 0\.0300 \[0\.0000, 0\.\d+] on 100 test rows\. The "
        r"interval includes 0, so it may be chance\.",
        text,
    ), text
    assert text.index("tfidf scored better") < text.index("Was it worth training?")


def test_errors_are_drawn_together_in_the_unit_of_the_label() -> None:
    rows = [epoch(n, validation_rmse=0.5, validation_r2=0.5, validation_mae=0.4) for n in (1, 2)]
    found = charts([], rows, ["validation_rmse", "validation_mae"], "the unit of price")
    assert [each.title for each in found] == ["Errors, in the unit of price", "Validation R²"]
    assert [each.name for each in found[0].series] == ["validation RMSE", "validation MAE"]


def test_commands_in_sentences_are_code() -> None:
    assert with_code("<b> `trainjob run` & `x`") == "&lt;b&gt; <code>trainjob run</code> &amp; <code>x</code>"


def test_every_epoch_is_there_in_numbers_and_the_best_is_marked(text_run: Folder) -> None:
    table = Page(render(text_run)).tables["epochs"]
    assert table[0] == ["Epoch", "Step", "Train loss", "Validation loss", "Validation F1"]
    assert table[2] == ["2 (best)", "20", "0.5000", "0.5500", "0.4000"]
    assert [line[0] for line in table[1:]] == ["1", "2 (best)", "3", "4"]


def test_the_facts_of_the_run(text_run: Folder) -> None:
    page = Page(render(text_run))
    expected = {
        "Accuracy, test": "85.0%",
        "From start to end": "1 min 40 s",
        "Samples per second": "2,346",
        "Rows, train": "8,000",
        "Parameters": "1,234,567",
        "Best checkpoint": "epoch 2, step 20",
        "Best validation loss": "0.4321",
        "Started": "2025-03-12 14:03:05 UTC",
        "Numeric precision": "bfloat16",
        "Workers": "2 (cpu)",
        "Memory": "15.5 GiB",
        "torch": "2.15.0",
    }
    assert {term: page.terms[term] for term in expected} == expected
    assert TEXT_JOB.split() == page.text[page.text.index("apiVersion") :].split()
    assert f"trainjob predict {text_run.uri} --text" in page.text
    assert f'Predictor.load("{text_run.uri}")' in page.text


def test_what_the_stages_leave_of_the_time_is_other(text_run: Folder) -> None:
    assert Page(render(text_run)).tables["stages"][1:] == [
        ["start", "10.0 s", "10.0%"],
        ["training", "1 min 00 s", "60.0%"],
        ["evaluation", "20.0 s", "20.0%"],
        ["other", "10.0 s", "10.0%"],
    ]


def test_the_time_between_attempts_is_no_stage(text_run: Folder) -> None:
    """Hours may lie between them, in which nothing happened."""
    text_run.write("summary.json", summary(attempts=2, seconds={"start": 10.0, "training": 30.0}))
    page = Page(render(text_run))
    assert page.terms["Taken by 2 attempts"] == "40.0 s"
    assert "From start to end" not in page.terms
    assert page.tables["stages"][1:] == [
        ["start", "10.0 s", "25.0%"],
        ["training", "30.0 s", "75.0%"],
    ]


def test_each_chart_is_described_in_words(text_run: Folder) -> None:
    described = [a["aria-label"] for _, a in Page(render(text_run)).elements if a.get("role") == "img"]
    assert described == [
        "Loss over the course of training: training, smoothed from 2 to 0.05; train loss from 1 to 0.25; "
        "validation loss from 1.1 to 0.275.",
        "Validation F1 over the course of training: validation F1 from 0.2 to 0.8.",
        "Learning rate over the course of training: learning rate from 0.001 to 2.5e-05.",
        "Samples per second over the course of training: samples per second from 100 to 100.",
    ]


def test_nothing_outside_the_file_is_referred_to(text_run: Folder) -> None:
    html = render(text_run)
    page = Page(html)
    tags = {tag for tag, _ in page.elements}
    assert "svg" in tags
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "base"}
    references = [page.attributes(name) for name in ("href", "xlink:href", "src", "srcset", "action")]
    assert all(reference.startswith("#") for found in references for reference in found)
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\((.*?)\)", html))


def test_ids_are_unique_and_references_within_the_charts_are_met(text_run: Folder) -> None:
    html = render(text_run)
    page = Page(html)
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert page.open == []
    targets = set(re.findall(r"url\(#(.*?)\)", html)) | {each[1:] for each in page.attributes("xlink:href")}
    assert targets
    assert targets <= set(ids)
    assert set(page.attributes("aria-labelledby")) <= set(ids)


def test_every_color_of_the_charts_follows_the_scheme(text_run: Folder) -> None:
    html = render(text_run)
    charts = "".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    used = set(re.findall(r"var\((--[\w-]+)\)", html))
    assert "--series-1" in used
    assert used - {"--cell", "--deep"} <= set(re.findall(r"(--[\w-]+):", html))
    assert re.findall(r"(?:stroke|fill): #\w+", charts) == []


def test_names_that_look_like_markup_are_text(tmp_path: Path) -> None:
    name, metric = "<script>alert('x')</script>", 'a"><b>$x_loss'
    job = TEXT_JOB.replace("label: kind", 'label: "<img src=x onerror=alert(1)>"')
    run = write_run(tmp_path, job, [epoch(1, **{metric: 1.0, "validation_loss": 2.0}), epoch(2, validation_loss=1.0)])
    finish(run, [name, "a & b"])
    page = Page(render(run))
    assert not {tag for tag, _ in page.elements} & {"script", "b", "img"}
    assert page.tables["classes-test"][1][0] == name
    assert page.tables["classes-test"][2][0] == "a & b"
    assert 'A"><b>$x loss' in page.tables["epochs"][0]
    assert page.tables["epochs"][2] == ["2 (best)", "20", MISSING, "1.0000"]
    assert "<img src=x onerror=alert(1)>" in page.text


def test_a_run_under_way_shows_what_there_is(tmp_path: Path) -> None:
    run = write_run(tmp_path, TEXT_JOB, [step(1, loss=2.0), step(12, loss=1.0), epoch(1, train_loss=1.5)])
    page = Page(render(run))
    assert "Not finished" in page.text
    assert "Epochs completed: 1 of 4." in page.text
    assert page.terms["Train loss, epoch 1"] == "1.5000"
    assert page.headings == ["curves", "run"]


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    run = Folder(str(tmp_path))
    run.write("trainjob.yaml", TEXT_JOB.encode())
    page = Page(render(run))
    assert "No epoch is complete yet." in page.text
    assert page.headings == ["run"]


def test_a_function_with_metrics_of_its_own(tmp_path: Path) -> None:
    records = [epoch(n, loss=1.0 / n, perplexity=300.0 / n, hits=0.5, note="free", ok=True) for n in (1, 2)]
    run = write_run(tmp_path, FUNCTION_JOB, records)
    run.write("summary.json", summary(name="own-loop", metrics={"perplexity": 150.0}, checkpoint="/runs/own-loop/c2"))
    page = Page(render(run))
    assert page.tables["epochs"] == [
        ["Epoch", "Step", "Loss", "Perplexity", "Hits"],
        ["1", "10", "1.0000", "300.0", "0.5000"],
        ["2", "20", "0.5000", "150.0", "0.5000"],
    ]
    titles = [label.split(" over ")[0] for label in page.attributes("aria-label")]
    assert titles == ["Loss", "Hits", "Perplexity"]
    assert page.headings == ["curves", "run"]
    assert "Function loop:train" in page.text
    assert page.terms["Perplexity"] == "150.0"
    assert page.terms["Latest checkpoint"] == "/runs/own-loop/c2"


def test_a_metric_that_is_not_finite_leaves_a_gap(tmp_path: Path) -> None:
    run = write_run(tmp_path, FUNCTION_JOB, [epoch(1, loss=float("nan")), epoch(2, loss=0.5), epoch(3, loss=0.25)])
    page = Page(render(run))
    assert [line[2] for line in page.tables["epochs"][1:]] == ["NaN", "0.5000", "0.2500"]
    assert "Not drawn, since they are NaN, infinite or beyond 1e+300: loss (1 of 3 values)." in page.text
    assert page.attributes("aria-label") == ["Loss over the course of training: loss from 0.5 to 0.25."]


def test_a_long_run_is_drawn_with_few_points(tmp_path: Path) -> None:
    short = write_run(tmp_path / "short", TEXT_JOB, [step(n, learning_rate=n % 2) for n in range(1, 401)])
    long = write_run(tmp_path / "long", TEXT_JOB, [step(n, learning_rate=n % 2) for n in range(1, 40_201)])
    assert len(render(long)) < 1.2 * len(render(short))


def test_many_metrics_are_spread_over_charts_that_can_be_told_apart(tmp_path: Path) -> None:
    values = {f"part{n}_loss": 2.0 for n in range(7)} | {f"hits{n}": 0.5 for n in range(6)}
    page = Page(render(write_run(tmp_path, FUNCTION_JOB, [epoch(1, **values)])))
    titles = [label.split(" over ")[0] for label in page.attributes("aria-label")]
    assert titles == [f"{name} ({number} of 2)" for name in ("Loss", "Metrics") for number in (1, 2)]
    assert all(name.replace("_", " ") in page.text for name in values)


def test_of_ten_thousand_metrics_the_first_are_shown(tmp_path: Path) -> None:
    metrics = {f"k{number}": 2.0 * number for number in range(10_000)}
    run = write_run(tmp_path, FUNCTION_JOB, [epoch(number, **metrics) for number in (1, 2)])
    page = Page(render(run))
    assert len([tag for tag, _ in page.elements if tag == "svg"]) == MAX_METRICS
    assert page.tables["epochs"][0][2:] == [f"K{number}" for number in range(MAX_METRICS)]
    assert "40 of 10,000 metrics are shown here; metrics.jsonl and TensorBoard's files have all." in page.text


def test_numbers_of_any_size_are_drawn(tmp_path: Path) -> None:
    values = [{"a": -1e308, "b": 5e-324, "c": 2**53, "": 1}, {"a": 1e308, "b": 0.0, "c": 7, "": 2}]
    run = write_run(tmp_path, FUNCTION_JOB, [epoch(number, **each) for number, each in enumerate(values, start=1)])
    page = Page(render(run))
    assert page.tables["epochs"][2][2:] == ["1e+308", "0.0000", "7", "2"]
    assert len([tag for tag, _ in page.elements if tag == "svg"]) == 3
    assert "beyond 1e+300: a (2 of 2 values)" in page.text


def test_too_many_classes_for_a_matrix(tmp_path: Path) -> None:
    run = write_run(tmp_path, TEXT_JOB, [])
    confusion = np.eye(61, dtype=np.int64) * 9
    confusion[3, 4] = 1
    finish(run, [f"class {n}" for n in range(61)], confusion)
    tables = Page(render(run)).tables
    assert "confusion-validation" not in tables
    assert tables["confused-validation"][1:] == [["class 3", "class 4", "1", "10.0%"]]
    assert len(tables["classes-validation"]) == 1 + 61


def test_of_very_many_classes_the_worst_are_shown(tmp_path: Path) -> None:
    run = write_run(tmp_path, TEXT_JOB, [])
    confusion = np.zeros((3000, 3000), np.int64)
    confusion[range(2999), range(2999)] = 5
    confusion[7, 8] = 3
    confusion[9, 8] = 1
    finish(run, [f"class {n}" for n in range(3000)], confusion)
    assert len(run.read("evaluation.json")) < 2_000_000
    page = Page(render(run))
    classes = page.tables["classes-validation"][1:]
    assert len(classes) == 100
    assert [line[:2] for line in classes[:4]] == [
        ["class 8", "5"],
        ["class 7", "8"],
        ["class 9", "6"],
        ["class 0", "5"],
    ]
    assert "The 100 of 3,000 classes with the lowest F1" in page.text
    assert [line[:3] for line in page.tables["confused-validation"][1:]] == [
        ["class 7", "class 8", "3"],
        ["class 9", "class 8", "1"],
    ]


def test_the_report_is_the_same_each_time(text_run: Folder) -> None:
    assert render(text_run) == render(text_run)


def test_a_folder_that_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"is not a run's folder: expected trainjob\.yaml there, found nothing"):
        render(Folder(str(tmp_path / "nothing")))


@pytest.mark.parametrize(
    "name", ["trainjob.yaml", "summary.json", "evaluation.json", "metrics.jsonl", "baselines.json"]
)
@pytest.mark.parametrize("content", [b"\xff\xfe", b"{", b"[1, 2]"])
def test_a_damaged_file_is_named(text_run: Folder, name: str, content: bytes) -> None:
    text_run.write(name, content)
    with pytest.raises(UserError, match=re.escape(f"{text_run.uri}/{name} is damaged")):
        render(text_run)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "it is empty"),
        (b"spec: {}", "apiVersion is required (and 3 more)"),
        (b"- 1", "expected a mapping (name: value), got a list"),
    ],
)
def test_a_damaged_trainjob_is_said_on_one_line(text_run: Folder, content: bytes, problem: str) -> None:
    text_run.write("trainjob.yaml", content)
    with pytest.raises(UserError) as caught:
        render(text_run)
    file = f"{text_run.uri}/trainjob.yaml"
    advice = "restore it from a copy, or train again (`trainjob run --fresh`)"
    assert str(caught.value) == f"{file} is damaged, or from another version of trainjob: {problem}; {advice}"


def test_names_in_any_script_are_drawn(recwarn: pytest.WarningsRecorder) -> None:
    with rc_context(STYLE):
        figure = Figure()
        figure.add_subplot().set_title("数据")
        assert "数据" in inline_svg(figure, "names")
    assert not recwarn.list


def test_the_command_writes_and_prints_where(text_run: Folder, tmp_path: Path) -> None:
    import typer

    from trainjob.cli.report import report

    app = typer.Typer()
    app.command()(report)
    within = CliRunner().invoke(app, [text_run.uri])
    assert within.output == f"{text_run.uri}/report.html\n"
    assert text_run.read("report.html").decode() == render(text_run)
    elsewhere = tmp_path / "there" / "mine.html"
    assert CliRunner().invoke(app, [text_run.uri, "--output", str(elsewhere)]).output == f"{elsewhere}\n"
    assert elsewhere.read_bytes() == text_run.read("report.html")
