"""Fields that are right by themselves and do not fit together; and what a search for hyperparameters may get wrong."""

from typing import Any

from control_plane.small_documents import Document

_OWN_PATHS = ["/etc/trainjob", "/etc/trainjob/mine", "/mnt/storage", "/mnt/storage/"]
_OWN_VOLUMES = ["trainjob", "trainjob-storage", "trainjob-tmp", "trainjob-home"]


def _mounted_at(path: str) -> Document:
    return {"volumes": [{"name": "a", "emptyDir": {}}], "volumeMounts": [{"name": "a", "mountPath": path}]}


_LANGUAGE_MODEL = {"endpoint": "http://vllm:8000/v1", "model": "tiny"}


def _tuned(path: str, search: str = "random", /, **parameter: Any) -> Document:
    return {"parameters": {path: parameter}, "search": search}


_RATE = "training.optimizer.adamW.learningRate"
_WRONG_TUNING: list[tuple[str, Document]] = [
    ("tuning.parameters", {}),
    ("tuning.parameters", {"parameters": {}}),
    ("tuning.parameters", _tuned("training.optimiser", choice=[1])),
    ("tuning.parameters", _tuned("training.seed", choice=[1, 2])),
    ("tuning.parameters", _tuned("model.textClassifier.maxLength", choice=[64])),
    ("tuning.parameters", _tuned("training.optimizer.sgd.momentum", uniform=[0.1, 0.9])),
    ("tuning.parameters", _tuned("training.earlyStopping.patience", choice=[1])),
    ("tuning.parameters", _tuned("model.imageClassifier.dropout", choice=[0.1])),
    ("tuning.parameters", _tuned("model.textClassifier.encoder.heads", choice=[4, 3])),
    ("tuning.parameters", _tuned("model.textClassifier.encoder.hiddenSize", choice=[64, 66])),
    ("tuning.parameters", _tuned(_RATE, grid=[0.1])),
    ("tuning.parameters", _tuned(_RATE, "grid", choice=[0.1])),
    (f"tuning.parameters.{_RATE}", _tuned(_RATE)),
    (f"tuning.parameters.{_RATE}", _tuned(_RATE, choice=[0.1], uniform=[0.1, 0.2])),
    (f"tuning.parameters.{_RATE}.typo", _tuned(_RATE, typo=[0.1])),
    *(
        (f"tuning.parameters.{_RATE}.{name}", _tuned(_RATE, **{name: values}))
        for name, values in (
            ("uniform", [0.2, 0.1]),
            ("uniform", [0.1]),
            ("uniform", [0, 0.1]),
            ("uniform", 0.1),
            ("logUniform", [0.1, 0.1]),
            ("logUniform", [0.1, 0.2, 0.3]),
            ("choice", []),
            ("choice", [0.1, 0.1]),
            ("choice", [0]),
            ("choice", ["0.1"]),
        )
    ),
    ("tuning.parameters", _tuned("training.scheduler.constant.warmupFraction", choice=[0.1])),  # the model's choice
    ("tuning.parameters.training.epochs.range", _tuned("training.epochs", range=[0, 3])),
    ("tuning.parameters.training.epochs.range", _tuned("training.epochs", range=[1.5, 3])),
    ("tuning.parameters.training.epochs.uniform", _tuned("training.epochs", uniform=[1, 3])),
    ("tuning.parameters.training.batchSize.range", _tuned("training.batchSize", range=[1, 3])),
    ("tuning.parameters.training.precision.choice", _tuned("training.precision", choice=["float64"])),
    ("tuning.trials", _tuned(_RATE, choice=[0.1]) | {"trials": 0}),
    ("tuning.parallel", _tuned(_RATE, choice=[0.1]) | {"parallel": 0}),
    ("tuning.search", _tuned(_RATE, "bayes", choice=[0.1])),
    ("tuning.scheduler", _tuned(_RATE, choice=[0.1]) | {"scheduler": "hyperband"}),
]
"""(field to blame, tuning)."""

CONFLICTS: list[tuple[str, str, dict[str, Any]]] = [
    ("textClassifier", "model", {"model.function": {"name": "a:b"}}),
    ("textClassifier", "model.textClassifier", {"model.textClassifier.pretrained": "bert"}),
    ("textClassifier", "model.textClassifier", {"model.textClassifier.encoder": ...}),
    ("textClassifier", "model.textClassifier.pretrained", {"model.textClassifier": {"pretrained": "./bert"}}),
    ("textClassifier", "model.textClassifier.encoder.hiddenSize", {"model.textClassifier.encoder.heads": 7}),
    ("textClassifier", "dataset", {"dataset": ...}),
    ("textClassifier", "dataset.text", {"dataset.text": ...}),
    ("textClassifier", "dataset.text", {"dataset.text": ["title", "tag"]}),
    ("textClassifier", "dataset.textPair", {"dataset.textPair": ["answer", "tag"]}),
    ("textClassifier", "dataset.textPair", {"dataset.text": ["title"], "dataset.textPair": ["title"]}),
    ("causalLM", "dataset.textPair", {"dataset.textPair": ["answer"]}),
    ("textClassifier", "dataset.label", {"dataset.label": ...}),
    ("textClassifier", "dataset.labels", {"dataset.label": ..., "dataset.labels": ["a", "a"]}),
    ("tableClassifier", "dataset.features", {"dataset.features": ["age", "age"]}),
    *(
        (
            kind,
            f"model.{kind}.loss",
            {"dataset.label": None, "dataset.labels": ["a", "b"], f"model.{kind}.loss": {"crossEntropy": {}}},
        )
        for kind in ("textClassifier", "imageClassifier")
    ),
    ("textClassifier", "dataset.train.format", {"dataset.train.format": "images"}),
    ("textClassifier", "dataset.train.format", {"dataset.train.format": "mnist"}),
    ("textClassifier", "training.batchSize", {"workers.count": 5, "training.batchSize": 32}),
    ("textClassifier", "training.batchSize", {"workers.count": 64, "training.batchSize": 32}),
    ("textClassifier", "workers.perPod", {"workers.count": 4, "workers.perPod": 3}),
    ("textClassifier", "training.sharding", {"workers.count": 1, "training.sharding": "full"}),
    ("imageClassifier", "training.sharding", {"workers.count": 2, "training.sharding": "auto"}),
    ("function", "training.sharding", {"workers.count": 2, "training.sharding": "full"}),
    ("causalLM", "training.compile", {"training.sharding": "auto", "training.compile": True}),
    ("causalLM", "training.cpuOffload", {"training.cpuOffload": True}),
    ("imageClassifier", "training.activationCheckpointing", {"training.activationCheckpointing": True}),
    ("textClassifier", "workers.minimum", {"workers.count": 4, "workers.minimum": 5}),
    ("textClassifier", "workers.minimum", {"workers.minimum": 1, "tuning": _tuned(_RATE, choice=[0.1])}),
    ("textClassifier", "training.optimizer", {"training.optimizer.adam": {}, "training.optimizer.sgd": {}}),
    ("textClassifier", "pods.volumeMounts", {"pods.volumeMounts": [{"name": "a", "mountPath": "/a"}]}),
    *(("function", "pods.volumeMounts", {"pods": _mounted_at(path)}) for path in _OWN_PATHS),
    *(("function", "pods.volumes", {"pods.volumes": [{"name": name}]}) for name in _OWN_VOLUMES),
    ("causalLM", "model.causalLM", {"model.causalLM.pretrained": "gpt2"}),
    ("causalLM", "model.causalLM", {"model.causalLM.decoder": ...}),
    ("causalLM", "model.causalLM.pretrained", {"model.causalLM": {"pretrained": "../qwen"}}),
    ("causalLM", "model.causalLM.lora", {"model.causalLM.lora": {}}),
    ("causalLM", "model.causalLM.decoder.hiddenSize", {"model.causalLM.decoder.heads": 3}),
    ("causalLM", "dataset", {"dataset": ...}),
    ("causalLM", "dataset.text", {"dataset.text": ...}),
    ("causalLM", "dataset.completion", {"dataset.text": ..., "dataset.prompt": "question"}),
    ("causalLM", "dataset.completion", {"dataset.text": ..., "dataset.completion": "answer"}),
    ("causalLM", "dataset.completion", {"dataset.text": ..., "dataset.prompt": "a", "dataset.completion": "a"}),
    ("causalLM", "dataset.text", {"dataset.prompt": "question", "dataset.completion": "answer"}),
    ("causalLM", "dataset.messages", {"model.causalLM": {"pretrained": "gpt2"}, "dataset.messages": "chat"}),
    ("causalLM", "dataset.messages", {"dataset.text": ..., "dataset.messages": "chat"}),
    ("textClassifier", "dataset.messages", {"dataset.messages": "chat"}),
    ("function", "dataset.messages", {"dataset.messages": "chat"}),
    ("imageClassifier", "dataset.completion", {"dataset.prompt": "a", "dataset.completion": "b"}),
    ("causalLM", "dataset.label", {"dataset.label": "tag"}),
    ("causalLM", "dataset.cleaning", {"dataset.cleaning": {"lowercase": True}}),
    ("function", "dataset.onBadRows", {"dataset.onBadRows": "drop"}),
    ("imageClassifier", "dataset.cleaning", {"dataset.cleaning": {"removeURLs": True}}),
    ("causalLM", "dataset.train.format", {"dataset.train.format": "images"}),
    ("causalLM", "checkpoints.metric", {"checkpoints.metric": "validation_f1"}),
    ("causalLM", "baselines.mostFrequent", {"baselines": {"mostFrequent": {}}}),
    ("causalLM", "baselines.tfidf", {"baselines": {"tfidf": {}}}),
    ("causalLM", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    ("causalLM", "tuning.parameters", {"tuning": _tuned("model.causalLM.lora.rank", choice=[8])}),
    ("causalLM", "tuning.parameters", {"tuning": _tuned("model.causalLM.maxLength", choice=[64])}),
    ("imageClassifier", "model.imageClassifier", {"model.imageClassifier.cnn": {}}),
    ("imageClassifier", "model.imageClassifier", {"model.imageClassifier.pretrained": "vit"}),
    ("imageClassifier", "model.imageClassifier.pretrained", {"model.imageClassifier": {"pretrained": "./vit"}}),
    (
        "imageClassifier",
        "model.imageClassifier.size",
        {"model.imageClassifier": {"pretrained": "vit", "size": {"height": 8, "width": 8}}},
    ),
    ("imageClassifier", "model.imageClassifier", {"model.imageClassifier.mlp": ...}),
    ("imageClassifier", "dataset", {"dataset": ...}),
    ("imageClassifier", "dataset.text", {"dataset.text": ["title"]}),
    ("imageClassifier", "dataset.image", {"dataset.image": "tag", "dataset.label": "tag"}),
    ("tokenClassifier", "model.tokenClassifier", {"model.tokenClassifier.encoder": ...}),
    ("tokenClassifier", "dataset.label", {"dataset.label": ...}),
    ("tokenClassifier", "dataset.cleaning", {"dataset.cleaning": {"lowercase": True}}),
    ("tokenClassifier", "baselines.tfidf", {"baselines": {"tfidf": {}}}),
    ("textClassifier", "baselines.knownStrings", {"baselines": {"knownStrings": {}}}),
    ("textRegressor", "model.textRegressor", {"model.textRegressor.encoder": ...}),
    ("textRegressor", "dataset.label", {"dataset.label": ...}),
    ("textEmbedder", "model.textEmbedder.pretrained", {"model.textEmbedder": {"pretrained": "./bert"}}),
    ("textEmbedder", "dataset.textPair", {"dataset.textPair": ...}),
    ("textEmbedder", "dataset.textNegative", {"dataset.textNegative": ["title"]}),
    ("textEmbedder", "dataset.textNegative", {"dataset.textNegative": ["answer"]}),
    ("textEmbedder", "dataset.textNegative", {"dataset.textNegative": ["wrong"], "dataset.label": "score"}),
    (
        "textEmbedder",
        "dataset.textNegative",
        {"dataset.textPair": ..., "dataset.textNegative": ["wrong"], "dataset.label": "tag"},
    ),
    ("textClassifier", "dataset.textNegative", {"dataset.textNegative": ["wrong"]}),
    ("textEmbedder", "dataset.labels", {"dataset.labels": ["tag"]}),
    ("textEmbedder", "checkpoints.metric", {"checkpoints.metric": "validation_f1"}),
    ("textEmbedder", "checkpoints.metric", {"checkpoints.metric": "validation_spearman"}),
    ("textEmbedder", "checkpoints.metric", {"checkpoints.metric": "validation_triplet_accuracy"}),
    (
        "textEmbedder",
        "checkpoints.metric",
        {"dataset.textNegative": ["wrong"], "checkpoints.metric": "validation_spearman"},
    ),
    ("textEmbedder", "checkpoints.metric", {"dataset.label": "score", "checkpoints.metric": "validation_mrr"}),
    (
        "textEmbedder",
        "checkpoints.metric",
        {"dataset.textPair": ..., "dataset.label": "tag", "checkpoints.metric": "validation_spearman"},
    ),
    ("textEmbedder", "checkpoints.metric", {"tuning": _tuned("model.textEmbedder.scale", choice=[10.0, 20.0])}),
    ("textEmbedder", "model.textEmbedder.scale", {"dataset.label": "score", "model.textEmbedder.scale": 10.0}),
    (
        "textEmbedder",
        "tuning.parameters",
        {
            "dataset.label": "score",
            "checkpoints.metric": "validation_spearman",
            "tuning": _tuned("model.textEmbedder.scale", choice=[10.0, 20.0]),
        },
    ),
    ("textEmbedder", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    ("textRegressor", "checkpoints.metric", {"checkpoints.metric": "validation_f1"}),
    ("textRegressor", "baselines.mostFrequent", {"baselines": {"mostFrequent": {}}}),
    ("textRegressor", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    *(
        (
            kind,
            "checkpoints.metric",
            {
                f"model.{kind}.loss": {"huber": {}},
                "tuning": _tuned(f"model.{kind}.loss.huber.delta", uniform=[0.5, 2.0]),
            },
        )
        for kind in ("textRegressor", "imageRegressor", "tableRegressor")
    ),
    ("imageRegressor", "model.imageRegressor", {"model.imageRegressor": {"pretrained": "vit", "cnn": {}}}),
    ("imageRegressor", "model.imageRegressor.freezeEncoder", {"model.imageRegressor.freezeEncoder": True}),
    ("imageRegressor", "dataset.text", {"dataset.text": ["title"]}),
    ("imageRegressor", "checkpoints.metric", {"checkpoints.metric": "validation_f1"}),
    ("imageRegressor", "baselines.mostFrequent", {"baselines": {"mostFrequent": {}}}),
    ("imageRegressor", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    ("textClassifier", "baselines.mean", {"baselines": {"mean": {}}}),
    ("tableClassifier", "model.tableClassifier", {"model.tableClassifier.tabm": ...}),
    ("tableClassifier", "dataset", {"dataset": ...}),
    ("tableClassifier", "dataset.label", {"dataset.label": ...}),
    ("tableClassifier", "baselines.tfidf", {"baselines": {"tfidf": {}}}),
    ("textClassifier", "baselines.lightgbm", {"baselines": {"lightgbm": {}}}),
    ("tableClassifier", "dataset.text", {"dataset.text": ["title"]}),
    ("tableClassifier", "dataset.features", {"dataset.features": ["age", "tag"]}),
    ("tableClassifier", "dataset.columns", {"dataset.columns": {"tag": "number"}}),
    ("tableClassifier", "model.tableClassifier.text", {"model.tableClassifier.text": {"encoder": {}}}),
    (
        "tableClassifier",
        "model.tableClassifier.text.pretrained",
        {"model.tableClassifier.text": {"pretrained": "./bert"}, "dataset.columns": {"note": "text"}},
    ),
    (
        "tableClassifier",
        "model.tableClassifier.text",
        {"model.tableClassifier.text": {"encoder": {}}, "dataset.columns": {"age": "number"}},
    ),
    ("tableClassifier", "dataset.train.format", {"dataset.train.format": "images"}),
    ("tableClassifier", "training.sharding", {"workers.count": 2, "training.sharding": "auto"}),
    ("tableRegressor", "model.tableRegressor", {"model.tableRegressor.tabm": ...}),
    ("tableRegressor", "dataset.label", {"dataset.label": ...}),
    ("tableRegressor", "checkpoints.metric", {"checkpoints.metric": "validation_f1"}),
    ("tableRegressor", "baselines.mostFrequent", {"baselines": {"mostFrequent": {}}}),
    ("tableRegressor", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    ("textClassifier", "dataset.features", {"dataset.features": ["age"]}),
    ("imageClassifier", "dataset.columns", {"dataset.columns": {"age": "number"}}),
    (
        "textClassifier",
        "baselines.languageModel",
        {"dataset.label": None, "dataset.labels": ["a", "b"], "baselines": {"languageModel": _LANGUAGE_MODEL}},
    ),
    ("textClassifier", "dataset.image", {"dataset.image": "photo"}),
    ("causalLM", "dataset.image", {"dataset.image": "photo"}),
    ("imageClassifier", "checkpoints.metric", {"checkpoints.metric": "accuracy"}),
    ("imageClassifier", "baselines.tfidf", {"baselines": {"tfidf": {}}}),
    ("textClassifier", "baselines.pixels", {"baselines": {"mostFrequent": {}, "pixels": {}}}),
    ("imageClassifier", "baselines.languageModel", {"baselines": {"languageModel": _LANGUAGE_MODEL}}),
    *(
        (
            "textClassifier",
            f"baselines.languageModel.{name}",
            {"baselines": {"languageModel": _LANGUAGE_MODEL | {name: value}}},
        )
        for name, value in (
            ("endpoint", "vllm:8000"),
            ("model", ""),
            ("shots", 51),
            ("examples", "best"),
            ("maxCost", 0),
        )
    ),
    ("function", "baselines.mostFrequent", {"baselines": {"mostFrequent": {}}}),
    ("function", "training.distillation", {"training.distillation": {"teacher": "s3://runs/teacher"}}),
    *(("textClassifier", path, {"tuning": tuning}) for path, tuning in _WRONG_TUNING),
    ("imageClassifier", "tuning.parameters", {"tuning": _tuned("model.imageClassifier.cnn.hidden", choice=[8])}),
    ("function", "tuning", {"tuning": _tuned("training.epochs", choice=[1])}),
    (
        "textClassifier",
        "tuning.parameters",
        {"workers.count": 4, "tuning": _tuned("training.batchSize", choice=[16, 18])},
    ),
    *(
        ("function", "deadlines.start", {"deadlines": {"start": start, "total": total}})
        for start, total in (("2h", "1h"), ("61s", "1m"), ("1d", "23h"), ("9999s", "2h"))
    ),
    ("function", "dataset.loader", {"dataset.loader": "dataLoader"}),
    ("function", "model", {"model.function": None}),
]
"""(model, field to blame, changes)."""
