"""TrainJobs at random: documents that are valid in a cluster, with every field in some of them."""

import string
from typing import Any, get_args

from hypothesis import strategies as st

from control_plane.pod_strategies import pods
from control_plane.small_strategies import (
    Document,
    Strategy,
    amounts,
    booleans,
    columns,
    cpus,
    durations,
    folders,
    fractions,
    json_values,
    label_keys,
    labels,
    memory,
    merged,
    names,
    one_of,
    part,
    positive,
    trainjob_names,
    uris,
)
from trainjob.api.cluster import seconds
from trainjob.api.tuning import TUNABLE, optional_parts
from trainjob.kinds import KINDS
from trainjob.kinds.facts import RowForm


def _in_order(deadlines: Document) -> Document:
    """Swaps the deadlines so that `start` is the shorter one."""
    if len(deadlines) < 2:
        return deadlines
    start, total = sorted(deadlines.values(), key=seconds)
    return {"start": start, "total": total}


_deadlines = part(total=durations, start=durations).map(_in_order)
_label_columns = st.sampled_from(["tag", "the class"])
_losses = one_of(crossEntropy=part(), binaryCrossEntropy=part())
_class_weights = one_of(balanced=part(), values=st.dictionaries(columns, amounts, max_size=3))
_classifier = part(dropout=fractions, loss=_losses, classWeights=_class_weights)
_encoder = st.tuples(part(layers=positive, vocabularySize=st.integers(100, 10**6)), positive, positive).map(
    lambda found: {**found[0], "heads": found[1], "hiddenSize": found[1] * found[2]}
)
_pretrained_image = part(
    {"pretrained": st.sampled_from(["org/vit", "/models/vit", "s3://models/vit"])}, freezeEncoder=booleans
)
_pretrained = part(
    {"pretrained": st.sampled_from(["prajjwal1/bert-tiny", "/models/bert", "gs://models/bert"])}, freezeEncoder=booleans
)
_text_network = merged(part(maxLength=st.integers(4, 8192)), _pretrained | part({"encoder": part() | _encoder}))
_text_classifier = merged(_classifier, _text_network)
_regression_losses = one_of(squaredError=part(), absoluteError=part(), huber=part(delta=amounts))
_regressor = part(dropout=fractions, loss=_regression_losses)
_text_regressor = merged(_regressor, _text_network)
_token_classifier = merged(
    part(dropout=fractions, maxLength=st.integers(8, 8192)), _pretrained | part({"encoder": part() | _encoder})
)
_encoders = {"pretrained": st.sampled_from(["prajjwal1/bert-tiny", "gs://models/bert"])}
_text_embedder = merged(
    part(maxLength=st.integers(4, 8192), scale=amounts), part(_encoders) | part({"encoder": part() | _encoder})
)
_mlp = part(hidden=st.lists(positive, min_size=1, max_size=3))
_cnn = part(channels=st.lists(positive, min_size=1, max_size=3), hidden=positive)
_size = part({"height": st.integers(1, 4096), "width": st.integers(1, 4096)})
_augmentation = part(augmentation=part(crop=st.floats(0.01, 1), flip=st.floats(0, 1)))
_image_network = merged(_augmentation, _pretrained_image | merged(one_of(mlp=_mlp, cnn=_cnn), part(size=_size)))
_image_classifier = merged(_classifier, _image_network)
_image_regressor = merged(_regressor, _image_network)
_table_network = part(
    {"tabm": part(members=st.integers(1, 256), blocks=st.integers(1, 64), hiddenSize=positive, embeddingSize=positive)}
)
_text_columns_encoder = part(
    {"text": merged(part(maxLength=st.integers(4, 8192)), part(_encoders) | part({"encoder": part() | _encoder}))}
)
_table_classifier = merged(_classifier, _table_network)
_table_regressor = merged(_regressor, _table_network)
_decoder = st.tuples(
    part(layers=positive, dropout=fractions, vocabularySize=st.integers(300, 10**6)), positive, positive
).map(lambda found: {**found[0], "heads": found[1], "hiddenSize": 2 * found[1] * found[2]})
_lora = part(
    rank=st.integers(1, 65_536),
    alpha=st.floats(0.1, 1000),
    dropout=fractions,
    targetModules=st.lists(st.sampled_from(["q_proj", "v_proj", "mlp.up_proj"]), min_size=1, max_size=3),
)
_decoders = {"pretrained": st.sampled_from(["gpt2", "/models/qwen", "s3://models/qwen"])}
_causal_lm = merged(
    part(maxLength=st.integers(8, 131_072)), part(_decoders, lora=_lora) | part({"decoder": part() | _decoder})
)
_git = part(
    {"url": st.just("https://git.test/team/code.git")},
    ref=st.sampled_from(["main", "v1.0", "0123456789abcdef0123456789abcdef01234567", "feature/x-1"]),
    path=st.sampled_from(["src", "a/b c"]),
    secretName=names,
)
_code = one_of(uri=st.sampled_from(["s3://code/a.tar.gz", "/mnt/code.tgz"]), git=_git)
_requirements = st.lists(st.sampled_from(["einops", "numpy >= 2; python_version < '4'"]), max_size=2)
_function = part(
    {"name": st.sampled_from(["train:loop", "my.package.train:train_loop", "_a._b:_c1", "my.módulo:tréino_2"])},
    config=st.dictionaries(names, json_values, max_size=3),
)

_rows = one_of(uri=uris, uris=st.lists(uris, min_size=1, max_size=3, unique=True))
_formats = {"tabular": ["csv", "jsonl", "parquet"], "any": ["csv", "jsonl", "parquet", "images", "mnist"]}


def _dataset(formats: str, loaders: list[str], columns_of: Strategy) -> Strategy:
    source = merged(_rows, part(format=st.sampled_from(_formats[formats])))
    validation = one_of(fraction=st.floats(0.01, 0.99)) | _rows
    loader = st.sampled_from(loaders)
    rest = part({"train": source}, validation=validation, test=source, loader=loader)
    return merged(rest, columns_of)


_texts = st.lists(columns, min_size=1, max_size=3, unique=True)
_loaders = ["auto", "rayData", "dataLoader"]
_cleaning = part(lowercase=booleans, removeURLs=booleans, removeHTML=booleans)
_bad_rows = part(onBadRows=st.sampled_from(["fail", "drop"]))
_pairs = st.lists(st.sampled_from(["answer", "reply"]), min_size=1, max_size=2, unique=True)
_text_columns = part({"text": _texts, "label": _label_columns}, cleaning=_cleaning, textPair=_pairs)
_features = part(
    features=st.lists(st.sampled_from(["age", "zip code"]), min_size=1, max_size=2, unique=True),
    columns=st.dictionaries(
        st.sampled_from(["age", "zip code"]), st.sampled_from(["number", "category", "date", "flag", "text", "ignore"])
    ),
)
_several_labels = st.lists(st.sampled_from(["spam", "very urgent"]), min_size=1, unique=True)


def _table_data(labels: Strategy) -> Strategy:
    return merged(_dataset("tabular", _loaders, merged(labels, _features)), _bad_rows)


_table_classes = _table_data(part({"label": _label_columns}))
_mixed_classes = merged(
    _table_classes, part({"columns": part({"age": st.just("number"), "zip code": st.just("text")})})
)
_table_numbers = _table_classes | _table_data(part({"labels": _several_labels}))
_pair_data = merged(
    _dataset(
        "tabular",
        _loaders,
        merged(
            part({"text": _texts, "textPair": _pairs}, cleaning=_cleaning),
            part(label=_label_columns) | part(textNegative=st.just(["wrong answer"])),
        ),
    ),
    _bad_rows,
)
_class_data = merged(
    _dataset("tabular", _loaders, part({"text": _texts, "label": _label_columns}, cleaning=_cleaning)), _bad_rows
)
_text_data = merged(_dataset("tabular", _loaders, _text_columns), _bad_rows)
_labels_of_texts = part({"text": _texts, "labels": _several_labels}, cleaning=_cleaning, textPair=_pairs)
_labelled_texts = _text_data | merged(_dataset("tabular", _loaders, _labels_of_texts), _bad_rows)
_language_columns = part({"text": _texts}) | st.sampled_from([{"prompt": "question", "completion": "answer"}])
_language_data = merged(
    _language_columns,
    part({"train": merged(_rows, part(format=st.sampled_from(_formats["tabular"])))}),
    part(validation=_rows, test=_rows, loader=st.sampled_from(_loaders)),
)
_span_data = merged(_dataset("tabular", _loaders, part({"text": _texts, "label": _label_columns})), _bad_rows)
_image_columns = part(image=columns, label=_label_columns) | part(image=columns, labels=_several_labels)
_image_data = merged(_dataset("any", _loaders, _image_columns), _bad_rows)
_function_data = _dataset("any", ["auto", "rayData"], part(text=_texts, label=_label_columns, cleaning=_cleaning))

_adam: dict[str, Strategy] = {
    "learningRate": amounts,
    "betas": st.lists(fractions, min_size=2, max_size=2),
    "epsilon": amounts,
    "weightDecay": fractions,
}
_sgd = merged(
    part(learningRate=amounts, weightDecay=fractions),
    part(momentum=fractions) | part({"nesterov": booleans, "momentum": st.floats(0.01, 0.99)}),
)
_optimizer = one_of(adam=part(**_adam), adamW=part(**_adam), sgd=_sgd)
_scheduler = one_of(
    constant=part(warmupFraction=fractions),
    reduceOnPlateau=part(factor=st.floats(0.01, 0.99), patience=st.integers(0, 9)),
    cosine=part(warmupFraction=fractions),
    linear=part(warmupFraction=fractions),
)
_training = part(
    compile=booleans,
    maxSteps=positive,
    validateEverySteps=positive,
    epochs=positive,
    optimizer=_optimizer,
    scheduler=_scheduler,
    gradientClipping=amounts,
    gradientAccumulation=positive,
    earlyStopping=part(patience=positive, minDelta=fractions),
    precision=st.sampled_from(["auto", "bf16", "fp16", "float32"]),
    seed=st.integers(0, 2**32 - 1),
)
_sharded = part({"sharding": st.sampled_from(["full", "auto"])}, cpuOffload=booleans)
_metrics = ["validation_loss", "validation_accuracy", "validation_f1", "train_loss"]
_scores_of_numbers = ("rmse", "mae", "r2", "spearman")
_regression_metrics = ["validation_loss", *(f"validation_{name}" for name in _scores_of_numbers), "train_loss"]
_checkpoints = part(mode=st.sampled_from(["min", "max"]), keep=positive, everySteps=positive)


@st.composite
def _work(draw: st.DrawFn, model: str) -> Document:
    """`training` and `workers`, whose numbers fit together."""
    training, per_pod = draw(_training), draw(st.integers(1, 8))
    count = per_pod * draw(st.integers(1, 16))
    if model in ("textClassifier", "textRegressor", "causalLM"):
        training |= draw(part(activationCheckpointing=booleans))
        sharded = draw(_sharded) | {"compile": False}
        training |= sharded if count > 1 and draw(booleans) else {}
    training["batchSize"] = count * draw(st.integers(1, 64))
    workers = draw(part(cpus=cpus, gpus=st.integers(0, 1), nodePool=names, memory=memory))
    workers["count"] = count
    if draw(booleans):
        workers["perPod"] = per_pod
    if draw(booleans):
        workers["minimum"] = draw(st.integers(1, count))
    return {"training": training, "workers": workers}


_head = part(cpus=cpus, memory=memory)
_storage = merged(
    one_of(uri=folders, persistentVolumeClaim=names),
    part(
        endpoint=st.sampled_from(["http://minio:9000", "https://s3.example.com", "http://a\u00a0b/\u2028"]),
        secretName=names,
    ),
)

_trackers = one_of(
    mlflow=part(
        {"uri": st.sampled_from(["http://mlflow:5000", "https://a.b/c"])},
        experiment=st.text("ab /", min_size=1, max_size=9),
        register=names,
        secretName=names,
    ),
    trackio=part(
        {}, uri=st.just("http://trackio:7860"), project=st.text("ab /", min_size=1, max_size=9), secretName=names
    ),
    wandb=part({}, project=st.text("ab ", min_size=1, max_size=9), entity=names, secretName=names),
    custom=part({"name": st.text("abc.", min_size=1, max_size=9)}, options=labels),
)


_receivers = one_of(
    webhook=part({"secretName": names}, url=st.sampled_from(["http://hooks:9000", "https://a.b/c"])),
    apprise=part({"secretName": names}, key=st.text("aB._-", min_size=1, max_size=9)),
)


@st.composite
def _notify(draw: st.DrawFn) -> Document:
    events = st.lists(st.sampled_from(["Starting", "Failed", "Interrupted"]), max_size=3)
    return draw(_receivers) | draw(part(events=events, waitingLongerThan=durations))


def _tracker_name(tracker: Document) -> str:
    return tracker["custom"]["name"] if "custom" in tracker else next(iter(tracker))


_whole_life = part(
    tracking=st.lists(_trackers, max_size=3, unique_by=_tracker_name),
    managedBy=st.sampled_from(["kueue.x-k8s.io/multikueue", "a/B._~-"]),
    notify=st.lists(_notify(), max_size=3),
    retries=st.integers(0, 20),
    deadlines=_deadlines,
    ttlAfterFinished=durations,
    rayJobTTLAfterFinished=durations,
    suspend=booleans,
    cancel=booleans,
    pods=pods(),
)


def _fits(path: str, spec: Document) -> bool:
    """Whether the parts that a hyperparameter lies in are there, and it has an effect."""
    if (form := _form(spec)) and path.rpartition(".")[2] in form.unused:
        return False
    for outer in optional_parts(path):
        parent, _, chosen = outer.path.rpartition(".")
        there: Any = spec
        for name in parent.split("."):
            there = there.get(name, {})
        if not (chosen in there or (outer.is_default and not there)):
            return False
    return True


def values_of(path: str, spec: Document) -> tuple[list[Any], list[str]]:
    """Two values that a hyperparameter may have, and the distributions that take them."""
    encoder = spec["model"].get("textClassifier", {}).get("encoder", {})
    heads = encoder.get("heads", 4)
    special = {
        "training.batchSize": [spec["workers"]["count"], 3 * spec["workers"]["count"]],
        "model.textClassifier.encoder.hiddenSize": [heads, 3 * heads],
        "model.textClassifier.encoder.heads": [1, heads][: 1 + (heads > 1)],
        "training.precision": ["bf16", "fp16", "float32"],
    }
    if path in special:
        return special[path], ["choice"]
    if get_args(TUNABLE[path][0])[0] is int:
        return [2, 4], ["range", "choice"]
    return [0.125, 0.5], ["uniform", "logUniform", "choice"]


@st.composite
def _tuned(draw: st.DrawFn, spec: Document) -> Document:
    """`spec`, perhaps with `tuning`."""
    paths = [path for path in TUNABLE if _fits(path, spec)]
    if draw(booleans):
        return spec
    search = draw(st.sampled_from(["random", "tpe", "grid"]))
    parameters: Document = {}
    for path in [path for path in paths if draw(booleans)] or paths[-1:]:
        values, ways = values_of(path, spec)
        parameters[path] = {"grid" if search == "grid" else draw(st.sampled_from(ways)): values}
    rest = draw(
        part(
            trials=st.integers(1, 1000),
            parallel=st.integers(1, 100),
            scheduler=st.sampled_from(["none", "asha"]),
            seed=st.integers(0, 2**32 - 1),
        )
    )
    workers = {name: value for name, value in spec["workers"].items() if name != "minimum"}
    if any(path.endswith((".scale", ".huber.delta")) for path in parameters):
        spec = {**spec, "checkpoints": {"metric": _no_loss(spec)}}
    return {**spec, "workers": workers, "tuning": {"parameters": parameters, "search": search, **rest}}


def _no_loss(spec: Document) -> str:
    """A metric of these rows that is not a loss."""
    facts = KINDS[next(iter(spec["model"]))]
    form = _form(spec)
    return next(name for name in (form or facts).metrics if not name.endswith("_loss"))


def _form(spec: Document) -> RowForm | None:
    """The form of an embedder's rows."""
    forms = KINDS[next(iter(spec["model"]))].row_forms
    names = {field for form in forms for field in form.columns} & spec.get("dataset", {}).keys()
    return next((form for form in forms if set(form.columns) == names), None)


_distillation = part({"teacher": folders}, temperature=amounts, weight=st.floats(0.01, 1))


@st.composite
def _taught(draw: st.DrawFn, specs: Strategy) -> Document:
    """Some of `specs` with a teacher, and some of these with rows for it to label."""
    spec = draw(specs)
    if draw(booleans):
        spec["training"]["distillation"] = draw(_distillation)
        unlabelled = merged(_rows, part(format=st.sampled_from(_formats["tabular"])))
        spec["dataset"] |= draw(part(unlabelled=unlabelled))
    return spec


def _fitting_the_rows(spec: Document) -> Document:
    """`spec` without a loss or baseline that does not allow several labels a row, and with what has an effect on the
    form of its rows."""
    kind = next(iter(spec["model"].values()))
    if "labels" in spec.get("dataset", {}):
        if "crossEntropy" in kind.get("loss", {}):
            del kind["loss"]
        spec.get("baselines", {}).pop("languageModel", None)
    if form := _form(spec):
        if spec.get("checkpoints", {}).get("metric", "validation_loss") not in form.metrics:
            spec["checkpoints"]["metric"] = next(iter(form.metrics))
        for field in form.unused:
            kind.pop(field, None)
    return spec


def _spec(model: str, kind: Strategy, metrics: list[str], data: Strategy) -> Strategy:
    what = part({"model": st.fixed_dictionaries({model: kind})})
    checkpoints = part(checkpoints=merged(_checkpoints, part(metric=st.sampled_from(metrics))))
    whole = merged(what, data, checkpoints, _work(model), part(storage=_storage, head=_head), _whole_life)
    if model == "function":
        return whole
    fitting = whole.map(_fitting_the_rows)
    learns_alone = model.endswith(("Regressor", "Embedder")) or model in ("tokenClassifier", "causalLM")
    return (fitting if learns_alone else _taught(fitting)).flatmap(_tuned)


def _baselines(*names: str, **others: Strategy) -> Strategy:
    return part(**{name: st.just({}) for name in names}, **others)


_language_model = part(
    {"endpoint": st.just("http://vllm:8000/v1"), "model": st.just("tiny")},
    secretName=names,
    descriptions=st.dictionaries(st.sampled_from(["red", "a b"]), st.text(string.printable, max_size=9), max_size=2),
    shots=st.integers(0, 50),
    examples=st.sampled_from(["random", "nearest"]),
    concurrency=st.integers(1, 256),
    maxRequests=st.integers(1, 10**6),
    maxTokens=st.integers(1, 10**9),
    maxCost=st.floats(0.01, 1000),
    inputPrice=st.floats(0, 100),
    outputPrice=st.floats(0, 100),
)


_classifiers = (
    _spec(
        "textClassifier",
        _text_classifier,
        _metrics,
        merged(
            part({"dataset": _labelled_texts}),
            part(baselines=_baselines("mostFrequent", "tfidf"))
            | st.builds(dict, baselines=part(languageModel=_language_model)),
        ),
    )
    | _spec(
        "textRegressor",
        _text_regressor,
        _regression_metrics,
        part({"dataset": _labelled_texts}, baselines=_baselines("mean", "tfidf")),
    )
    | _spec(
        "textEmbedder",
        _text_embedder,
        [
            *("validation_loss", "validation_mrr", "validation_recall_at_1", "validation_recall_at_10"),
            *("validation_spearman", "validation_pearson", "validation_triplet_accuracy", "train_loss"),
        ],
        part({"dataset": _pair_data | _class_data}, baselines=_baselines("tfidf")),
    )
    | _spec(
        "imageClassifier",
        _image_classifier,
        _metrics,
        part({"dataset": _image_data}, baselines=_baselines("mostFrequent", "pixels")),
    )
    | _spec(
        "imageRegressor",
        _image_regressor,
        _regression_metrics,
        part({"dataset": _image_data}, baselines=_baselines("mean", "pixels")),
    )
    | _spec(
        "tableClassifier",
        _table_classifier,
        _metrics,
        part({"dataset": _table_classes}, baselines=_baselines("mostFrequent", "linear", "lightgbm")),
    )
    | _spec(
        "tableClassifier", merged(_table_classifier, _text_columns_encoder), _metrics, part({"dataset": _mixed_classes})
    )
    | _spec(
        "tableRegressor",
        merged(_table_regressor, _text_columns_encoder),
        _regression_metrics,
        part({"dataset": _mixed_classes}),
    )
    | _spec(
        "tableRegressor",
        _table_regressor,
        _regression_metrics,
        part({"dataset": _table_numbers}, baselines=_baselines("mean", "linear", "lightgbm")),
    )
)
_span_scores = ("loss", "precision", "recall", "f1", "partial_f1")
_token_classifiers = _spec(
    "tokenClassifier",
    _token_classifier,
    [*(f"validation_{name}" for name in _span_scores), "train_loss"],
    part({"dataset": _span_data}, baselines=_baselines("knownStrings")),
)
_language_metrics = ["validation_loss", "validation_perplexity", "train_loss"]
_language_models = _spec(
    "causalLM", _causal_lm, _language_metrics, part({"dataset": _language_data}, baselines=_baselines())
) | _spec(
    "causalLM",
    part({"pretrained": st.just("Qwen/Qwen2.5-0.5B-Instruct")}),
    _language_metrics,
    part({"dataset": part({"train": _rows, "messages": st.just("conversation")})}),
)
specs: Strategy = (_classifiers | _token_classifiers | _language_models) | _spec(
    "function",
    _function,
    [*_metrics, "my/score"],
    part(dataset=_function_data, baselines=_baselines(), code=_code, requirements=_requirements),
)


def trainjobs() -> Strategy:
    """TrainJobs, as documents, that are valid in a cluster."""
    metadata = part(
        {"name": trainjob_names()}, labels=labels, annotations=st.dictionaries(label_keys, st.text(max_size=9))
    )
    return st.builds(_document, metadata, specs)


def _document(metadata: Document, spec: Document) -> Document:
    return {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": metadata, "spec": spec}
