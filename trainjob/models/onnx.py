"""Classifiers as ONNX graphs, which ONNX Runtime computes on the CPU. They are made of other classifiers by
`trainjob compress`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from trainjob.api import StrictModel
from trainjob.data import load_preprocessor
from trainjob.errors import UserError
from trainjob.models.classifier import AnsweringClassifier

MODEL_TYPE = "trainjob-onnx-classifier"
FILE = "model.onnx"
LOGITS = "logits"
"""The graph's only output, float32 [n, C]; its inputs have the names of the classifier's."""


class OnnxConfig(StrictModel):
    """The content of config.json."""

    model_type: Annotated[Literal["trainjob-onnx-classifier"], Field(alias="model_type")] = MODEL_TYPE
    """Distinguishes this format from others."""
    problem_type: Annotated[
        Literal["single_label_classification", "multi_label_classification"], Field(alias="problem_type")
    ]
    """The same as in transformers."""
    classes: list[str]
    """Class names in the order of the logits."""


class OnnxClassifier(AnsweringClassifier):
    """The graph in a folder, computed by as many threads as PyTorch has when it is loaded."""

    def __init__(self, folder: Path) -> None:
        """Raises UserError where the package onnxruntime is missing."""
        super().__init__()
        try:
            import onnxruntime
        except ImportError:
            raise UserError(f"{folder} needs the package onnxruntime: pip install onnxruntime") from None
        self.config = OnnxConfig.model_validate_json((folder / "config.json").read_bytes())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        options.log_severity_level = 3
        try:
            self._session: Any = onnxruntime.InferenceSession(
                folder / FILE, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # ONNX Runtime has many, all of its own
            raise ValueError(f"{FILE} is not a valid graph: {error}") from None

        types = {each.name: each.type for each in self._session.get_inputs()}
        self._normalization: tuple[Tensor, Tensor] | None = None
        if types.get("pixel_values") == "tensor(float)":  # a graph of an earlier version, which takes normalized pixels
            preprocessor: Any = load_preprocessor(folder)
            divisor, subtrahend = map(torch.from_numpy, preprocessor.input.normalization)
            self._normalization = divisor, subtrahend

    @property
    def problem_type(self) -> str:
        return self.config.problem_type

    def forward(self, **inputs: Tensor) -> Tensor:
        """Logits, float32 [n, C] on the CPU, of the inputs of a batch."""
        if self._normalization is not None:
            divisor, subtrahend = self._normalization
            inputs = {"pixel_values": inputs["pixel_values"].float() / divisor - subtrahend}
        arrays: dict[str, np.ndarray] = {name: tensor.cpu().numpy() for name, tensor in inputs.items()}
        return torch.from_numpy(self._session.run([LOGITS], arrays)[0])
