"""The kind of a saved model, under the names that versions before this one gave it."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from preprocessors import image_classifier, language_model, text_classifier
from tiny_image_models import save_resnet
from trainjob.api import Cleaning, Model
from trainjob.data import Preprocessor, load_preprocessor
from trainjob.kinds import KINDS
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe
from trainjob.kinds.inputs.image import ImageInput
from trainjob.kinds.inputs.image_processor import PretrainedImageInput, pretrained_processor
from trainjob.kinds.inputs.text import TextInput, train_wordpiece
from trainjob.kinds.registry import load_kind
from trainjob.runs.model import is_language_model
from trainjob.storage import Folder

TEXTS = ["some text", "another text"] * 10


def text(_: Path) -> Preprocessor:
    texts = TextInput(["text"], 16, 10.0, *train_wordpiece(TEXTS, 100, 16), Cleaning())
    return text_classifier(texts, ["a", "b"], [3, 4])


def image(_: Path) -> Preprocessor:
    return image_classifier(ImageInput(4, 4, 1, [0.4], [0.2], resize=False), ["a", "b"], [3, 4])


def pretrained_image(folder: Path) -> Preprocessor:
    images = PretrainedImageInput.of(pretrained_processor(str(save_resnet(folder))))
    return image_classifier(images, ["a", "b"], [3, 4])


def causal(_: Path) -> Preprocessor:
    return language_model(TokensInput(["text"], 16, 8.0, *train_byte_bpe(TEXTS, 300, 16)))


@pytest.mark.parametrize(
    ("make", "kind", "earlier"),
    [
        (text, "textClassifier", "text"),
        (image, "imageClassifier", "image"),
        (pretrained_image, "imageClassifier", "pretrained-image"),
        (causal, "causalLM", "continuation"),
    ],
)
def test_a_kind_has_the_name_of_its_field_and_answers_to_earlier_ones(
    tmp_path: Path, make: Callable[[Path], Preprocessor], kind: str, earlier: str
) -> None:
    saved = make(tmp_path / "network")
    (tmp_path / "model").mkdir()
    saved.save(tmp_path / "model")
    file = tmp_path / "model/preprocessor.json"
    state = json.loads(file.read_text())
    assert state["kind"] == kind
    for written in (state, {key: value for key, value in state.items() if key != "pretrained"} | {"kind": earlier}):
        file.write_text(json.dumps(written))
        loaded = load_preprocessor(tmp_path / "model")
        assert (type(loaded.input), loaded.target) == (type(saved.input), saved.target)
        assert loaded.kind == kind
        assert is_language_model(Folder(str(tmp_path / "model"))) == (kind == "causalLM")


def test_each_section_of_the_model_is_a_kind() -> None:
    assert [Model.in_yaml(name) for name in Model.model_fields] == list(KINDS)


@pytest.mark.parametrize("field", [field for field, facts in KINDS.items() if facts.needs_dataset])
def test_the_code_of_a_kind_is_found_by_its_field(field: str) -> None:
    assert load_kind(field).facts is KINDS[field]
