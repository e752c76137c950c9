"""A run's folder → the model's card: `README.md` in the format of the Hugging Face hub."""

from posixpath import basename
from typing import Any
from urllib.parse import urlsplit

import yaml

from trainjob.api import Model
from trainjob.errors import listed
from trainjob.evaluation import AnyScores, LanguageScores, Scores
from trainjob.report.confusion import shown_classes
from trainjob.report.formatting import capitalized
from trainjob.report.render import describe_model, usage
from trainjob.report.templates import template
from trainjob.runs.contents import Contents

_TASKS = {
    "text_classifier": "text-classification",
    "image_classifier": "image-classification",
    "causal_lm": "text-generation",
}
"""What the hub calls them."""


def card(run: Contents) -> str:
    """The card of the finished run of a model of trainjob's own. It names data by file, not by address: a card is made
    to be published.

    Format: https://huggingface.co/docs/hub/model-cards
    """
    assert run.summary is not None
    assert run.job.spec.dataset is not None
    model, dataset = run.job.spec.model, listed([file_name(uri) for uri in run.job.spec.dataset.train.all_uris])
    sets = sorted(run.evaluation.items())  # test comes before validation
    commands, code = (text for _, text in usage("FOLDER", model))
    text = template("card.md.j2").render(
        metadata=yaml.safe_dump(_metadata(run, dataset), sort_keys=False, allow_unicode=True),
        run=run,
        spec=run.job.spec,
        summary=run.summary,
        best=run.summary.best_checkpoint,
        model=describe_model(model),
        dataset=dataset,
        sets=sets,
        shown=shown_classes(sets[0][1]) if isinstance(sets[0][1], Scores) else [],
        commands=commands.splitlines(),
        code=code,
    )
    return f"{text}\n"


def file_name(uri: str) -> str:
    """The last part of a URI or path, without what may be secret: user, password, query."""
    return basename(urlsplit(uri).path.rstrip("/")) or "data"


def _metadata(run: Contents, dataset: str) -> dict[str, Any]:
    """What the hub reads: the YAML above the text."""
    task = _TASKS[run.job.spec.model.chosen]
    base = _base_model(run.job.spec.model)
    results = [
        {
            "task": {"type": task},
            "dataset": {"name": dataset, "type": dataset, "split": name},
            "metrics": _metrics(scores),
        }
        for name, scores in sorted(run.evaluation.items())
    ]
    return {
        "library_name": "trainjob",
        "pipeline_tag": task,
        "tags": ["trainjob", task],
        **({"base_model": base} if base else {}),
        "model-index": [{"name": run.job.metadata.name, "results": results}],
    }


def _metrics(scores: AnyScores) -> list[dict[str, Any]]:
    if isinstance(scores, LanguageScores):
        return [
            {"type": name, "name": capitalized(name), "value": round(getattr(scores, name), 6)}
            for name in ("perplexity", "loss")
        ]
    values = {
        "accuracy": scores.accuracy,
        **{name: getattr(scores.macro, name) for name in ("precision", "recall", "f1")},
    }
    return [
        {"type": name, "name": capitalized(name) if name == "accuracy" else f"Macro {name}", "value": round(value, 6)}
        for name, value in values.items()
    ]


def _base_model(model: Model) -> str | None:
    """The pretrained model's name on the hub, where it comes from there: folders are absolute in a run's TrainJob."""
    pretrained = model.pretrained
    return pretrained if pretrained and not pretrained.startswith("/") and "://" not in pretrained else None
