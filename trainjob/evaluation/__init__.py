"""Scores of a model on a set."""

from trainjob.evaluation.confusion import Confusion
from trainjob.evaluation.scores.base import Scores, check_finite, parse_evaluation, parse_scores, scores_type
from trainjob.evaluation.scores.classes import ClassificationScores, ClassScores, classification_scores
from trainjob.evaluation.scores.tokens import LanguageScores, language_scores

__all__ = [
    "ClassScores",
    "ClassificationScores",
    "Confusion",
    "LanguageScores",
    "Scores",
    "check_finite",
    "classification_scores",
    "language_scores",
    "parse_evaluation",
    "parse_scores",
    "scores_type",
]
