"""`spec.model.textEmbedder`."""

from typing import Annotated, ClassVar

from pydantic import Field

from trainjob.kinds.facts import SCRATCH_RATE, TABLE_FORMATS, ColumnFields, Direction, Facts, RowForm
from trainjob.kinds.text_network import PooledEncoder
from trainjob.kinds.usage import TEXT_OPTION, TEXTS, Library, Usage, usage_of_embedder

_LOSSES: dict[str, Direction] = {"validation_loss": "min", "train_loss": "min"}
_METRICS_OF_RANKS: dict[str, Direction] = {
    **_LOSSES,
    "validation_mrr": "max",
    "validation_recall_at_1": "max",
    "validation_recall_at_10": "max",
}
_METRICS_OF_TRIPLETS: dict[str, Direction] = {**_METRICS_OF_RANKS, "validation_triplet_accuracy": "max"}
_METRICS_OF_SCORES: dict[str, Direction] = {**_LOSSES, "validation_spearman": "max", "validation_pearson": "max"}
_SCALE = 20.0
_ROW_FORMS = (
    RowForm("pairs", ("textPair",), _METRICS_OF_RANKS),
    RowForm("triplets", ("textPair", "textNegative"), _METRICS_OF_TRIPLETS),
    RowForm("pairs with scores", ("textPair", "label"), _METRICS_OF_SCORES, {"scale": _SCALE}),
    RowForm("texts with classes", ("label",), _METRICS_OF_RANKS),
)
_FINE_TUNING_RATE = 5e-5


class TextEmbedder(PooledEncoder):
    """A transformer encoder with mean pooling: a vector of length 1 for each text. It learns from pairs of texts that
    belong together, each beside the other pairs of its batch and their hard negatives (`dataset.textNegative`), from
    pairs with scores (`dataset.label`), which the cosine of their vectors follows, or, without `dataset.textPair`, from
    texts with classes (`dataset.label`), each beside those of its class and the others of its batch."""

    scale: Annotated[float, Field(gt=0)] = _SCALE
    """Factor of the cosine similarities in the loss: the inverse of its temperature. Not for pairs with scores."""

    facts: ClassVar[Facts] = Facts(
        field="textEmbedder",
        noun="embedder of texts",
        hub_task="sentence-similarity",
        scores=(
            "trainjob.evaluation.scores.retrieval:RetrievalScores",
            "trainjob.evaluation.scores.retrieval:TripletScores",
            "trainjob.evaluation.scores.retrieval:SameClassScores",
            "trainjob.evaluation.scores.similarity:SimilarityScores",
        ),
        needs_dataset=True,
        formats=TABLE_FORMATS,
        columns=ColumnFields(
            allowed=("text", "textPair", "textNegative", "label", "cleaning"),
            required={
                ("text",): "is required by model.textEmbedder: the columns that hold the text",
                (
                    "textPair",
                    "label",
                ): "is required by model.textEmbedder: the columns that hold a text that belongs to "
                "it, or dataset.label: the column of its class",
            },
        ),
        metrics=_METRICS_OF_TRIPLETS | _METRICS_OF_SCORES,
        abilities=frozenset({"tuning"}),
        usual_baselines=("tfidf",),
        row_forms=_ROW_FORMS,
        scales_losses=("scale",),
        compares_rows=True,
        not_tuned=(
            "maxLength",
            "encoder.vocabularySize",
            "encoder.hiddenSize",  # the length of the vectors
            "encoder.heads",
        ),
    )

    @property
    def path(self) -> str:
        """The path of this section in a TrainJob."""
        return f"spec.model.{self.facts.field}"

    @property
    def description(self) -> str:
        if self.pretrained is None:
            return "Text embedder, encoder trained from scratch"
        return f"Text embedder on {self.pretrained}"

    @property
    def worker_modules(self) -> list[str]:
        """Modules of its network, which workers import before the driver has prepared the rows."""
        return ["trainjob.kinds.text_embedder.network"]

    @property
    def library(self) -> Library:
        code = 'from sentence_transformers import SentenceTransformer\n\nembed = SentenceTransformer("FOLDER").encode'
        return Library("sentence-transformers", code, joins_columns=True)

    def usage(self, uri: str) -> Usage:
        return usage_of_embedder(uri, TEXT_OPTION, TEXTS, "new.csv")

    @property
    def usual_learning_rate(self) -> float:
        return SCRATCH_RATE if self.pretrained is None else _FINE_TUNING_RATE
