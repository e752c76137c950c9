"""A student that learns from a teacher: what the teacher says is asked once and kept."""

import csv
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from preprocessors import labels_of
from ranks import run_on
from tiny_image_models import save_vit
from trainers import Setup, image_setup, train
from trainjob import Predictor
from trainjob.api import Model, TrainJob, TrainJobSpec
from trainjob.api.training import Distillation
from trainjob.data import Examples, Fitted, fit, prepare_examples
from trainjob.driver import distillation
from trainjob.driver.distillation import soft_labels
from trainjob.errors import DataError, UserError
from trainjob.kinds.targets.class_losses import binary_cross_entropy, classifier_of, cross_entropy, distilled_losses
from trainjob.models import build, save_model
from trainjob.storage import Folder

TEXT = {
    "textClassifier": {"encoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "vocabularySize": 200}, "maxLength": 16}
}
IMAGE = {"imageClassifier": {"mlp": {"hidden": [8]}}}


@pytest.fixture(autouse=True)
def _forget_teachers() -> None:
    distillation._loaded.cache_clear()  # noqa: SLF001


def spec_of(data: Path, teacher: Path | None = None, unlabelled: Path | None = None, **model: Any) -> TrainJobSpec:
    is_text = (data / "train.csv").exists() or data.suffix == ".csv"
    source = data if data.suffix else data / ("train.csv" if is_text else "train")
    dataset: dict[str, Any] = {"train": {"uri": str(source)}}
    if is_text:
        dataset |= {"text": ["title", "body"], "label": "label"}
    if unlabelled is not None:
        dataset["unlabelled"] = {"uri": str(unlabelled)}
    training = {} if teacher is None else {"distillation": {"teacher": str(teacher)}}
    spec = {"model": model or (TEXT if is_text else IMAGE), "dataset": dataset, "training": training}
    return TrainJobSpec.model_validate(spec)


def write_teacher(folder: Path, data: Path, **model: Any) -> Path:
    """A model that was never trained, in `folder`."""
    spec = spec_of(data, **model)
    fitted = fit(spec)
    torch.manual_seed(1)
    save_model(build(spec.model, fitted.preprocessor), fitted.preprocessor, folder)
    return folder


def labelled_rows(spec: TrainJobSpec, run: Path) -> tuple[Fitted, Examples]:
    fitted = fit(spec)
    train = soft_labels(spec, fitted, Folder(str(run)), on_ray=False)
    return fitted, prepare_examples(spec, fitted, train)["train"]


def unlabelled_csv(file: Path, texts: Path, header: bool = True) -> Path:
    """The test set's texts, with labels that no training row has."""
    with (texts / "test.csv").open(newline="") as rows, file.open("w", newline="") as output:
        content = list(csv.reader(rows))
        writer = csv.writer(output)
        writer.writerows([content[0]] if header else [])
        writer.writerows([*row[:2], "purple"] for row in content[1:])
    return file


def test_the_teachers_logits_go_with_each_row(tmp_path: Path, texts: Path) -> None:
    teacher = write_teacher(tmp_path / "teacher", texts)
    spec = spec_of(texts, teacher)
    fitted, rows = labelled_rows(spec, tmp_path / "run")
    plain = prepare_examples(spec, fitted)["train"]
    np.testing.assert_array_equal(rows.values, plain.values)
    np.testing.assert_array_equal(rows.labels, plain.labels)
    assert rows.teacher is not None
    assert rows.teacher.dtype == np.float32
    assert rows.teacher.shape == (fitted.training_rows, 4)
    assert plain.teacher is None
    decoded = [fitted.preprocessor.input.tokenizer.decode(plain.take(np.array([i])).values.tolist()) for i in (0, 7)]  # pyrefly: ignore[missing-attribute]
    assert len(decoded) == 2
    taken = rows.take(np.array([5, 2]))
    np.testing.assert_array_equal(taken.teacher, rows.teacher[[5, 2]])


def test_unlabelled_rows_come_after_the_others(tmp_path: Path, texts: Path) -> None:
    """Whatever their label column says; the logits are those that the teacher gives these texts."""
    teacher = write_teacher(tmp_path / "teacher", texts)
    more = unlabelled_csv(tmp_path / "more.csv", texts)
    fitted, rows = labelled_rows(spec_of(texts, teacher, more), tmp_path / "run")
    assert fitted.rows == {"train": 480, "validation": 121, "unlabelled": 151}
    assert fitted.training_rows == len(rows) == 631
    assert (labels_of(rows)[480:] == -1).all()
    assert (labels_of(rows)[:480] >= 0).all()
    with more.open(newline="") as file:
        table = [{"title": row["title"], "body": row["body"]} for row in csv.DictReader(file)]
    expected = Predictor.load(teacher).outputs(table).numpy()
    assert rows.teacher is not None
    np.testing.assert_allclose(rows.teacher[480:], expected, rtol=1e-4, atol=1e-5)


def test_it_is_asked_once(tmp_path: Path, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saved logits suffice even if the teacher is gone; those that a kill prevented are computed again."""
    monkeypatch.setattr("trainjob.data.read.chunking.TASK_BYTES", 1)
    teacher, run = write_teacher(tmp_path / "teacher", texts), tmp_path / "run"
    more = unlabelled_csv(tmp_path / "more.csv", texts)
    spec = spec_of(texts, teacher, more)
    _, rows = labelled_rows(spec, run)
    files = sorted((run / "soft-labels").iterdir())
    assert [file.name for file in files] == ["00000.parquet", "00001.parquet"]
    stamps = [file.stat().st_mtime_ns for file in files]
    distillation._loaded.cache_clear()  # noqa: SLF001
    files[1].unlink()
    _, again = labelled_rows(spec, run)
    assert files[0].stat().st_mtime_ns == stamps[0]
    np.testing.assert_array_equal(again.teacher, rows.teacher)
    (teacher / "config.json").unlink()
    distillation._loaded.cache_clear()  # noqa: SLF001
    _, again = labelled_rows(spec, run)
    np.testing.assert_array_equal(again.teacher, rows.teacher)


def test_images(tmp_path: Path, images: Path) -> None:
    """Unlabelled ones lie in no class folder."""
    teacher = write_teacher(tmp_path / "teacher", images)
    spec = spec_of(images, teacher, images / "test" / "digit-3")
    fitted, rows = labelled_rows(spec, tmp_path / "run")
    assert rows.teacher is not None
    assert rows.teacher.shape == (fitted.rows["train"] + fitted.rows["unlabelled"], 5)
    assert (labels_of(rows) == -1).sum() == fitted.rows["unlabelled"] > 0


def test_a_pretrained_network_teaches_a_small_one(tmp_path: Path, images: Path) -> None:
    """The teacher resizes images itself; the student takes them unchanged."""
    network = {"imageClassifier": {"pretrained": str(save_vit(tmp_path / "vit"))}}
    teacher = write_teacher(tmp_path / "teacher", images, **network)
    spec = spec_of(images, teacher)
    _, rows = labelled_rows(spec, tmp_path / "run")
    assert rows.lengths.tolist() == [64] * len(rows)
    first = rows.take(np.arange(9))
    logits = Predictor.load(teacher).outputs(first.values.reshape(-1, 8, 8)).numpy()
    assert first.teacher is not None
    np.testing.assert_allclose(first.teacher, logits, rtol=1e-4, atol=1e-5)


def test_a_teacher_that_is_none(tmp_path: Path, texts: Path, images: Path) -> None:
    def refused(teacher: Path, data: Path = texts, **model: Any) -> str:
        with pytest.raises(UserError, match=r"^spec\.training\.distillation\.teacher: ") as error:
            labelled_rows(spec_of(data, teacher, **model), tmp_path / "run")
        assert not (tmp_path / "run" / "soft-labels").exists()
        return str(error.value)

    assert "is not a run's folder: expected" in refused(tmp_path / "nothing")
    assert "is this run itself" in refused(tmp_path / "run")
    assert "is this run itself" in refused(tmp_path / "run" / "model")
    unfinished = tmp_path / "unfinished"
    unfinished.mkdir()
    (unfinished / "trainjob.yaml").write_text("")
    assert "has not finished" in refused(unfinished)
    (unfinished / "summary.json").write_text("{}")
    assert "has no trainjob model: a function trained it" in refused(unfinished)
    pixels = write_teacher(tmp_path / "pixels", images)
    assert "is a model for images, and this one is for texts" in refused(pixels)
    words = write_teacher(tmp_path / "words", texts)
    assert "is a model for texts, and this one is for images" in refused(words, images)
    other = tmp_path / "other.csv"
    other.write_text((texts / "train.csv").read_text().replace(",red\n", ",pink\n").replace(",red\r\n", ",pink\r\n"))
    stranger = write_teacher(tmp_path / "stranger", other)
    assert "has other classes; it alone has pink; the training rows alone has red" in refused(stranger)
    diverged = write_teacher(tmp_path / "diverged", texts)
    weights = load_file(diverged / "model.safetensors")
    save_file({name: weight * math.nan for name, weight in weights.items()}, diverged / "model.safetensors")
    assert "the teacher's answers are not numbers" in refused(diverged)
    sigmoids: dict[str, Any] = {"textClassifier": TEXT["textClassifier"] | {"loss": {"binaryCrossEntropy": {}}}}
    assert "was trained with another loss" in refused(words, **sigmoids)


def test_odd_unlabelled_rows(tmp_path: Path, texts: Path) -> None:
    teacher, empty, other = write_teacher(tmp_path / "teacher", texts), tmp_path / "empty.csv", tmp_path / "other.csv"
    empty.write_text("title,body\n")
    with pytest.raises(DataError, match=r"empty\.csv has no rows"):
        fit(spec_of(texts, teacher, empty))
    other.write_text("title\nx\n")
    with pytest.raises(DataError, match=r'other\.csv has no column "body"'):
        fit(spec_of(texts, teacher, other))
    with pytest.raises(UserError, match=r"nothing\.csv"):
        fit(spec_of(texts, teacher, tmp_path / "nothing.csv"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"training": {}}, "dataset.unlabelled: needs training.distillation"),
        ({"model": {"function": {"name": "a:b"}}, "dataset": None}, ": a student learns its teacher's probabilities"),
        ({"training": {"distillation": {"teacher": "x", "weight": 0}}}, "greater than 0"),
        ({"training": {"distillation": {"teacher": "x", "weight": 1.5}}}, "less than or equal to 1"),
        ({"training": {"distillation": {"teacher": "x", "temperature": 0}}}, "greater than 0"),
        ({"training": {"distillation": {"teacher": "x", "temperature": math.nan}}}, "finite number"),
        ({"training": {"distillation": {"teacher": "ftp://x"}}}, "pattern"),
        ({"training": {"distillation": {}}}, "Field required"),
    ],
)
def test_what_a_trainjob_may_not_say(change: dict[str, Any], message: str) -> None:
    dataset = {"train": {"uri": "a.csv"}, "unlabelled": {"uri": "b.csv"}, "text": ["x"], "label": "y"}
    spec = {"model": TEXT, "dataset": dataset, "training": {"distillation": {"teacher": "x"}}} | change
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": "run"}}
    with pytest.raises(ValueError, match=message):
        TrainJob.model_validate(document | {"spec": spec})


def losses_of(kind: str, weight: float, temperature: float = 3.0) -> Any:
    model = Model.model_validate({"imageClassifier": {"mlp": {}, "loss": {kind: {}}}})
    spec = Distillation(teacher="x", weight=weight, temperature=temperature)
    loss = classifier_of(model).loss
    return distilled_losses(loss, spec, cross_entropy if kind == "crossEntropy" else binary_cross_entropy)


@pytest.mark.parametrize(
    ("kind", "hard"), [("crossEntropy", cross_entropy), ("binaryCrossEntropy", binary_cross_entropy)]
)
def test_the_loss_is_a_mean_of_both(kind: str, hard: Any) -> None:
    torch.manual_seed(0)
    logits, teacher, labels = torch.randn(5, 3), torch.randn(5, 3), torch.tensor([0, 1, 2, -1, -1])
    soft, both = losses_of(kind, 1.0)(logits, labels, teacher), losses_of(kind, 0.3)(logits, labels, teacher)
    own = hard(logits, labels.clamp(min=0))
    torch.testing.assert_close(both[:3], 0.3 * soft[:3] + 0.7 * own[:3])
    torch.testing.assert_close(both[3:], 0.3 * soft[3:])
    assert (soft > 0).all()
    torch.testing.assert_close(losses_of(kind, 1.0)(teacher, labels, teacher), torch.zeros(5), atol=1e-6, rtol=0)


def test_the_softmaxes_divergence_at_a_temperature() -> None:
    logits, teacher = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([[0.0, 3.0, 1.0]])
    p, q = torch.softmax(teacher / 2, 1), torch.softmax(logits / 2, 1)
    expected = 4 * (p * (p / q).log()).sum(1)
    torch.testing.assert_close(losses_of("crossEntropy", 1.0, 2.0)(logits, torch.tensor([0]), teacher), expected)


def test_gradients_hardly_depend_on_a_high_temperature() -> None:
    """The factor of the squared temperature keeps them so."""
    teacher, norms = torch.tensor([[2.0, -1.0, 0.5]]), []
    for temperature in (20.0, 200.0):
        logits = torch.zeros(1, 3, requires_grad=True)
        losses_of("crossEntropy", 1.0, temperature)(logits, torch.tensor([0]), teacher).sum().backward()
        assert logits.grad is not None
        norms.append(logits.grad.norm().item())
    assert norms[0] == pytest.approx(norms[1], rel=0.1)


def test_a_student_that_is_stopped_ends_with_the_same_weights(tmp_path: Path) -> None:
    """Some of its rows have no label; without what the teacher says of the others, it would learn something else."""

    def setup_in(name: str, **spec: Any) -> Setup:
        setup = image_setup(tmp_path / name, training=spec, checkpoints={"everySteps": 2})
        rows = setup.examples["train"]
        teacher = np.random.default_rng(0).normal(size=(len(rows), 3)).astype(np.float32)
        labels = np.where(np.arange(len(rows)) % 4 == 0, -1, labels_of(rows))
        taught = replace(rows, labels=labels if spec else rows.labels, teacher=teacher)
        return replace(setup, examples=setup.examples | {"train": taught})

    distillation = {"distillation": {"teacher": "x", "weight": 0.5}}
    (whole,) = run_on(1, train, setup_in("whole", **distillation))
    stopped = setup_in("stopped", **distillation)
    for batches in (3, 4, None):
        (again,) = run_on(1, train, stopped, batches)
    assert again.resumed is not None
    assert again.records[-1]["train_loss"] == whole.records[-1]["train_loss"]
    for name, weights in whole.weights.items():
        np.testing.assert_array_equal(again.weights[name], weights)
    (alone,) = run_on(1, train, setup_in("alone"))
    assert any(not np.array_equal(alone.weights[name], weights) for name, weights in whole.weights.items())
