"""A classifier as an ONNX graph, with weights in float32 or in 8 bits."""

import logging
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trainjob.data import Preprocessor
from trainjob.errors import UserError
from trainjob.models import TrainableClassifier
from trainjob.models.classifier import AnsweringClassifier
from trainjob.models.onnx import FILE, LOGITS, OnnxClassifier, OnnxConfig

TOLERANCE = 1e-4
"""The largest difference between the logits of the graph and of the classifier."""
MAX_BYTES = 2**31 - 2**20
"""Protocol Buffers, which ONNX files are, hold 2 GiB."""

Inputs = dict[str, Tensor]
_TOKENS = {"input_ids", "attention_mask", "token_type_ids", "text_ids", "text_mask"}
"""Inputs whose last dimension is the length of texts."""


def export(
    classifier: TrainableClassifier[Any], preprocessor: Preprocessor, examples: list[Inputs], folder: Path
) -> None:
    """Writes the classifier as an ONNX graph into `folder`, with the other files that `load_model` needs. `examples`
    are batches of its inputs, of different sizes.

    Raises UserError if it cannot be exported, or the graph's logits differ from the classifier's.
    """
    classifier.eval()
    classifier.use_plain_attention()
    _check_size(classifier)
    _write_graph(classifier, examples[0], folder / FILE)
    _write_others(classifier.problem_type, preprocessor, folder)
    difference = largest_difference(classifier, OnnxClassifier(folder), examples)
    if not difference <= TOLERANCE:
        raise UserError(
            f"the exported graph does not compute the same as the model: logits differ by up to {difference:.2g}, "
            f"more than {TOLERANCE:g}"
        )


def quantize(graph: Path, preprocessor: Preprocessor, problem_type: str, folder: Path) -> None:
    """Writes the ONNX graph of a classifier into `folder` with weights of 8 bits. Activations are quantized to 8 bits
    during inference, with one scale for a whole batch. See docs/decisions/int8-by-onnx-runtime.md."""
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process

    optimized = folder / "optimized.onnx"
    with _quiet():
        quant_pre_process(graph, optimized, skip_symbolic_shape=True)
        quantize_dynamic(
            optimized,
            folder / FILE,
            op_types_to_quantize=["MatMul", "Gemm", "Gather"],
            nodes_to_exclude=_products_of_stacks(optimized),
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
    optimized.unlink()
    _write_others(problem_type, preprocessor, folder)


def largest_difference(one: AnsweringClassifier, other: AnsweringClassifier, examples: list[Inputs]) -> float:
    """The largest difference between logits; NaN if one of them is NaN."""
    with torch.inference_mode():
        differences = [(one(**inputs) - other(**inputs)).abs().max() for inputs in examples]
    return torch.stack(differences).max().item()


def _write_graph(classifier: TrainableClassifier[Any], inputs: Inputs, file: Path) -> None:
    shapes = {
        name: {0: torch.export.Dim.DYNAMIC} | ({each.dim() - 1: torch.export.Dim.DYNAMIC} if name in _TOKENS else {})
        for name, each in inputs.items()
    }
    try:
        with _quiet():
            torch.onnx.export(
                classifier,
                kwargs=inputs,
                f=file,
                input_names=list(inputs),
                output_names=[LOGITS],
                dynamic_shapes=shapes,
                external_data=False,
                dynamo=True,
            )
    except Exception as error:  # of the exporter's many
        reason = " ".join(str(error).split())[:300]
        raise UserError(f"the model cannot be exported to ONNX: {type(error).__name__}: {reason}") from error


def _write_others(problem_type: str, preprocessor: Preprocessor, folder: Path) -> None:
    config = OnnxConfig.model_validate({"problem_type": problem_type, "classes": preprocessor.target.classes})
    (folder / "config.json").write_text(config.model_dump_json(by_alias=True, indent=2))
    preprocessor.save(folder)


def _products_of_stacks(graph: Path) -> list[str]:
    """Nodes that multiply by a stack of matrices, such as the weights of the members of an ensemble: ONNX Runtime
    quantizes them by channel, but does not compute the result."""
    import onnx

    model = onnx.load(graph)
    stacks = {weights.name for weights in model.graph.initializer if len(weights.dims) > 2}
    return [node.name for node in model.graph.node if node.op_type == "MatMul" and stacks & set(node.input)]


def _check_size(classifier: TrainableClassifier[Any]) -> None:
    size = sum(parameter.numel() * parameter.element_size() for parameter in classifier.parameters())
    if size > MAX_BYTES:
        raise UserError(f"the model's weights have {size / 2**30:.1f} GiB; an ONNX file can hold at most 2 GiB")


@contextmanager
def _quiet() -> Generator[None]:
    """Suppresses the output and the warnings of the exporter and ONNX Runtime."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings(), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
