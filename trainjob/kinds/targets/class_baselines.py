"""Logistic regression as a baseline. scikit-learn, which takes a second to import, is imported when it is computed."""

import warnings
from typing import Any

import numpy as np

INVERSE_REGULARIZATION = 10.0
UPDATES = 1e9
"""Limit for the number of weights, beyond which fitting stops: about 5 seconds of one core."""
FEWEST_EPOCHS, MOST_EPOCHS = 5, 300


def logistic_regression(features: Any, labels: np.ndarray, held: Any, classes: int) -> np.ndarray:
    """Probabilities, float32 [n, C], of the rows with the features `held`; those of a class that the training rows lack
    are 0."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    updates = classes * (features.nnz if hasattr(features, "nnz") else features.size)
    epochs = int(np.clip(UPDATES / updates, FEWEST_EPOCHS, MOST_EPOCHS))
    # saga gets as far as lbfgs in a tenth of the time, and sees to single precision, too
    model = LogisticRegression(C=INVERSE_REGULARIZATION, solver="saga", max_iter=epochs, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # what it has come to by then is what is compared
        model.fit(features.astype(np.float32), labels)
    probabilities = np.zeros((held.shape[0], classes), np.float32)
    probabilities[:, model.classes_] = model.predict_proba(held.astype(np.float32))
    return probabilities
