"""The baseline for a text classifier: logistic regression on TF-IDF of words and word pairs.

python benchmarks/baseline_tfidf.py train.csv test.csv --text docstring --label package

Regularization is chosen by cross-validation on the training rows; the test rows are scored once.
"""

import argparse
from pathlib import Path

import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", type=Path)
    parser.add_argument("test", type=Path)
    parser.add_argument("--text", nargs="+", required=True, help="columns that hold the text")
    parser.add_argument("--label", required=True, help="column that holds the label")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    columns = arguments.text, arguments.label
    search = fit(*read(arguments.train, *columns), arguments.seed)
    texts, labels = read(arguments.test, *columns)
    predicted = search.predict(texts)
    print(f"C: {search.best_params_['classify__C']}")
    print(f"cross-validated macro F1: {search.best_score_:.4f}")
    print(f"test accuracy: {accuracy_score(labels, predicted):.4f}")
    print(f"test macro F1: {f1_score(labels, predicted, average='macro'):.4f}")


def read(path: Path, text: list[str], label: str) -> tuple[list[str], list[str]]:
    """The texts, with columns joined by a space as in trainjob, and the labels."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    return [" ".join(row) for row in table[text].to_numpy()], table[label].to_list()


def fit(texts: list[str], labels: list[str], seed: int) -> GridSearchCV:
    pipeline = Pipeline(
        [
            ("vectorize", TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2)),
            ("classify", LogisticRegression(max_iter=1000)),
        ]
    )
    folds = StratifiedKFold(3, shuffle=True, random_state=seed)
    search = GridSearchCV(pipeline, {"classify__C": [3, 10, 30, 100]}, scoring="f1_macro", cv=folds)
    return search.fit(texts, labels)


if __name__ == "__main__":
    main()
