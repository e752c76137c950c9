"""Unsupported tasks and settings that users look for in a TrainJob, with alternatives."""

from trainjob.kinds import KINDS

_OWN_LOOP = "write your own Ray Train loop (spec.model.function)"
_INSTEAD = {
    "regression regressor": "to predict numbers, use spec.model.textRegressor, imageRegressor or tableRegressor",
    "tabularregressor tableregression tabularregression": "to predict numbers, use spec.model.tableRegressor",
    "multilabel multilabelclassifier textmultilabel": (
        "for several labels a row, use spec.model.textClassifier or imageClassifier with spec.dataset.labels"
    ),
    "tabular table tabularclassifier xgboost lightgbm": "for tables, use spec.model.tableClassifier or tableRegressor",
    "tokenclassification ner": "to find spans in texts, use spec.model.tokenClassifier",
    "seq2seq translation summarization questionanswering": (
        "to generate text, use spec.model.causalLM with dataset.prompt and dataset.completion"
    ),
    "objectdetection objectdetector detection segmentation": (
        f"models of images predict classes, labels or numbers, not positions in an image: {_OWN_LOOP}"
    ),
    "audio audioclassifier speech asr video": f"only texts, images and tables are supported: {_OWN_LOOP}",
    "dpo grpo ppo rlhf reward": f"preference training is not supported: {_OWN_LOOP}",
    "embedding embeddings embedder sentencetransformer": "for vectors of texts, use spec.model.textEmbedder",
    "oversampling oversample undersampling resampling": (
        "rows are not repeated or left out; for rare classes, set classWeights: {balanced: {}} in the model's section"
    ),
    "task tasktype problemtype": (
        "the task follows from spec.model: "
        f"{', '.join(name for name, kind in KINDS.items() if not kind.is_users_loop)}, or a function of your own"
    ),
}


def instead_of(name: str) -> str | None:
    """The alternative to the field `name` (lower case, without hyphens); None if it is not a known task."""
    return next((instead for names, instead in _INSTEAD.items() if name in names.split()), None)
