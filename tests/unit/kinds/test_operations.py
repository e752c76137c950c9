"""What can be done with a model of each kind. Everything else is refused, with the reason and what to do instead."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from fastapi.testclient import TestClient
from kind_forms import FORMS, Fields, trainjob, write_rows
from typer.testing import CliRunner

from predictor_runs import finish, make_run
from trainjob import Predictor, TextGenerator
from trainjob.api.document import InvalidDocument, dotted
from trainjob.api.load import trainjob_of
from trainjob.cli.app import app
from trainjob.compress.variants import VariantRequest, compress
from trainjob.errors import UserError
from trainjob.evaluate import evaluate
from trainjob.kinds import KINDS
from trainjob.runs.folder import begin_attempt
from trainjob.serving.app import build_app
from trainjob.storage import Folder

ALL = frozenset(FORMS)


def of(*kinds: str) -> frozenset[str]:
    """The forms of these kinds."""
    return frozenset(form for form, (kind, *_) in FORMS.items() if kind in kinds)


FUNCTION, LANGUAGE_MODEL = of("function"), of("causalLM")
CLASSIFIERS = of("textClassifier", "imageClassifier", "tableClassifier")
REGRESSORS = of("textRegressor", "imageRegressor", "tableRegressor")
ROW_MODELS = ALL - FUNCTION - LANGUAGE_MODEL
SEVERAL_LABELS = frozenset(form for form in FORMS if form.endswith("with several labels"))


def test_every_kind_has_its_forms() -> None:
    assert {kind for kind, *_ in FORMS.values()} == set(KINDS)
    for kind, facts in KINDS.items():
        forms = {tuple(sorted(columns or {})) for form, (_, _, columns) in FORMS.items() if form in of(kind)}
        assert len(forms) >= max(1, len(facts.row_forms)), kind


@dataclass(frozen=True)
class Operation:
    """Something that a TrainJob may ask for."""

    changes: Fields
    """The fields that ask for it, by path; KIND stands for the kind."""
    works: frozenset[str]
    """The forms for which they are valid."""
    field: str = ""
    """The field in the error for other forms."""
    refusal: str | Callable[[str], str] = ""
    """That error, of any form or of one with this name."""


def kind_of(form: str) -> str:
    return FORMS[form][0]


def problems(form: str, changes: Fields) -> list[str]:
    """The errors of a form's TrainJob with these fields: each with its field."""
    document = trainjob(form, "s3://data/rows.csv")
    for path, value in changes.items():
        *parents, last = path.replace("KIND", kind_of(form)).split(".")
        part: Any = document["spec"]
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = copy.deepcopy(value)
    try:
        trainjob_of(document)
    except InvalidDocument as error:
        return [f"{dotted(problem.path)}: {problem.message}" for problem in error.problems]
    return []


def metrics(kind: str, of_rows: str = "") -> str:
    """The names of a kind's metrics, or of one form of its rows."""
    names = next((form.metrics for form in KINDS[kind].row_forms if form.noun == of_rows), KINDS[kind].metrics)
    return f"must be one of {', '.join(names)} for model.{kind}" + (f" of {of_rows}" if of_rows else "")


ROWS_OF_EMBEDDERS = {
    "textEmbedder of pairs": "pairs",
    "textEmbedder of triplets": "triplets",
    "textEmbedder of scores": "pairs with scores",
    "textEmbedder of classes": "texts with classes",
}


def metric(name: str, works: frozenset[str]) -> Operation:
    return Operation(
        {"checkpoints.metric": name, "training.earlyStopping": {"patience": 2}},
        works | FUNCTION,
        "spec.checkpoints.metric",
        lambda form: metrics(kind_of(form), ROWS_OF_EMBEDDERS.get(form, "")),
    )


def baseline(name: str, works: frozenset[str], kinds: str, **fields: Any) -> Operation:
    return Operation({f"baselines.{name}": fields}, works, f"spec.baselines.{name}", f"is for {kinds}")


SEARCH = {"search": "random", "trials": 2}
SHARDED = "textClassifier, textRegressor and causalLM"
OPERATIONS: dict[str, Operation] = {
    "search": Operation(
        {"tuning": {"parameters": {"training.optimizer.adamW.learningRate": {"logUniform": [1e-4, 1e-2]}}, **SEARCH}},
        ALL - FUNCTION,
        "spec.tuning",
        "is for textClassifier, textRegressor, tokenClassifier, textEmbedder, imageClassifier, imageRegressor, "
        "tableClassifier, tableRegressor and causalLM: a search sets fields of the TrainJob, and only your code knows "
        "the hyperparameters of a function; start a run for each value, and compare them with `trainjob compare`",
    ),
    "distillation": Operation(
        {"training.distillation": {"teacher": "s3://runs/teacher"}},
        CLASSIFIERS,
        "spec.training.distillation",
        "is for textClassifier, imageClassifier and tableClassifier: a student learns its teacher's probabilities of "
        "the classes; for another kind, take what `trainjob predict` writes with the teacher as labels",
    ),
    "sharding": Operation(
        {"training.sharding": "full", "workers": {"count": 2}},
        of("textClassifier", "textRegressor", "causalLM"),
        "spec.training.sharding",
        f"is for {SHARDED}: for other kinds, each worker has a copy of the model; if that does not fit into memory, "
        "train a smaller one",
    ),
    "activation checkpointing": Operation(
        {"training.activationCheckpointing": True},
        of("textClassifier", "textRegressor", "causalLM"),
        "spec.training.activationCheckpointing",
        f"is for {SHARDED}: the layers of other kinds keep their activations; if these do not fit into memory, lower "
        "training.batchSize",
    ),
    "elastic workers": Operation({"workers": {"count": 2, "minimum": 1}}, ALL),
    "compilation": Operation({"training.compile": True}, ALL),
    "accumulated gradients": Operation({"training.gradientAccumulation": 2}, ALL),
    "dropped rows": Operation(
        {"dataset.train": {"uri": "s3://data/rows.csv"}, "dataset.onBadRows": "drop"},
        ALL - FUNCTION,
        "spec.dataset.onBadRows",
        "a function gets its rows as they are, and drops what it cannot use itself",
    ),
    "unlabelled rows without a teacher": Operation(
        {"dataset.train": {"uri": "s3://data/rows.csv"}, "dataset.unlabelled": {"uri": "s3://data/more.csv"}},
        frozenset(),
        "spec.dataset.unlabelled",
        "needs training.distillation, whose teacher labels these rows",
    ),
    "stopping by the loss": metric("validation_loss", ALL),
    "stopping by F1": metric("validation_f1", CLASSIFIERS | of("tokenClassifier")),
    "stopping by RMSE": metric("validation_rmse", REGRESSORS),
    "stopping by rank correlation": metric("validation_spearman", REGRESSORS | {"textEmbedder of scores"}),
    "stopping by MRR": metric("validation_mrr", of("textEmbedder") - {"textEmbedder of scores"}),
    "stopping by triplets": metric("validation_triplet_accuracy", frozenset({"textEmbedder of triplets"})),
    "stopping by perplexity": metric("validation_perplexity", LANGUAGE_MODEL),
    "mostFrequent": baseline("mostFrequent", CLASSIFIERS, "textClassifier, imageClassifier and tableClassifier"),
    "mean": baseline("mean", REGRESSORS, "textRegressor, imageRegressor and tableRegressor"),
    "tfidf": baseline(
        "tfidf",
        of("textClassifier", "textRegressor", "textEmbedder"),
        "textClassifier, textRegressor and textEmbedder",
    ),
    "pixels": baseline("pixels", of("imageClassifier", "imageRegressor"), "imageClassifier and imageRegressor"),
    "linear": baseline("linear", of("tableClassifier", "tableRegressor"), "tableClassifier and tableRegressor"),
    "lightgbm": baseline("lightgbm", of("tableClassifier", "tableRegressor"), "tableClassifier and tableRegressor"),
    "knownStrings": baseline("knownStrings", of("tokenClassifier"), "tokenClassifier"),
    "languageModel": Operation(
        {"baselines.languageModel": {"endpoint": "http://vllm:8000/v1", "model": "tiny"}},
        of("textClassifier") - SEVERAL_LABELS,
        "spec.baselines.languageModel",
        lambda form: (
            "chooses one class for each text, and rows with dataset.labels have several labels: leave it out"
            if form == "textClassifier with several labels"
            else "is for textClassifier"
        ),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_operation_is_valid_or_refused_with_the_reason(form: str) -> None:
    expected = {
        name: []
        if form in operation.works
        else [f"{operation.field}: {operation.refusal(form) if callable(operation.refusal) else operation.refusal}"]
        for name, operation in OPERATIONS.items()
    }
    assert {name: problems(form, operation.changes) for name, operation in OPERATIONS.items()} == expected


@pytest.mark.parametrize(
    ("form", "changes", "refusal"),
    [
        (
            "textRegressor",
            {"model.textRegressor.classWeights": {"balanced": {}}},
            "spec.model.textRegressor.classWeights: is for textClassifier, imageClassifier and tableClassifier",
        ),
        ("textClassifier", {"model.textClassifier.lora": {}}, "spec.model.textClassifier.lora: is for causalLM"),
        (
            "textClassifier",
            {"training.oversampling": True},
            "spec.training.oversampling: unknown field: rows are not repeated or left out; for rare classes, set "
            "classWeights: {balanced: {}} in the model's section",
        ),
        (
            "textEmbedder of scores",
            {"model.textEmbedder.scale": 10.0},
            "spec.model.textEmbedder.scale: has no effect on pairs with scores: leave it out",
        ),
        (
            "textEmbedder of scores",
            {"tuning": {"parameters": {"model.textEmbedder.scale": {"choice": [10.0, 20.0]}}}}
            | {"checkpoints.metric": "validation_spearman"},
            "spec.tuning.parameters: model.textEmbedder.scale has no effect on pairs with scores: leave it out",
        ),
    ],
)
def test_a_field_of_another_kind_or_without_effect_is_refused(form: str, changes: Fields, refusal: str) -> None:
    assert problems(form, changes) == [refusal]


@pytest.mark.parametrize("form", sorted(REGRESSORS | (of("textEmbedder") - {"textEmbedder of scores"})))
def test_a_search_does_not_compare_losses_that_its_parameters_change(form: str) -> None:
    """The smallest scale or delta would have the smallest loss, whatever the model has learned."""
    (field,) = KINDS[kind_of(form)].scales_losses
    path = f"model.{kind_of(form)}.{field}"
    changes: Fields = {"tuning": {"parameters": {path: {"choice": [0.5, 1.0]}}}}
    if "huber" in field:
        changes["model.KIND.loss"] = {"huber": {}}
    other = "validation_mrr" if form in of("textEmbedder") else "validation_mae"
    assert problems(form, changes) == [
        f"spec.checkpoints.metric: must not be a loss where {path} is tuned: losses with different values of it cannot "
        "be compared; choose another metric"
    ]
    assert problems(form, changes | {"checkpoints.metric": other}) == []


@pytest.fixture(scope="module")
def run_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes the finished run of a form, whose model was never trained."""
    rows = write_rows(tmp_path_factory.mktemp("rows"))

    @cache
    def made(form: str) -> Path:
        folder, document = tmp_path_factory.mktemp("run"), trainjob(form, str(rows))
        if form in FUNCTION:
            begin_attempt(Folder(str(folder)), trainjob_of(document))
        else:
            make_run(folder, document["spec"])
        finish(Folder(str(folder)))
        return folder

    return made


def refusal(*arguments: str | Path) -> str:
    """The error of a command."""
    done = CliRunner().invoke(app, [*map(str, arguments)])
    assert isinstance(done.exception, UserError), done.output
    return str(done.exception)


@pytest.mark.parametrize("form", FORMS)
def test_a_model_is_evaluated_and_answers_over_http_or_the_refusal_says_why_not(
    form: str, run_of: Callable[[str], Path]
) -> None:
    run = run_of(form)
    if form in FUNCTION:
        no_model = f"{run} has no trainjob model: a function trained it and saved its own files; `trainjob pull --what "
        for command in (["evaluate", run, "rows.csv"], ["predict", run, "rows.csv"], ["serve", run]):
            assert refusal(*command).startswith(no_model)
        return
    rows = yaml.safe_load((run / "trainjob.yaml").read_text())["spec"]["dataset"]["train"]["uri"]
    new = Path(rows).with_name("new.csv")
    new.write_bytes(Path(rows).read_bytes())
    assert evaluate(Folder(str(run)), str(new)).headline()
    if form in LANGUAGE_MODEL:
        assert refusal("serve", run) == (
            f"{run} is a language model, which continues texts, and `trainjob serve` answers rows: use `trainjob "
            f"predict`, or give {run}/model to a server of language models, such as vLLM"
        )
        with pytest.raises(UserError, match="has a language model, which answers no rows: use `trainjob predict`"):
            Predictor.load(run)
        assert len(TextGenerator.load(run).generate(["Oslo"], max_new_tokens=3)) == 1
        return
    predictor = Predictor.load(run)
    with TestClient(build_app(predictor, "run")) as client:
        example = predictor.preprocessor.input.example()
        answer = client.post("/predict", json=example)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["predictions"]) == len(next(iter(example.values())))
    with pytest.raises(UserError, match="continues no texts: use Predictor"):
        TextGenerator.load(run)
    assert "is not a language model, which alone generates text: leave --temperature out" in refusal(
        "predict", run, rows, "--temperature", "1"
    )


@pytest.mark.parametrize("form", sorted(ALL - FUNCTION - CLASSIFIERS))
def test_compression_says_why_not(form: str, run_of: Callable[[str], Path]) -> None:
    run = run_of(form)
    with pytest.raises(UserError) as caught:
        compress(Folder(str(run)), VariantRequest(int8=True))
    assert str(caught.value) == (
        f"{run} is {KINDS[kind_of(form)].a_noun}; compression is for textClassifier, imageClassifier, tableClassifier: "
        "compressed models compute the logits of classes; for another kind, train a smaller network instead"
    )


@pytest.mark.parametrize("form", sorted(CLASSIFIERS - of("textClassifier")))
def test_pruning_says_why_not(form: str, run_of: Callable[[str], Path]) -> None:
    run = run_of(form)
    with pytest.raises(UserError) as caught:
        compress(Folder(str(run)), VariantRequest(prune=0.5))
    assert str(caught.value) == (
        f"{run} is {KINDS[kind_of(form)].a_noun}; --prune is for textClassifier: it removes heads and channels of a "
        "text classifier's encoder; --int8 makes others smaller, too"
    )


@pytest.mark.parametrize("form", sorted(ROW_MODELS))
def test_a_cascade_and_probabilities_say_why_not(form: str, run_of: Callable[[str], Path]) -> None:
    run, noun = run_of(form), KINDS[kind_of(form)].a_noun
    said = refusal("predict", run, run, "--cascade", "0.5")
    if form in SEVERAL_LABELS & of("textClassifier"):
        assert (
            said
            == f"--cascade asks a language model for one class, and {run} gives each row several labels: leave it out"
        )
    elif form in of("textClassifier"):
        assert said.startswith(
            f"{run}: its TrainJob has no language model to ask: add spec.baselines.languageModel to "
        )
    else:
        assert said == f"--cascade asks a language model, which only classifies texts; {run} is {noun}: leave it out"
    if form not in CLASSIFIERS:
        with pytest.raises(UserError) as caught:
            Predictor.load(run).predict_proba([])
        assert str(caught.value) == f"{noun} predicts no classes, so there are no probabilities"
