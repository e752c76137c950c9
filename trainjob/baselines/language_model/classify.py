"""A language model as a baseline."""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from trainjob.api.baselines import LanguageModel
from trainjob.baselines.classifiers import Guess
from trainjob.baselines.language_model.answers import Answer, Answers
from trainjob.baselines.language_model.ask import Asker
from trainjob.baselines.language_model.examples import chooser
from trainjob.baselines.language_model.prompt import messages, read_answer
from trainjob.baselines.rows import Sampled
from trainjob.errors import UserError
from trainjob.storage import Folder

_SHOWN, _LONGEST = 5, 60


def classify(model: LanguageModel, run: Folder, classes: list[str], train: Sampled, held: Sampled, seed: int) -> Guess:
    """Asks about the held rows in random order, until all are answered or the budget is spent.

    Raises UserError for descriptions of what is no class, and where the server refuses or goes on failing.
    """
    if unknown := sorted(model.descriptions.keys() - set(classes)):
        raise UserError(f"descriptions names {', '.join(unknown)}, but the classes are {', '.join(classes)}")
    order = np.random.default_rng(seed).permutation(len(held.labels))
    texts = [str(held.values[index]) for index in order]
    examples = chooser(train, texts, classes, model.shots, model.examples == "nearest", seed)
    asker = Asker(model, classes, Answers(run))
    questions = (messages(text, classes, model.descriptions, examples(index)) for index, text in enumerate(texts))
    answers = asker.ask_all(questions)
    answered = {int(place): answer for place, answer in zip(order, answers, strict=False) if answer is not None}
    if not answered:
        raise UserError(f"no row was asked about: {asker.budget.reached} is reached already")
    places = sorted(answered)
    found = [answered[place] for place in places]
    meant = [read_answer(answer.text, classes) for answer in found]
    predicted = [classes.index(name) if name is not None else len(classes) for name in meant]
    unread = [answer.text for answer, name in zip(found, meant, strict=True) if name is None]
    notes = [*_left_out(asker, len(places), len(texts)), *_unknown(unread), _cost(asker, found)]
    return Guess(np.array(predicted), None, np.array(places), notes)


def _left_out(asker: Asker, asked: int, rows: int) -> list[str]:
    if asked == rows:
        return []
    return [f"compared on {asked:,} of the {rows:,} rows, drawn at random, as {asker.budget.reached} was reached"]


def _unknown(texts: Sequence[str]) -> list[str]:
    if not texts:
        return []
    common = Counter(" ".join(text.split())[:_LONGEST] for text in texts).most_common(_SHOWN)
    shown = ", ".join(f'"{text}" ({number:,})' for text, number in common)
    return [f"{len(texts):,} answers are of no class and count as wrong, such as {shown}"]


def _cost(asker: Asker, answers: Sequence[Answer]) -> str:
    budget, tokens = asker.budget, sum(answer.input_tokens + answer.output_tokens for answer in answers)
    money = f", which cost {budget.cost:.4f} now" if asker.model.input_price or asker.model.output_price else ""
    return f"{len(answers):,} answers of {tokens:,} tokens in all; {budget.requests:,} requests now{money}"
