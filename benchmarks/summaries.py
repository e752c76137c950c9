"""Compares the perplexity of examples/summaries.yaml's language model with an n-gram model and the untrained network.

Run examples/make_summaries.py first. Without RUN, it trains the example. All three give the probability of each token
of a test sentence after the signature and the sentence's earlier tokens, with the run's tokenizer. The n-gram model
counts the tokens of the training rows, including signatures. Its order is chosen on rows held back from its counts.
"""

import argparse
import csv
import math
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import torch

from trainjob.data import Examples, Preprocessor
from trainjob.data.batches.examples import batches_by_length
from trainjob.data.batches.loaders import collate
from trainjob.data.read.rows import row_number
from trainjob.evaluation import LanguageScores
from trainjob.generator import TextGenerator
from trainjob.kinds.causal_lm.network import CausalLMModule
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.kinds.targets.next_token_objective import NextTokenObjective
from trainjob.models.scoring import tally_batches

EXAMPLE = Path(__file__).parent.parent / "examples" / "summaries.yaml"
DATA = EXAMPLE.parent / "data" / "summaries"
ORDERS = (2, 3, 4, 5)
HELD_BACK = 20
"""One row in this many is used to choose the order."""
SCORED_ROWS = 8
"""Packed rows of a batch."""

Text = tuple[list[int], int]
"""Tokens, and the length of the prompt."""


class NGrams:
    """An n-gram model with Witten-Bell interpolation (1991) down to single tokens."""

    def __init__(self, texts: Iterable[Text], order: int, vocabulary_size: int) -> None:
        self._order, self._vocabulary_size = order, vocabulary_size
        self._following: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        for tokens, _ in texts:
            for place in range(1, len(tokens)):
                for length in range(min(order, place + 1)):
                    self._following[tuple(tokens[place - length : place])][tokens[place]] += 1
        self._totals = {context: counts.total() for context, counts in self._following.items()}

    def probability(self, token: int, before: Sequence[int]) -> float:
        """Probability of `token` after the tokens `before`."""
        found = 1 / self._vocabulary_size
        for length in range(min(self._order, len(before) + 1)):
            context = tuple(before[len(before) - length :])
            if context not in self._totals:
                break
            counts, total = self._following[context], self._totals[context]
            found = (counts[token] + len(counts) * found) / (total + len(counts))
        return found

    def perplexity(self, texts: Iterable[Text]) -> tuple[float, int]:
        """Perplexity of the tokens after the prompt, and their number."""
        logarithms = [
            math.log(self.probability(tokens[place], tokens[max(0, place - self._order + 1) : place]))
            for tokens, given in texts
            for place in range(given, len(tokens))
        ]
        return math.exp(-sum(logarithms) / len(logarithms)), len(logarithms)


def texts_of(file: Path, tokens: TokensInput) -> list[Text]:
    """The rows as the network's input."""
    encode, begin, end = tokens.tokenizer.encode, tokens.begin_token_id, tokens.end_token_id
    found: list[Text] = []
    with file.open(newline="", encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            prompt = [begin, *encode(row["signature"], add_special_tokens=False).ids]
            found.append(([*prompt, *encode(row["summary"], add_special_tokens=False).ids, end], len(prompt)))
    return found


def network_perplexity(model: CausalLMModule, preprocessor: Preprocessor, file: Path) -> tuple[float, int]:
    """Perplexity of the sentences in `file`, and their number of tokens."""
    rows = pyarrow.csv.read_csv(file, parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True))
    packed = Examples.from_table(pa.table({"values": preprocessor.input.transform(rows, row_number)}))
    batches = (collate(preprocessor, packed.take(rows)) for rows in batches_by_length(packed.lengths, SCORED_ROWS))
    tally = tally_batches(model, NextTokenObjective(), batches, next(model.parameters()).device, torch.float32)
    scores = tally.scores()
    assert isinstance(scores, LanguageScores)
    return scores.perplexity, scores.tokens


def best_ngrams(texts: list[Text], vocabulary_size: int) -> tuple[int, NGrams]:
    """The order whose counts best predict the held-back rows, and the counts of all rows."""
    held = texts[::HELD_BACK]
    counted = [text for number, text in enumerate(texts) if number % HELD_BACK]
    order = min(ORDERS, key=lambda order: NGrams(counted, order, vocabulary_size).perplexity(held)[0])
    return order, NGrams(texts, order, vocabulary_size)


def measure(run: str) -> None:
    generator = TextGenerator.load(run)
    model, preprocessor = generator.model, generator.preprocessor
    order, counts = best_ngrams(texts_of(DATA / "train.csv", generator.tokens), generator.tokens.vocabulary_size)
    expected, tokens = counts.perplexity(texts_of(DATA / "test.csv", generator.tokens))
    trained, scored = network_perplexity(model, preprocessor, DATA / "test.csv")
    assert scored == tokens, "both are asked about the same tokens"
    torch.manual_seed(0)
    anew = CausalLMModule(type(model.network)(model.network.config)).eval()
    untrained, _ = network_perplexity(anew, preprocessor, DATA / "test.csv")
    print(f"| perplexity of {tokens:,} tokens | | beside the trained network |\n|---|---|---|")
    names = f"best n-gram model (order {order})", "network, untrained", "network, trained"
    for name, value in zip(names, (expected, untrained, trained), strict=True):
        print(f"| {name} | {value:.1f} | {value / trained:.2f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", nargs="?", metavar="RUN", help="a run of examples/summaries.yaml")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.run is None:
            command = [str(Path(sys.executable).parent / "trainjob"), "run", str(EXAMPLE)]
            subprocess.run([*command, "--set", f"spec.storage.uri={folder}"], check=True)
        measure(arguments.run or f"{folder}/summaries")


if __name__ == "__main__":
    main()
