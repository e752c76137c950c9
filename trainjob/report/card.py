"""A run's folder → the model's card: `README.md` in the format of the Hugging Face hub."""

from collections.abc import Iterable
from posixpath import basename
from typing import Any
from urllib.parse import urlsplit

import yaml

from trainjob.api import Dataset, Model
from trainjob.errors import listed
from trainjob.evaluation import Scores
from trainjob.formatting import capitalized, count, score
from trainjob.kinds.usage import Usage, usage_of_pairs
from trainjob.report.formatting import cell
from trainjob.report.templates import template
from trainjob.runs.contents import Contents


def card(run: Contents) -> str:
    """The card of the finished run of a model of trainjob's own. It names data by file, not by address: a card is made
    to be published.

    Format: https://huggingface.co/docs/hub/model-cards
    """
    assert run.summary is not None
    assert run.job.spec.dataset is not None
    model, dataset = run.job.spec.model, listed([file_name(uri) for uri in run.job.spec.dataset.train.all_uris])
    sets = sorted(run.evaluation.items())  # test comes before validation
    set_name, scores = sets[0]
    commands, code = (text for _, text in usage(run, "FOLDER"))
    trained = run.summary.trained_parameters
    text = template("card.md.j2").render(
        metadata=yaml.safe_dump(_metadata(run, run.job.spec.dataset), sort_keys=False, allow_unicode=True),
        run=run,
        spec=run.job.spec,
        summary=run.summary,
        best=run.summary.best_checkpoint,
        model=model.kind.description,
        dataset=dataset,
        scores=scores,
        columns_of_scores=_columns(scores),
        lines_of_scores=[(name, *_columns(each).values()) for name, each in sets],
        excerpt=scores.excerpt(set_name),
        trained=trained if trained != run.summary.parameters else None,
        other_library=model.kind.library,
        columns=_named_columns(run.job.spec.dataset.text, ", joined with a blank"),
        pair=_named_columns(run.job.spec.dataset.text_pair) if model.kind.facts.reads_pairs else "",
        labels=_named_columns(run.job.spec.dataset.labels or filter(None, [run.job.spec.dataset.label])),
        commands=commands.splitlines(),
        code=code,
    )
    return f"{text}\n"


def usage(run: Contents, uri: str) -> Usage:
    """How to use the model of a run that lies at `uri`."""
    kind, dataset = run.job.spec.model.kind, run.job.spec.dataset
    found = kind.usage(uri)
    if dataset is None or dataset.text_pair is None or not kind.facts.reads_pairs:
        return found
    return usage_of_pairs(found, [*(dataset.text or []), *dataset.text_pair])


def _files_of(dataset: Dataset, set_name: str) -> str:
    """The source files of a set; for validation rows that are split off, the files of the training set."""
    uris = dataset.train.all_uris
    if set_name == "test" and dataset.test is not None:
        uris = dataset.test.all_uris
    if set_name == "validation" and (own := dataset.validation.uris or [dataset.validation.uri]) != [None]:
        uris = sorted(map(str, own))
    return listed([file_name(uri) for uri in uris])


def file_name(uri: str) -> str:
    """The last part of a URI or path, without what may be secret: user, password, query."""
    return basename(urlsplit(uri).path.rstrip("/")) or "data"


def _named_columns(columns: Iterable[str] | None, of_several: str = "") -> str:
    """`the column x`, or `the columns x, y` followed by the phrase for several; "" if there are none."""
    names = [f"`{cell(column)}`" for column in columns or []]
    if len(names) > 1:
        return f"the columns {listed(names)}{of_several}"
    return f"the column {names[0]}" if names else ""


def _metadata(run: Contents, dataset: Dataset) -> dict[str, Any]:
    """The metadata that the hub reads, as YAML above the text."""
    task = run.job.spec.model.facts.hub_task
    base, library = _base_model(run.job.spec.model), run.job.spec.model.kind.library
    results = [
        {
            "task": {"type": task},
            "dataset": {"name": (files := _files_of(dataset, name)), "type": files, "split": name},
            "metrics": [
                {"type": each.hub_type, "name": capitalized(each.name), "value": round(each.value, 6)}
                for each in scores.measures()
            ],
        }
        for name, scores in sorted(run.evaluation.items())
    ]
    return {
        "library_name": library.name if library else "trainjob",
        "pipeline_tag": task,
        "tags": ["trainjob", task],
        **({"base_model": base} if base else {}),
        "model-index": [{"name": run.job.metadata.name, "results": results}],
    }


def _columns(scores: Scores) -> dict[str, str]:
    """A line of the table of scores, by heading."""
    unit, size = scores.size()
    return {unit: count(size)} | {each.name: score(each.value) for each in scores.measures()}


def _base_model(model: Model) -> str | None:
    """The pretrained model's name on the hub, where it comes from there: folders are absolute in a run's TrainJob."""
    pretrained = model.pretrained
    return pretrained if pretrained and not pretrained.startswith("/") and "://" not in pretrained else None
