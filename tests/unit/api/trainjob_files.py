"""YAML files for the tests of reading them."""

from pathlib import Path

import pytest

from trainjob.api.document import InvalidDocument
from trainjob.api.load import load_trainjob

GOOD = """\
apiVersion: trainjob.dev/v1alpha1
kind: TrainJob
metadata: {name: tags}
spec:
  model:
    textClassifier:
      encoder: {layers: 1}
  dataset:
    train: {uri: data/train.csv}
    text: [title]
    label: tag
  training:
    epochs: 3
"""


def write(folder: Path, text: str | bytes) -> Path:
    file = folder / "job.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def problems(file: Path, *overrides: str) -> list[str]:
    """The lines of the error, with the folder cut off."""
    with pytest.raises(InvalidDocument) as caught:
        load_trainjob(file, overrides)
    return str(caught.value).replace(f"{file.parent}/", "").splitlines()
