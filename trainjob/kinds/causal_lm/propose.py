"""Proposes a language model for unknown data."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from trainjob.kinds.data_preview import SURE, DataPreview, Proposal, Unsuitable

PRETRAINED = "Qwen/Qwen2.5-0.5B-Instruct"
_PAIRS = (("prompt", "completion"), ("instruction", "output"), ("instruction", "response"), ("question", "answer"))
_BELONG_TOGETHER = (
    "To find one text of a row by the other, such as the answer that fits a question, in place of writing texts: "
    "--kind textEmbedder."
)
_TUNED: dict[str, Any] = {"causalLM": {"pretrained": PRETRAINED, "lora": {}}}
_COMMENT = "an adapter of a small chat model; choose a larger one if a GPU has room (`trainjob plan`)"

_TOKENS_OF_A_WORD, _TOKENS_OF_A_ROW, _STEPS, _BATCH = 2, 512, 20, 32
"""Estimates for the batch size of a model from scratch: an epoch takes at least `_STEPS` steps, unless a batch is one
packed row; `_BATCH` is the largest."""


def propose(preview: DataPreview) -> Proposal:
    """Raises Unsuitable for data without conversations and texts."""
    if preview.named_labels:
        raise Unsuitable("a language model has no label")
    chats = [name for name, kind in preview.nested.items() if _is_chat(kind)]
    if chats:
        return _proposal(SURE, _TUNED, {"messages": chats[0]}, _COMMENT)
    for prompt, completion in _PAIRS:
        if prompt in preview.columns and completion in preview.columns and completion in preview.texts:
            notes = [_BELONG_TOGETHER] if prompt == "question" else []
            return _proposal(2, _TUNED, {"prompt": prompt, "completion": completion}, _COMMENT, notes)
    if preview.has_images or not preview.texts:
        raise Unsuitable("no column holds texts of several words, or conversations of objects with role and content")
    comment = f"trained from scratch; `pretrained: {PRETRAINED}` instead knows several languages"
    notes = ["GUESSED: a language model learns the texts, because no column is clearly a label; --label names one."]
    if len(preview.texts) == 2:
        notes.append(_BELONG_TOGETHER)
    words = sum(preview.columns[name].words for name in preview.texts)
    batch = min(_BATCH, max(1, words * _TOKENS_OF_A_WORD // (_TOKENS_OF_A_ROW * _STEPS)))
    found = _proposal(0, {"causalLM": {"decoder": {}}}, {"text": preview.texts}, comment, notes)
    problems = (column.problem(name) for name, column in preview.columns.items() if name not in preview.texts)
    found.notes += [
        *preview.not_read(preview.texts),
        *(f"Perhaps a label: {problem}." for problem in problems if problem),
    ]
    found.training = {"epochs": 10, "batchSize": batch, "earlyStopping": {"patience": 3}}
    found.comments["batchSize"] = f"of rows that hold several texts, {_TOKENS_OF_A_ROW} tokens in all"
    return found


def _proposal(
    confidence: int, model: dict[str, Any], dataset: dict[str, Any], comment: str, notes: Sequence[str] = ()
) -> Proposal:
    return Proposal(confidence, model, dataset, {"epochs": 3}, {"model": comment}, list(notes))


def _is_chat(kind: pa.DataType) -> bool:
    if not pa.types.is_list(kind) and not pa.types.is_large_list(kind):
        return False
    names = {each.name for each in kind.value_type.fields} if pa.types.is_struct(kind.value_type) else set()
    return {"role", "content"} <= names
