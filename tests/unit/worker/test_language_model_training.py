"""Language models in the loop that all models share, and the commands that use what it trained."""

import csv
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from preprocessors import input_of, labels_after, language_model
from ranks import run_on
from trainers import Setup, build_trainer, train, without_times
from trainjob import Predictor, TextGenerator
from trainjob.api import Model, TrainJobSpec
from trainjob.cli.app import app
from trainjob.data import Examples, Fitted
from trainjob.data.batches.examples import IGNORED
from trainjob.data.batches.loaders import InMemoryBatches
from trainjob.errors import UserError
from trainjob.evaluation import LanguageScores
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe
from trainjob.models import build, save_model
from trainjob.runs.checkpoints import CheckpointTensors, files_of
from trainjob.runs.model import local_copy
from trainjob.storage import Folder
from trainjob.worker.train import too_few_rows

TEXTS = [f"row {number} of {'many ' * (number % 7)}rows" for number in range(60)]
CHAT = (
    "{% for message in messages %}{{ message.role[0] }}:{{ message.content }};\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


def setup(folder: Path) -> Setup:
    tokens = TokensInput(["text"], 32, 10.0, *train_byte_bpe(TEXTS, 300, 32))
    spec = TrainJobSpec.model_validate(
        {
            "model": {
                "causalLM": {
                    "decoder": {"layers": 1, "hiddenSize": 16, "heads": 2, "dropout": 0.1, "vocabularySize": 300},
                    "maxLength": 32,
                }
            },
            "dataset": {"train": {"uri": "texts.csv"}, "text": ["text"]},
            "training": {"epochs": 2, "batchSize": 4, "precision": "float32", "gradientAccumulation": 2},
            "checkpoints": {"metric": "validation_perplexity"},
        }
    )

    def examples(texts: list[str]) -> Examples:
        return Examples.from_table(pa.table({"values": tokens.transform(pa.table({"text": texts}))}))

    return Setup(
        folder, spec, language_model(tokens), {"train": examples(TEXTS[:45]), "validation": examples(TEXTS[45:])}
    )


def adapter_setup(folder: Path) -> Setup:
    """An adapter beside a decoder, which is made in the folder `base` beside the run's."""
    made, base = setup(folder), folder.parent / "base"
    save_model(build(made.spec.model, made.preprocessor), made.preprocessor, base)
    language_model = {"pretrained": str(base), "maxLength": 32, "lora": {"rank": 2, "dropout": 0.1}}
    model = Model.model_validate({"causalLM": language_model})
    return replace(made, spec=made.spec.model_copy(update={"model": model}))


def _score(setup: Setup) -> LanguageScores:
    trainer = build_trainer(setup)
    scores = trainer.scorer.score(trainer.module, "validation")
    assert isinstance(scores, LanguageScores)
    return scores


def test_every_token_counts_once_however_many_ranks(tmp_path: Path):
    (one,) = run_on(1, _score, setup(tmp_path))
    made = setup(tmp_path)
    labels = labels_after(input_of(made.preprocessor, TokensInput), made.examples["validation"])
    assert one.tokens == sum(label >= 0 for row in labels for label in row)
    for other in run_on(3, _score, setup(tmp_path)):
        assert other.tokens == one.tokens
        assert other.loss == pytest.approx(one.loss, rel=1e-6)


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_run_that_was_killed_ends_like_one_that_was_not(tmp_path: Path, ranks: int):
    unbroken = run_on(ranks, train, setup(tmp_path / "unbroken"))
    killed = setup(tmp_path / "killed")
    batches = len(unbroken[0].drawn) // 2 + 2
    run_on(ranks, train, killed, batches)
    resumed = run_on(ranks, train, killed)
    assert resumed[0].resumed is not None
    assert without_times(resumed[0].records) == without_times(unbroken[0].records)
    for name, weight in unbroken[0].weights.items():
        assert np.array_equal(resumed[0].weights[name], weight), name
    losses = [record["validation_loss"] for record in unbroken[0].records if record["kind"] == "epoch"]
    assert losses[1] < losses[0] < np.log(300)
    for record in unbroken[0].records:
        assert record["kind"] == "epoch" or 0 < record["samples_per_second"] < record["tokens_per_second"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint's folder."""
    folder = tmp_path_factory.mktemp("run")
    run_on(1, train, setup(folder))
    return max((folder / "checkpoints").iterdir())


def test_texts_go_on_alike_in_batches_and_alone(model: Path):
    generator, prompts = TextGenerator.load(model), ["row", "", "row 3 of many many"]
    together = generator.generate(prompts, max_new_tokens=8)
    assert together == [generator.generate([prompt], max_new_tokens=8)[0] for prompt in prompts]
    drawn = generator.generate(prompts, max_new_tokens=8, temperature=1.0, top_p=0.9, seed=1)
    assert drawn == generator.generate(prompts, max_new_tokens=8, temperature=1.0, top_p=0.9, seed=1) != together


def test_a_text_ends_before_a_stop_string(model: Path):
    generator = TextGenerator.load(model)
    (whole,) = generator.generate(["row"], max_new_tokens=8, temperature=1.0, seed=2)
    stop = whole[2:4]
    (cut,) = generator.generate(["row"], max_new_tokens=8, temperature=1.0, seed=2, stop=(stop,))
    assert cut == whole[: whole.index(stop)]


@pytest.mark.parametrize(
    ("sampling", "said"),
    [
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1"),
        ({"max_new_tokens": 32}, "prompt 1 has 2 tokens; with 32 new ones at most 0 fit"),
        ({"temperature": -1.0}, "temperature must be at least 0"),
        ({"top_p": 0.0}, "top_p must be greater than 0"),
        ({"stop": ("",)}, "a stop string must not be empty"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ],
)
def test_odd_sampling_is_refused(model: Path, sampling: dict[str, Any], said: str):
    with pytest.raises(UserError, match=said):
        TextGenerator.load(model).generate(["r"], **sampling)


def test_the_commands_continue_and_score(model: Path, tmp_path: Path):
    table, written = tmp_path / "texts.csv", tmp_path / "written.csv"
    table.write_text("text\nrow 1\nrow 2\n")
    runner, most = CliRunner(), ["--max-new-tokens", "4"]
    shown = runner.invoke(app, ["predict", str(model), "--text", "row 1", *most])
    assert (shown.exit_code, shown.output[:5]) == (0, "row 1")
    assert runner.invoke(app, ["predict", str(model), str(table), "-o", str(written), *most]).exit_code == 0
    with written.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["text"] for row in rows] == ["row 1", "row 2"]
    assert f"row 1{rows[0]['continuation']}" == shown.output.removesuffix("\n")
    scored = runner.invoke(app, ["evaluate", str(model), str(table), "--json"])
    scores = LanguageScores.model_validate_json(scored.output)
    assert scores.perplexity == pytest.approx(np.exp(scores.loss))


def _without_digests(checkpoint: Path, folder: Path) -> Path:
    """The checkpoint's model in a folder of its own, where it may be changed."""
    with local_copy(Folder(str(checkpoint))) as model:
        return shutil.copytree(model, folder)


def _of_form(model: Path, folder: Path, form: str, columns: list[str]) -> Path:
    """The model as if it had learned rows of another form."""
    copy = _without_digests(model, folder / form)
    for name, more in (
        ("preprocessor.json", {"form": form, "columns": columns}),
        ("tokenizer_config.json", {"chat_template": CHAT}),
    ):
        (copy / name).write_text(json.dumps(json.loads((copy / name).read_text()) | more))
    return copy


def test_prompts_are_completed_and_completions_scored(model: Path, tmp_path: Path):
    run = _of_form(model, tmp_path, "completion", ["question", "answer"])
    prompts, rows, written = tmp_path / "prompts.csv", tmp_path / "rows.csv", tmp_path / "written.csv"
    prompts.write_text("id,question\n7,row 1\n8,row 2\n")
    rows.write_text("question,answer\nrow 1, of rows\nrow 2, of\n")
    runner, most = CliRunner(), ["--max-new-tokens", "4"]
    assert runner.invoke(app, ["predict", str(run), str(prompts), "-o", str(written), *most]).exit_code == 0
    with written.open(newline="") as file:
        found = list(csv.DictReader(file))
    assert [row["id"] for row in found] == ["7", "8"]
    assert [row["continuation"] for row in found] == TextGenerator.load(run).generate(
        ["row 1", "row 2"], max_new_tokens=4
    )
    scores = LanguageScores.model_validate_json(runner.invoke(app, ["evaluate", str(run), str(rows), "--json"]).output)
    tokenizer = TextGenerator.load(run).tokens.tokenizer
    answers = (" of rows", " of")
    assert scores.tokens == sum(len(tokenizer.encode(text, add_special_tokens=False)) + 1 for text in answers)
    lacking = runner.invoke(app, ["evaluate", str(run), str(prompts)])
    assert 'has no column "answer"' in str(lacking.exception)


def test_conversations_are_answered_and_scored(model: Path, tmp_path: Path):
    run = _of_form(model, tmp_path, "messages", ["chat"])
    rows, written = tmp_path / "rows.jsonl", tmp_path / "written.csv"
    chat = [{"role": "user", "content": "row"}, {"role": "assistant", "content": "many"}]
    rows.write_text(json.dumps({"id": 7, "chat": chat}) + "\n")
    runner, most = CliRunner(), ["--max-new-tokens", "4"]
    shown = runner.invoke(app, ["predict", str(run), "--text", "row", *most])
    assert shown.exit_code == 0
    assert runner.invoke(app, ["predict", str(run), str(rows), "-o", str(written), *most]).exit_code == 0
    with written.open(newline="") as file:
        (row,) = csv.DictReader(file)
    assert (row["id"], json.loads(row["chat"]), row["continuation"] + "\n") == ("7", chat, shown.output)
    scored = runner.invoke(app, ["evaluate", str(run), str(rows), "--json"])
    assert LanguageScores.model_validate_json(scored.output).tokens == len(
        TextGenerator.load(run).tokens.tokenizer.encode("many;", add_special_tokens=False)
    )
    lines = [json.dumps({"chat": messages}) for messages in (chat, [{"role": "user"}], [], [{"role": "user"}])]
    rows.write_text("\n".join(lines))
    refused = str(runner.invoke(app, ["predict", str(run), str(rows), "-o", str(written), *most]).exception)
    assert refused.startswith(f"{rows}: 3 rows cannot be used\n  ")
    assert f"{rows}, line 2" in refused
    assert "; line 4: " in refused
    with pytest.raises(UserError, match=r'^prompt 1: message 1 has no text in "content"'):
        TextGenerator.load(run).generate([[{"role": "user"}]])


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"kind": "other"}', '{"kind": "continuation"}'])
def test_a_damaged_preprocessor_is_named(model: Path, tmp_path: Path, content: str):
    copy = _without_digests(model, tmp_path / "model")
    (copy / "preprocessor.json").write_text(content)
    for load in (TextGenerator.load, Predictor.load):
        with pytest.raises(UserError, match=r"model/preprocessor\.json is damaged, or from another version"):
            load(copy)
    done = CliRunner().invoke(app, ["predict", str(copy), "--text", "row"])
    assert isinstance(done.exception, UserError)
    assert "preprocessor.json is damaged, or from another version of trainjob: " in str(done.exception)


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["predict", "--image", "x.png"], "is a language model: give --text or DATA"),
        (["predict", "--text", "row", "--cascade", "0.5"], "is a language model: give --text or DATA"),
        (["serve"], "is a language model, which continues texts, and `trainjob serve` answers rows: use `trainjob"),
    ],
)
def test_what_is_for_classifiers_is_refused(model: Path, command: list[str], said: str):
    done = CliRunner().invoke(app, [command[0], str(model), *command[1:]])
    assert isinstance(done.exception, UserError)
    assert said in str(done.exception)


def test_the_share_of_padding_is_that_of_all_ranks(tmp_path: Path):
    """The share of padding is reported together with the speed."""
    ranks, made = run_on(2, train, setup(tmp_path)), setup(tmp_path)
    shares = [
        list(InMemoryBatches(made.examples["train"], made.preprocessor, made.shard(rank, 2)).epoch(0))
        for rank in range(2)
    ]
    records = [record for record in ranks[0].records if record["kind"] == "step" and record["epoch"] == 1]
    assert len(records) == -(-len(shares[0]) // 2)
    for step, record in enumerate(records):
        step_batches = [batch for share in shares for batch in share[2 * step : 2 * step + 2]]
        places = sum(batch.labels.numel() for batch in step_batches)
        empty = sum(
            int(((batch.inputs["position_ids"] == 0) & (batch.labels == IGNORED)).sum()) for batch in step_batches
        )
        assert record["padding"] == pytest.approx(empty / places)  # as each text's first token says what follows it
        assert {"loss", "learning_rate", "samples_per_second", "tokens_per_second"} < record.keys()
    told = [snapshot.padding for snapshot in ranks[0].snapshots]
    assert set(told) >= {record["padding"] for record in records}
    assert any(record["padding"] > 0 for record in records)


def test_of_an_adapter_checkpoints_hold_it_alone_and_training_goes_on_from_it(tmp_path: Path):
    unbroken, base = adapter_setup(tmp_path / "unbroken"), tmp_path / "base"
    whole = run_on(2, train, unbroken)
    killed = unbroken.elsewhere(tmp_path / "killed")
    run_on(2, train, killed, len(whole[0].drawn) // 2 + 2)
    resumed = run_on(2, train, killed)
    assert resumed[0].resumed is not None
    assert without_times(resumed[0].records) == without_times(whole[0].records)
    for name, weight in whole[0].weights.items():
        assert np.array_equal(resumed[0].weights[name], weight), name
    checkpoint = max((killed.folder / "checkpoints").iterdir())
    names = CheckpointTensors(Folder(str(checkpoint)), files_of(Folder(str(checkpoint)))).names()
    assert names
    assert all(".lora_A." in name or ".lora_B." in name for name in names)
    assert TextGenerator.load(checkpoint).generate(["row"], max_new_tokens=4) != []
    assert (base / "model.safetensors").stat().st_size > sum(file.stat().st_size for file in checkpoint.rglob("*.bin"))


def test_too_few_packed_rows_are_told_as_rows_of_the_users(tmp_path: Path):
    fitted = Fitted(setup(tmp_path).preprocessor, None, None, {"train": 5, "validation": 1}, contents={})
    message = too_few_rows(1, 2, fitted)
    assert message.startswith(
        "the 5 training rows fill only 1 of at most maxLength tokens, too few for 2 workers: lower"
    )
