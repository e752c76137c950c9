"""`spec.baselines`: what the trained model is compared with."""

from trainjob.api.base import StrictModel


class MostFrequent(StrictModel):
    """The most frequent class of the training part, whatever the row."""


class Tfidf(StrictModel):
    """Logistic regression on the TF-IDF weights of words and pairs of words."""


class Pixels(StrictModel):
    """Logistic regression on the pixels of the image, shrunk to at most 32 by 32."""


class Baselines(StrictModel):
    """Classifiers that cost little, scored on the same rows as the trained model; those that are named, none for
    `{}`."""

    most_frequent: MostFrequent | None = None
    """The most frequent class of the training part, whatever the row."""
    tfidf: Tfidf | None = None
    """Logistic regression on the TF-IDF weights of words and pairs of words; for text classifiers."""
    pixels: Pixels | None = None
    """Logistic regression on the pixels of the image, shrunk to at most 32 by 32; for image classifiers."""

    @property
    def named(self) -> list[str]:
        """The names in YAML of those that are wanted."""
        return [info.alias or name for name, info in type(self).model_fields.items() if getattr(self, name) is not None]
