"""Makes the runs of this folder: `python tests/earlier_runs/make.py VERSION`, with the trainjob that is installed.

One tiny finished run of each kind of model, with its data, its scores (`scores/`) and its predictions (`predictions/`),
in VERSION.tar.xz. `/ROOT` stands for the folder in paths.
"""

import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import yaml
from PIL import Image

HERE = Path(__file__).parent
ROOT = "/ROOT"
CLASSES = (("animal", ["cat", "dog", "cow", "owl", "hen"]), ("plant", ["oak", "elm", "ivy", "fern", "moss"]))
MODELS = {
    "textClassifier": {"encoder": {"layers": 1, "hiddenSize": 8, "heads": 2, "vocabularySize": 120}, "maxLength": 16},
    "imageClassifier": {"mlp": {"hidden": [4]}},
    "causalLM": {
        "decoder": {"layers": 1, "hiddenSize": 8, "heads": 2, "vocabularySize": 300},
        "maxLength": 32,
    },
    "function": {"name": "loop:train", "config": {"reports": 3}},
}
LOOP = """
from ray import train as ray_train


def train(config):
    for number in range(config["reports"]):
        ray_train.report({"score": number / 2})
"""


def write_data(folder: Path) -> None:
    """A table of texts of two classes, and a folder of images of two classes."""
    draw = random.Random(0)
    rows = [(" ".join(draw.choices(words, k=6)), name) for _ in range(60) for name, words in CLASSES]
    (folder / "texts.csv").write_text("text,class\n" + "".join(f"{text},{name}\n" for text, name in rows))
    for number in range(20):
        for name, level in (("dark", 60), ("light", 190)):
            image = Image.new("L", (6, 6))
            image.putdata([level + draw.randint(-40, 40) for _ in range(36)])
            file = folder / "images" / name / f"{number:02}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            image.save(file)
    (folder / "loop.py").write_text(LOOP)


DATASETS: dict[str, dict[str, Any]] = {
    "textClassifier": {"train": {"uri": "texts.csv"}, "text": ["text"], "label": "class", "loader": "dataLoader"},
    "imageClassifier": {"train": {"uri": "images"}, "loader": "dataLoader"},
    "causalLM": {"train": {"uri": "texts.csv"}, "text": ["text"], "loader": "dataLoader"},
}
ROWS = {
    "textClassifier": ["--text", "a cat", "--text", "the old oak"],
    "imageClassifier": ["--image", "images/dark/03.png", "--image", "images/light/04.png"],
    "causalLM": ["--text", "cat dog", "--max-new-tokens", "8"],
}
"""The inputs for `trainjob predict`."""


def document(kind: str) -> dict[str, object]:
    spec: dict[str, object] = {
        "model": {kind: MODELS[kind]},
        "training": {"epochs": 3, "batchSize": 8, "optimizer": {"adamW": {"learningRate": 0.01}}},
        "checkpoints": {"keep": 3},
        "storage": {"uri": "runs"},
    }
    if kind in DATASETS:
        spec["dataset"] = DATASETS[kind]
    name = {"name": kind.lower()}
    return {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": name, "spec": spec}


def _needed(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Returns None for files that no command reads."""
    name = Path(member.name).name
    is_needed = name not in ("report.html", "tensorboard", ".lock", "__pycache__") and not name.startswith("epoch-0001")
    return member if is_needed else None


def main(version: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_data(folder)
        for name in ("scores", "predictions"):
            (folder / name).mkdir()
        for kind in MODELS:
            file = folder / f"{kind}.yaml"
            file.write_text(yaml.safe_dump(document(kind)))
            _trainjob(folder, "run", file.name)
            run = f"runs/{kind.lower()}"
            if kind in DATASETS:
                rows = str(DATASETS[kind]["train"]["uri"])
                (folder / "scores" / f"{kind}.json").write_text(_trainjob(folder, "evaluate", run, rows, "--json"))
                (folder / "predictions" / f"{kind}.txt").write_text(_trainjob(folder, "predict", run, *ROWS[kind]))
            written = folder / run / "trainjob.yaml"
            written.write_text(written.read_text().replace(temporary, ROOT))
        with tarfile.open(HERE / f"{version}.tar.xz", "w:xz") as archive:
            archive.add(folder, arcname=".", filter=_needed)


def _trainjob(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "trainjob", *arguments]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    main(sys.argv[1])
