"""TrainJobs that an API server must refuse, one mistake each."""

from collections.abc import Iterator
from typing import Any

from control_plane.conflicts import CONFLICTS
from control_plane.small_documents import MODELS, Document, changed, document


def mistakes() -> Iterator[tuple[Document, str]]:
    """(document, path of the field that is to blame, relative to the spec)."""
    for path, values in _WRONG_VALUES.items():
        for value in values:
            yield changed(_document_with(path), {path: value}), path
    for part in _PARTS:
        path = f"{part}.typo"
        yield changed(_document_with(path), {path: 1}), path
    for uris in _LISTS:
        for name in ("train", "validation", "test"):
            yield changed(document(), {f"dataset.{name}": {"uris": uris}}), f"dataset.{name}.uris"
    for model, path, changes in CONFLICTS:
        yield changed(document(model), changes), path


def _document_with(path: str) -> Document:
    _, model, *_ = [*path.split("."), ""]
    return document(model if model in MODELS else "textClassifier")


_COUNT: list[Any] = [0, -1, 1.5, "3", True, []]
_FLAG: list[Any] = ["true", 1, 0, []]
_ABOVE_0: list[Any] = [0, -1e-9, "0.1", True]
_FRACTION: list[Any] = [-0.1, 1, 1.5, "0.1"]
_NAME: list[Any] = ["", "Upper", "-a", "a-", "a b", "x" * 254, 3]
_RELATIVE: list[Any] = ["", "data/rows.csv", "./rows.csv", "../rows.csv", "~/rows.csv", "s3:/rows", "x" * 4097, 3]
_ADDRESS: list[Any] = [
    "s3://",
    "gs:///rows",
    "ftp://host/rows",
    "hf://rows",
    "hf://models/a/b",
    "azure://rows",
    "://x",
    "file://rows",
]
_URI: list[Any] = [
    *_RELATIVE,
    *_ADDRESS,
    "s3://data/rows\n",
    "/rows\n.csv",
    "http://",
    "https://a b/rows.csv",
    "https://a\vb/rows.csv",
]
_LISTS: list[Any] = [
    [],
    "s3://data",
    [3],
    ["s3://data/a", "rows.csv"],
    ["s3://data/a", "s3://"],
    ["s3://data/a", "s3://data/a"],
    [f"s3://data/{number}" for number in range(1001)],
]
_DURATION: list[Any] = ["", "0s", "5", "1.5h", "-1h", "1w", "1h30m", "100000s", 30]
_QUANTITY: list[Any] = ["", "0", "-1Gi", "0.0Gi", "16gb", "16 Gi", "16", "1.5", 16, -1, 10**15, True, [], {}]
_CPUS: list[Any] = [0, -1e-9, 10_000, "", "0", "-1", "0m", "1.5m", "1 ", "1e3", "10000", True, False, [], {}, [1]]
_IDS = ("runAsUser", "runAsGroup", "fsGroup")
_CLASSIFIER = {"dropout": _FRACTION, "loss": [{}, "crossEntropy", {"crossEntropy": {}, "binaryCrossEntropy": {}}]}
_ADAM = {"learningRate": _ABOVE_0, "betas": [[0.9], [0.9, 0.99, 0.999], [0.9, 1], [-1, 0], 0.9], "epsilon": _ABOVE_0}
_SOURCE = {"uri": _URI, "format": ["CSV", "", 3, "text"]}


def _under(path: str, wrong: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return {f"{path}.{name}": values for name, values in wrong.items()}


_WRONG_VALUES: dict[str, list[Any]] = {
    **_under("model.textClassifier", _CLASSIFIER),
    **_under("model.imageClassifier", _CLASSIFIER),
    "model.textRegressor.loss": [{}, {"crossEntropy": {}}, {"squaredError": {}, "huber": {}}],
    "model.textRegressor.loss.huber.delta": [0, -1, "1"],
    "model.imageRegressor.loss": [{}, {"crossEntropy": {}}, {"squaredError": {}, "huber": {}}],
    "model.imageRegressor.size": [{"height": 28}, {"height": 28, "width": 0}, {"height": 4097, "width": 1}, 28],
    "model.textEmbedder.scale": _ABOVE_0,
    "model.textEmbedder.maxLength": [3, 8193, "128"],
    **_under("model.tableClassifier", _CLASSIFIER),
    "model.tableRegressor.loss": [{}, {"crossEntropy": {}}, {"absoluteError": {}, "huber": {}}],
    "model.tableRegressor.tabm.members": [*_COUNT, 257],
    **_under("model.tableClassifier.tabm", {"members": [*_COUNT, 257], "blocks": [*_COUNT, 65], "hiddenSize": _COUNT}),
    "model.tableClassifier.tabm.embeddingSize": _COUNT,
    "model.tableClassifier.text": [{}, {"pretrained": "bert", "encoder": {}}, {"encoder": {}, "maxLength": 3}, "bert"],
    "model": [..., {}, [], "textClassifier"],
    "model.textClassifier.classWeights": [{}, {"balanced": {}, "values": {}}, {"values": {"a": 0}}],
    "model.textClassifier.maxLength": [3, 8193, "128", 12.5],
    "model.textClassifier.freezeEncoder": [*_FLAG, True],
    "model.textClassifier.pretrained": ["", 3, "hf://bert", "s3://", "bert\n"],
    **_under("model.textClassifier.encoder", {"layers": _COUNT, "hiddenSize": [*_COUNT, 127], "heads": _COUNT}),
    "model.textClassifier.encoder.vocabularySize": [99, 1_000_001, "8192"],
    "model.imageClassifier.mlp.hidden": [[], [0], ["1"], [1] * 17, 128],
    "model.imageClassifier.size": [{"height": 28}, {"height": 28, "width": 0}, {"height": 4097, "width": 1}, 28],
    "model.imageClassifier.pretrained": ["", 3, "s3:///vit", "vit\n"],
    "model.imageClassifier.freezeEncoder": [*_FLAG, True],
    "model.imageClassifier.augmentation.crop": [0, -0.1, 1.1, "0.5"],
    "model.imageClassifier.augmentation.flip": [-0.1, 1.1, True],
    "model.causalLM.maxLength": [7, 131_073, "512"],
    "model.causalLM.pretrained": ["", 3, "ftp://models/qwen", "gpt2\n"],
    **_under("model.causalLM.decoder", {"layers": _COUNT, "hiddenSize": [*_COUNT, 252], "heads": _COUNT}),
    "model.causalLM.decoder.vocabularySize": [299, 1_000_001, "8192"],
    "model.causalLM.decoder.dropout": _FRACTION,
    "model.causalLM.lora.rank": [0, 65_537, "16"],
    "model.causalLM.lora.alpha": [0, -1, "32"],
    "model.causalLM.lora.dropout": _FRACTION,
    "model.causalLM.lora.targetModules": [[], [""], ["q proj"], ["q_proj"] * 101, "q_proj"],
    "model.function.name": [..., "", "loop", "train.py:loop:x", "train:", ":loop", "1train:loop", "a:b c", 3],
    "model.function.config": ["x", [], 3],
    **_under("dataset.train", _SOURCE),
    "dataset.train": [{}, {"format": "csv"}, {"uri": "s3://a", "uris": ["s3://b"]}],
    "dataset.test": [{}, {"uri": "rows.csv"}, "s3://test/rows.csv"],
    "dataset.validation": [{}, {"fraction": 0.2, "uri": "s3://a"}, {"fraction": 0}, {"fraction": 1}, {"uri": "a.csv"}],
    "dataset.unlabelled": [{}, {"uri": "rows.csv"}, "s3://more/rows.csv", {"uri": "s3://more"}],
    "dataset.text": [[], [""], "title", [3], ["title", "title"]],
    "dataset.textPair": [[], [""], "answer", [3], ["answer", "answer"]],
    "dataset.textNegative": [[], [""], "wrong", [3], ["wrong", "wrong"]],
    "dataset.image": ["", 3, ["photo"]],
    "dataset.label": ["", 3, ["tag"]],
    "dataset.labels": [[], [""], "spam", [3], ["spam", "spam"]],
    **_under("dataset.cleaning", {"lowercase": _FLAG, "removeURLs": _FLAG, "removeHTML": _FLAG}),
    "dataset.onBadRows": ["Drop", "", True],
    "dataset.loader": ["raydata", "", 1],
    **_under("training", dict.fromkeys(["epochs", "maxSteps", "batchSize", "gradientAccumulation"], _COUNT)),
    "training.validateEverySteps": _COUNT,
    "training.compile": _FLAG,
    "training.cpuOffload": _FLAG,
    "training.activationCheckpointing": _FLAG,
    "training.sharding": ["half", "", True, 2],
    "training.optimizer": [{}, {"adam": {}, "adamW": {}}, "adam", []],
    **_under("training.optimizer.adam", _ADAM),
    **_under("training.optimizer.sgd", {"momentum": _FRACTION, "nesterov": [*_FLAG, True], "weightDecay": [-1, "0"]}),
    "training.gradientClipping": _ABOVE_0,
    "training.precision": ["bfloat16", "", "float16", 32],
    "training.seed": [-1, 2**32, 0.5, "42"],
    "training.scheduler": [{}, {"cosine": {}, "linear": {}}, {"reduceOnPlateau": {"factor": 1}}, "cosine"],
    **_under("training.earlyStopping", {"patience": _COUNT, "minDelta": [-1, "0"]}),
    **_under("training.distillation", {"teacher": [..., *_RELATIVE], "temperature": _ABOVE_0, "weight": [0, 1.5, "1"]}),
    **_under("checkpoints", {"metric": ["", 3, "my_metric"], "mode": ["minimum", "", 1], "keep": _COUNT}),
    "checkpoints.everySteps": _COUNT,
    **_under("workers", {"count": _COUNT, "cpus": _CPUS, "gpus": [-1, 2, 0.5, "1"], "nodePool": _NAME}),
    **_under("workers", {"perPod": [*_COUNT, 2], "minimum": [*_COUNT, 10_001], "memory": _QUANTITY}),
    **_under("head", {"cpus": _CPUS, "memory": _QUANTITY}),
    "storage": [{}, "s3://runs", {"uri": "s3://runs", "persistentVolumeClaim": "runs"}],
    **_under("storage", {"uri": [*_URI, "https://host/runs"], "persistentVolumeClaim": _NAME, "secretName": _NAME}),
    "storage.endpoint": [
        "minio:9000",
        "",
        "s3://minio",
        3,
        "http://",
        "http:///x",
        "http://a b",
        "http://minio\n",
        "http://a/\v",
    ],
    "retries": [-1, 0.5, "3"],
    "tracking": [
        [{}],
        [{"mlflow": {"uri": "http://a:1"}, "custom": {"name": "a"}}],
        [{"mlflow": {"uri": "http://a:1"}}, {"mlflow": {"uri": "http://b:1"}}],
        [{"mlflow": {"uri": "http://a:1"}}, {"custom": {"name": "mlflow"}}],
        [{"trackio": {}}, {"trackio": {"uri": "http://b:1"}}],
        [{"trackio": {}}, {"custom": {"name": "trackio"}}],
        [{"wandb": {}}, {"custom": {"name": "wandb"}}],
        [{"wandb": {"project": "a/b"}}],
        [{"trackio": {"uri": "http://a:1?write_token=secret"}}],
        [{"mlflow": {"uri": "http://me:secret@a:1"}}],
        [{"mlflow": {"uri": "http://a:1?token=secret"}}],
        [{"mlflow": {"uri": "mlruns"}}],
        [{"custom": {"name": f"name-{number}"}} for number in range(9)],
        {"mlflow": {"uri": "http://a:1"}},
    ],
    "managedBy": ["", "kueue", "/kueue", "a/", "A.b/c", "a/b/c", f"a/{'b' * 62}", 1],
    "notify": [
        [{}],
        [{"events": ["Failed"]}],
        [{"webhook": {"secretName": "a"}, "apprise": {"secretName": "a"}}],
        [{"webhook": {"secretName": "a"}} for _ in range(9)],
        [{"webhook": {"secretName": "a"}, "events": ["Pending"]}],
        [{"webhook": {"secretName": "a"}, "events": "Failed"}],
        [{"webhook": {"secretName": "a"}, "waitingLongerThan": "1"}],
        [{"webhook": {"url": "http://a"}}],
        [{"webhook": {"secretName": "a", "url": "http://me:secret@a"}}],
        [{"webhook": {"secretName": "a", "url": "slack://token"}}],
        [{"apprise": {"secretName": "A"}}],
        [{"apprise": {"secretName": "a", "key": "a b"}}],
        {"webhook": {"secretName": "a"}},
    ],
    **_under("deadlines", {"total": _DURATION, "start": _DURATION}),
    "ttlAfterFinished": _DURATION,
    "rayJobTTLAfterFinished": _DURATION,
    "suspend": _FLAG,
    "cancel": _FLAG,
    "pods.image": ["", 3, "x" * 513, "trainer 1", "trainer:", "trainer\n", "https://host/trainer", "a@b"],
    "pods.serviceAccountName": _NAME,
    "pods.imagePullSecrets": [[{}], ["secret"], [{"name": "a"}, {"name": "a"}], "secret"],
    "pods.env": [
        {},
        [{"value": "1"}],
        [{"name": "A", "value": 1}],
        [{"name": "A"}, {"name": "A"}],
        [{"name": "A"}] * 65,
        *([{"name": name}] for name in ("", "a=b", "1a", "a b")),
        [{"name": "A", "value": "1", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
    ],
    "pods.envFrom": [{}, [{"secretRef": "a"}], [{"prefix": 1}]],
    "pods.volumes": [
        {},
        [{"emptyDir": {}}],
        [{"name": "a"}, {"name": "a"}],
        [{"name": "a", "emptyDir": {"sizeLimit": "x"}}],
        [{"name": "a", "emptyDir": {}, "configMap": {"name": "a"}}],
    ],
    "pods.volumeMounts": [{}, [{"name": "a"}], [{"mountPath": "/a"}], [{"name": "a", "mountPath": "/a"}] * 2],
    "pods.nodeSelector": [[], {"a": 1}, {"a": "x" * 64}, {"a b": "x"}, {"a": "b c"}],
    "pods.tolerations": [{}, [{"tolerationSeconds": "5"}], [{"key": 3}], [{"operator": "Foo"}], [{"effect": "Foo"}]],
    "pods.affinity": [
        [],
        {"podAffinity": []},
        {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}},
    ],
    "pods.schedulerName": ["", "A", 1],
    "pods.cpuLimits": ["yes", 1],
    "pods.securityContext": [
        [],
        {"runAsUser": "root"},
        *({name: -1} for name in _IDS),
        {"runAsNonRoot": "true"},
        {"sysctls": [{}]},
    ],
    "pods.labels": [[], {"a": 1}, {"a": "x" * 64}, {"a b": "x"}, {"a/b/c": "x"}, {"": "x"}, {"a": "-"}],
    "pods.annotations": [[], {"a": 1}, {"a": "x" * 4097}, {"a b": "x"}],
}
"""Values that are wrong by themselves, by field."""

_PARTS = [
    "model",
    "model.textClassifier",
    "model.textClassifier.encoder",
    "model.textClassifier.loss.crossEntropy",
    "model.imageClassifier",
    "model.imageClassifier.mlp",
    "model.tableClassifier",
    "model.tableClassifier.tabm",
    "model.causalLM",
    "model.causalLM.decoder",
    "model.function",
    "dataset",
    "dataset.train",
    "dataset.validation",
    "dataset.cleaning",
    "training",
    "training.optimizer.adamW",
    "training.scheduler.cosine",
    "training.earlyStopping",
    "training.distillation",
    "checkpoints",
    "baselines",
    "workers",
    "head",
    "storage",
    "pods",
    "pods.affinity.nodeAffinity",
    "pods.securityContext.seccompProfile",
    "deadlines",
]
"""Parts that have no field called typo."""
