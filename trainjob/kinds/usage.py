"""Instructions for using a trained model, for the report and the model's card."""

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

Usage = list[tuple[str, str]]
"""Titles, each with commands or Python code."""


@dataclass(frozen=True)
class Library:
    """A library that loads the model besides trainjob."""

    name: str
    code: str
    """Python code that loads it from FOLDER."""
    joins_columns: bool = False
    """Whether the model takes texts, which trainjob joins from columns and cleans."""


def usage_of_predictor(uri: str, option: str, rows: str, data: str) -> Usage:
    """How to use a model that `Predictor` loads from `uri`. `option` gives `trainjob predict` one row, `rows` are some
    in Python, `data` is a file or folder of rows."""
    run = shlex.quote(uri)
    return [
        (
            "On the command line",
            f"trainjob predict {run} {option}\n"
            f"trainjob predict {run} {data} --output predictions.csv\ntrainjob evaluate {run} {data}",
        ),
        (
            "In Python",
            f"from trainjob import Predictor\n\n"
            f"predictor = Predictor.load({json.dumps(uri)})\n"
            f"classes = predictor.predict({rows})\n"
            f"probabilities = predictor.predict_proba({rows})  # one column for each of predictor.classes",
        ),
    ]


TEXT_OPTION, TEXTS = '--text "…"', '["a text", "another"]'
"""A text for `trainjob predict`, and some in Python."""


def usage_of_pairs(usage: Usage, columns: Sequence[str]) -> Usage:
    """The usage of a model whose rows are pairs of texts, in these columns, made of that for rows of one text."""
    row = shlex.quote(json.dumps(dict.fromkeys(columns, "…"), ensure_ascii=False))
    changes = {TEXT_OPTION: f"--row {row}", TEXTS: '[("a text", "another")]'}
    for one, pair in changes.items():
        usage = [(title, text.replace(one, pair)) for title, text in usage]
    return usage


def usage_of_regressor(uri: str, option: str, rows: str, data: str) -> Usage:
    """The usage of a model that predicts numbers."""
    (command, commands), (title, _) = usage_of_predictor(uri, option, rows, data)
    code = f"from trainjob import Predictor\n\nnumbers = Predictor.load({json.dumps(uri)}).predict({rows})"
    return [(command, commands), (title, code)]


def usage_of_embedder(uri: str, option: str, rows: str, data: str) -> Usage:
    """The usage of a model that returns vectors."""
    (command, commands), (title, _) = usage_of_predictor(uri, option, rows, data)
    code = f"from trainjob import Predictor\n\nvectors = Predictor.load({json.dumps(uri)}).predict({rows})"
    return [(command, commands.replace("predictions.csv", "vectors.parquet")), (title, code)]


def usage_of_generator(uri: str) -> Usage:
    """How to use a language model that `TextGenerator` loads from `uri`."""
    run = shlex.quote(uri)
    return [
        (
            "On the command line",
            f'trainjob predict {run} --text "…" --max-new-tokens 50 --temperature 0.8\n'
            f"trainjob predict {run} prompts.csv --output continued.csv\n"
            f"trainjob evaluate {run} new.csv",
        ),
        (
            "In Python",
            f"from trainjob import TextGenerator\n\n"
            f"generator = TextGenerator.load({json.dumps(uri)})\n"
            f'texts = generator.generate(["a text", "another"], max_new_tokens=50)',
        ),
    ]
