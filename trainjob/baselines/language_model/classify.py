"""A language model as a baseline."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from trainjob.api.baselines import LanguageModel
from trainjob.baselines.cheap import HeldOutPredictions
from trainjob.baselines.language_model.answers import Answer, AnswerCache
from trainjob.baselines.language_model.ask import Asker
from trainjob.baselines.language_model.examples import chooser
from trainjob.baselines.language_model.prompt import messages, read_answer
from trainjob.baselines.rows import Sampled
from trainjob.errors import UserError
from trainjob.storage import Folder

_SHOWN, _MAX_CHARACTERS = 5, 60


class Sorter:
    """A language model that sorts texts into the classes of a run, in whose folder its answers are kept."""

    def __init__(
        self, model: LanguageModel, run: Folder, classes: list[str], train: Callable[[], Sampled], seed: int
    ) -> None:
        """`train` returns the rows from which examples are chosen; it is called only if the model wants examples.

        Raises UserError for descriptions of unknown classes.
        """
        if unknown := sorted(model.descriptions.keys() - set(classes)):
            raise UserError(f"descriptions names {', '.join(unknown)}, but the classes are {', '.join(classes)}")
        self.classes, self.asker = classes, Asker(model, classes, AnswerCache(run))
        self._descriptions = model.descriptions
        self._examples: Callable[[str], list[tuple[str, str]]] = lambda _: []
        if model.shots > 0:
            self._examples = chooser(train(), classes, model.shots, model.examples == "nearest", seed)

    def answers(self, texts: Sequence[str]) -> list[Answer | None]:
        """The answer to each text; None for texts beyond the budget.

        Raises UserError if the server refuses or keeps failing.
        """
        questions = (messages(text, self.classes, self._descriptions, self._examples(text)) for text in texts)
        found = self.asker.ask_all(questions, len(texts))
        return [*found, *[None] * (len(texts) - len(found))]

    def class_numbers(self, answers: Sequence[Answer]) -> np.ndarray:
        """The class of each text, int64 [n]; the number of classes if the answer names none."""
        names = [read_answer(answer.text, self.classes) for answer in answers]
        numbers = [self.classes.index(name) if name is not None else len(self.classes) for name in names]
        return np.array(numbers, np.int64)


def classify(
    model: LanguageModel, run: Folder, classes: list[str], train: Sampled, held: Sampled, seed: int
) -> HeldOutPredictions:
    """Asks about the held rows in random order, until all are answered or the budget is spent.

    Raises UserError for descriptions of unknown classes, and if the server refuses or keeps failing.
    """
    order = np.random.default_rng(seed).permutation(len(held.labels))
    sorter = Sorter(model, run, classes, lambda: train, seed)
    answers = sorter.answers([str(held.values[index]) for index in order])
    answered = {int(row_index): answer for row_index, answer in zip(order, answers, strict=True) if answer is not None}
    if not answered:
        raise UserError(
            f"no row was sent to the language model: {sorter.asker.budget.reached} has already been reached"
        )
    row_indices = sorted(answered)
    found = [answered[row_index] for row_index in row_indices]
    predicted = sorter.class_numbers(found)
    unread = [answer.text for answer, number in zip(found, predicted, strict=True) if number == len(classes)]
    notes = [*_left_out(sorter.asker, len(row_indices), len(order)), *_unknown(unread), _cost(sorter.asker, found)]
    tokens = np.array([(answer.input_tokens, answer.output_tokens) for answer in found], np.int64)
    return HeldOutPredictions(predicted, None, np.array(row_indices), notes, tokens)


def _left_out(asker: Asker, asked: int, rows: int) -> list[str]:
    if asked == rows:
        return []
    return [f"compared on {asked:,} of the {rows:,} rows, drawn at random, as {asker.budget.reached} was reached"]


def _unknown(texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    common = Counter(" ".join(text.split())[:_MAX_CHARACTERS] for text in texts).most_common(_SHOWN)
    shown = ", ".join(f'"{text}" ({number:,})' for text, number in common)
    return [f"{len(texts):,} answers name none of the classes and count as wrong, such as {shown}"]


def _cost(asker: Asker, answers: Sequence[Answer]) -> str:
    budget, tokens = asker.budget, sum(answer.input_tokens + answer.output_tokens for answer in answers)
    money = f", which cost {budget.cost:.4f} now" if asker.model.input_price or asker.model.output_price else ""
    return f"{len(answers):,} answers of {tokens:,} tokens in all; {budget.requests:,} requests now{money}"
