"""Scores of a model on a set."""

from trainjob.evaluation.scores import (
    AnyScores,
    ClassScores,
    Confusion,
    LanguageScores,
    Scores,
    check_finite,
    language_scores,
    scores,
)

__all__ = [
    "AnyScores",
    "ClassScores",
    "Confusion",
    "LanguageScores",
    "Scores",
    "check_finite",
    "language_scores",
    "scores",
]
