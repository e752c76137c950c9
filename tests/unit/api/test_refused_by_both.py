"""What an API server refuses, `trainjob validate` refuses with the same field."""

from pydantic import ValidationError

from control_plane.mistakes import mistakes
from control_plane.small_documents import Document
from trainjob.api import TrainJob
from trainjob.api.document import dotted
from trainjob.api.wording import problems_of

_MAY_BE_RELATIVE = ("uri", "uris", "validation", "test", "teacher", "pretrained")
"""Fields that may hold a relative path, which means something on a laptop only."""


def wrong_fields(doc: Document) -> set[str]:
    try:
        TrainJob.model_validate(doc, strict=True, by_alias=True, by_name=False)
    except ValidationError as found:
        return {dotted(path) for error in found.errors() for path, _ in problems_of(error, TrainJob)}
    return set()


def test_a_mistake_is_refused_with_its_field() -> None:
    others = [
        (doc, path)
        for doc, path in mistakes()
        if not path.startswith("pods.") and path.rpartition(".")[2] not in _MAY_BE_RELATIVE
    ]
    missed = [path for doc, path in others if not any(each.startswith(f"spec.{path}") for each in wrong_fields(doc))]
    assert len(others) > 400
    assert missed == []
