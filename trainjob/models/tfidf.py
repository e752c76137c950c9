"""Linear models of TF-IDF weights as models of a run: baselines that its network is compared with."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import safetensors.numpy

from trainjob.data import Preprocessor
from trainjob.models.precomputed import Precomputed, precomputed

MODEL_TYPE = "trainjob-tfidf"
VOCABULARY = "vocabulary.txt"
"""The words and word pairs, one a line."""
MAX_TERMS = 50_000
FEW_ROWS = 1000
"""With fewer rows, words that occur once are terms, too."""
PARTS_OF_PAIR = 4
_SETTINGS: dict[str, Any] = {"ngram_range": (1, 2), "sublinear_tf": True, "token_pattern": r"\b\w+\b"}


class TfidfFeatures:
    """TF-IDF weights of words and word pairs, sparse [n, f]; of pairs of texts, which are two lines each, those of each
    text, their products and the amounts of their differences."""

    def __init__(self, vectorizer: Any, are_pairs: bool) -> None:
        self._vectorizer, self._are_pairs = vectorizer, are_pairs

    @classmethod
    def fitted(cls, texts: Sequence[str]) -> Self:
        """Raises ValueError where the texts have no words."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        least, are_pairs = 2 if len(texts) >= FEW_ROWS else 1, any("\n" in text for text in texts)
        vectorizer: Any = TfidfVectorizer(**_SETTINGS, min_df=least, max_features=MAX_TERMS)
        vectorizer.fit([line for text in texts for line in text.split("\n")] if are_pairs else texts)
        return cls(vectorizer, are_pairs)

    def transform(self, texts: Sequence[str]) -> Any:
        """The features of these texts."""
        if not self._are_pairs:
            return self._vectorizer.transform(texts)
        from scipy import sparse

        lines = zip(*(text.split("\n")[:2] for text in texts), strict=True)
        first, second = (self._vectorizer.transform(each) for each in lines)
        return sparse.hstack([first, second, first.multiply(second), abs(first - second)], format="csr")

    def save(self, weights: np.ndarray, intercepts: np.ndarray, preprocessor: Preprocessor, folder: Path) -> None:
        """Writes the linear model of these features with `weights` [f, width] and `intercepts` [width]."""
        self.save_terms(folder)
        arrays = {"weights": weights, "intercepts": intercepts, "idf": self.idf}
        safetensors.numpy.save_file(
            {name: np.ascontiguousarray(each) for name, each in arrays.items()}, folder / "model.safetensors"
        )
        (folder / "config.json").write_text(json.dumps({"model_type": MODEL_TYPE, "pairs": self._are_pairs}))
        preprocessor.save(folder)

    @property
    def idf(self) -> np.ndarray:
        """The inverse document frequency of each term, float64 [terms]."""
        return self._vectorizer.idf_

    def save_terms(self, folder: Path) -> None:
        indices = self._vectorizer.vocabulary_
        (folder / VOCABULARY).write_text("\n".join(sorted(indices, key=indices.get)), encoding="utf-8")

    @classmethod
    def loaded(cls, folder: Path, idf: np.ndarray, are_pairs: bool = False) -> Self:
        """The features with the terms that are saved in `folder`. Raises ValueError where they do not fit `idf`
        [terms]."""
        from sklearn.feature_extraction.text import TfidfVectorizer

        terms = (folder / VOCABULARY).read_text(encoding="utf-8").split("\n")
        vectorizer: Any = TfidfVectorizer(**_SETTINGS, vocabulary=terms)
        vectorizer.idf_ = idf
        return cls(vectorizer, are_pairs)


def load_tfidf(folder: Path, preprocessor: Preprocessor) -> tuple[Precomputed, Preprocessor]:
    """Raises ValueError for a damaged model."""
    are_pairs = bool(json.loads((folder / "config.json").read_bytes())["pairs"])
    arrays = safetensors.numpy.load_file(folder / "model.safetensors")
    weights, tfidf = arrays["weights"], TfidfFeatures.loaded(folder, arrays["idf"], are_pairs)
    terms = len(tfidf.idf)
    if weights.shape != (terms * (PARTS_OF_PAIR if are_pairs else 1), preprocessor.target.width):
        raise ValueError(f"its weights are {list(weights.shape)}, for {terms:,} terms")

    def outputs(texts: Any) -> np.ndarray:
        return (tfidf.transform(texts).astype(weights.dtype) @ weights + arrays["intercepts"]).astype(np.float64)

    return precomputed(preprocessor, outputs)
