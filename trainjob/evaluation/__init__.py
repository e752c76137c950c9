"""Scores of a classifier on a labelled set."""

from trainjob.evaluation.scores import ClassScores, Scores, scores

__all__ = ["ClassScores", "Scores", "scores"]
