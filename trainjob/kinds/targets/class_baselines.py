"""Logistic regression as a baseline. scikit-learn, which takes a second to import, is imported when it is computed."""

import warnings
from typing import Any

import numpy as np

INVERSE_REGULARIZATION = 10.0
UPDATES = 1e9
"""The most updates of single weights, after which fitting stops: about 5 seconds of one core."""
LOGIT_OF_ABSENT = -1e4
"""The logit of a class that the training rows lack: its probability is 0, and its loss finite."""
MIN_EPOCHS, MAX_EPOCHS = 5, 300


def one_vs_rest(features: Any, labels: np.ndarray, held: Any) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Probabilities of each label, float32 [n, L], of the rows with the features `held`, by a logistic regression for
    each label, from labels [m, L]. Also weights [f, L] and intercepts [L] of the logits."""
    count = labels.shape[1]
    probabilities = np.zeros((held.shape[0], count), np.float32)
    weights, intercepts = np.zeros((features.shape[1], count), np.float32), np.zeros(count, np.float32)
    for index in range(count):
        found, of_label = logistic_regression(features, labels[:, index], held, 2, count)
        probabilities[:, index] = found[:, 1]
        if of_label is None:
            intercepts[index] = -LOGIT_OF_ABSENT if labels[0, index] else LOGIT_OF_ABSENT
        else:
            weights[:, index], intercepts[index] = of_label[0][:, 1], of_label[1][1]
    return probabilities, (weights, intercepts)


def logistic_regression(
    features: Any, labels: np.ndarray, held: Any, classes: int, outputs: int | None = None
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray] | None]:
    """Probabilities, float32 [n, C], of the rows with the features `held`; those of a class that the training rows lack
    are 0. Also weights [f, C] and intercepts [C] of the logits, None where the training rows have one class. The limit
    of updates is for as many `outputs`, by default the classes."""
    if len(present := np.unique(labels)) == 1:
        return np.tile((np.arange(classes) == present[0]).astype(np.float32), (held.shape[0], 1)), None
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    updates = (outputs or classes) * (features.nnz if hasattr(features, "nnz") else features.size)
    epochs = int(np.clip(UPDATES / updates, MIN_EPOCHS, MAX_EPOCHS))
    # saga gets as far as lbfgs in a tenth of the time, and sees to single precision, too
    model = LogisticRegression(C=INVERSE_REGULARIZATION, solver="saga", max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit after the last epoch counts, converged or not
        model.fit(features.astype(np.float32), labels)
    probabilities = np.zeros((held.shape[0], classes), np.float32)
    probabilities[:, model.classes_] = model.predict_proba(held.astype(np.float32))
    of_weights = model.classes_ if len(model.classes_) > 2 else model.classes_[1:]
    weights = np.zeros((features.shape[1], classes), model.coef_.dtype)
    intercepts = np.full(classes, LOGIT_OF_ABSENT, model.coef_.dtype)
    intercepts[model.classes_] = 0
    weights[:, of_weights], intercepts[of_weights] = model.coef_.T, model.intercept_
    return probabilities, (weights, intercepts)
