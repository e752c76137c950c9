"""The parts of a spec's sources, in the form that the spec's model reads."""

from trainjob.api import Source, TrainJobSpec
from trainjob.data.read.rows import SourcePart
from trainjob.data.read.source import UNLABELLED, parts, sources_of
from trainjob.kinds.registry import load_kind


def parts_by_set(spec: TrainJobSpec) -> dict[str, list[SourcePart]]:
    """The parts of each set that has a source of its own. Raises as `source_parts` does."""
    assert spec.dataset is not None
    return {
        name: source_parts(spec, source, labelled=name != UNLABELLED)
        for name, source in sources_of(spec.dataset).items()
    }


def source_parts(spec: TrainJobSpec, source: Source, labelled: bool = True) -> list[SourcePart]:
    """The parts of a source. Raises DataError if the model cannot read them."""
    endpoint = spec.storage.endpoint if spec.storage else None
    if not spec.model.facts.needs_dataset:  # a function takes any rows
        return parts(source, endpoint, labelled)
    assert spec.dataset is not None
    return load_kind(spec.model.facts.field).parts(spec.dataset, source, endpoint, labelled)
