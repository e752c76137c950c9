"""The parts of a spec's sources, as its model takes them."""

from trainjob.api import Source, TrainJobSpec
from trainjob.data.documents import Layout, layout_of
from trainjob.data.image_files import IDXFiles, ImageFiles
from trainjob.data.image_tables import images_of_tables
from trainjob.data.rows import Part
from trainjob.data.source import UNLABELLED, parts, sources_of
from trainjob.errors import DataError, listed


def parts_of_sets(spec: TrainJobSpec) -> dict[str, list[Part]]:
    """The parts of each set that has a source of its own. Raises as `parts_of` does."""
    assert spec.dataset is not None
    return {
        name: parts_of(spec, source, labelled=name != UNLABELLED) for name, source in sources_of(spec.dataset).items()
    }


def parts_of(spec: TrainJobSpec, source: Source, labelled: bool = True) -> list[Part]:
    """The parts of a source. Raises DataError where they are not of the kind that the model takes."""
    layout = Layout("text", []) if spec.model.causal_lm is None or spec.dataset is None else layout_of(spec.dataset)
    endpoint = spec.storage.endpoint if spec.storage else None
    found = parts(source, endpoint, labelled, layout.nested, layout.optional)
    holds_images, place = isinstance(found[0], ImageFiles | IDXFiles), listed(source.all_uris)
    if spec.model.image_classifier is None and spec.model.function is None and holds_images:
        kind = spec.model.in_yaml(spec.model.chosen)
        raise DataError(f"{place} holds images, but model.{kind} needs csv, jsonl or parquet")
    if spec.model.image_classifier is not None and not holds_images and spec.dataset is not None:
        return images_of_tables(found, endpoint, spec.dataset.image, spec.dataset.label, labelled)
    return found
