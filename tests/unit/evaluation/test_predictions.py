import numpy as np

from trainjob.evaluation.predictions import kept_classes, ranked_table, with_names


def test_of_many_classes_the_most_probable_are_kept() -> None:
    assert [kept_classes(count) for count in (2, 100, 101, 10_000)] == [2, 100, 20, 20]


def test_classes_get_their_names() -> None:
    ranked, probabilities = np.array([[2, 0], [1, 2]]), np.array([[0.75, 0.25], [0.5, 0.375]], np.float32)
    table = with_names(ranked_table(np.arange(2), ranked, probabilities, np.array([0, 1])), ["a", "b", "c"])
    assert table.to_pydict() == {
        "row": [0, 1],
        "prediction": ["c", "b"],
        "probability": [0.75, 0.5],
        "label": ["a", "b"],
        "classes": [["c", "a"], ["b", "c"]],
        "probabilities": [[0.75, 0.25], [0.5, 0.375]],
    }
