"""A packed row is as many texts to a language model as it holds."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional
from transformers.models.gpt2.configuration_gpt2 import GPT2Config
from transformers.models.gpt2.modeling_gpt2 import GPT2LMHeadModel
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM
from transformers.models.mamba.configuration_mamba import MambaConfig
from transformers.models.mamba.modeling_mamba import MambaForCausalLM

from preprocessors import language_model
from through_checkpoint import carry
from trainjob.api import CausalLM
from trainjob.data.batches.batch import Batch
from trainjob.errors import UserError
from trainjob.kinds.causal_lm.network import CausalLMModule, build
from trainjob.kinds.causal_lm.packing import next_tokens, pack, unpacked
from trainjob.kinds.causal_lm.tokens import TokensInput, train_byte_bpe
from trainjob.kinds.targets.next_token_objective import NextTokenObjective, TokenTally
from trainjob.models import load_language_model, load_model, save_model

LENGTH = 24
SPEC = CausalLM.model_validate(
    {"decoder": {"layers": 2, "hiddenSize": 32, "heads": 4, "vocabularySize": 300}, "maxLength": LENGTH}
)


@pytest.fixture(scope="module")
def preprocessor() -> TokensInput:
    return TokensInput(["text"], LENGTH, 8.0, *train_byte_bpe(["Returns the rows."] * 3, 300, LENGTH))


@pytest.fixture(scope="module", params=["eager", "sdpa"])
def model(request: pytest.FixtureRequest, preprocessor: TokensInput) -> CausalLMModule:
    torch.manual_seed(0)
    model = build(SPEC, preprocessor).eval()
    model.network.set_attn_implementation(request.param)
    return model


def documents(*lengths: int) -> list[list[int]]:
    chance = np.random.default_rng(0)
    return [chance.integers(2, 250, length).tolist() for length in lengths]


def batch_of(texts: list[list[int]]) -> Batch:
    offsets = np.concatenate([[0], np.cumsum([len(text) for text in texts])])
    codes, sizes = pack(np.concatenate(texts).astype(np.int32), offsets, LENGTH)
    rows = np.full((len(sizes), LENGTH), -1, np.int32)
    rows[np.arange(LENGTH) < sizes[:, None]] = codes
    tokens, positions, labels = map(torch.from_numpy, (*unpacked(rows, 0), next_tokens(rows)))
    return Batch({"input_ids": tokens, "position_ids": positions}, labels)


def alone(model: CausalLMModule, text: list[int]) -> torch.Tensor:
    tokens = torch.tensor([text])
    logits = model(tokens, torch.arange(len(text))[None])
    return functional.cross_entropy(logits[0, :-1], tokens[0, 1:], reduction="none")


def test_texts_of_a_row_are_as_if_each_were_alone(model: CausalLMModule):
    texts = documents(9, 2, 10, 24, 17, 3)
    batch = batch_of(texts)
    packed = NextTokenObjective().losses(model(**batch.inputs), batch)
    apart = torch.cat([alone(model, text) for text in texts])
    assert batch.weight == len(apart)
    torch.testing.assert_close(packed[packed > 0].sort().values, apart.sort().values, rtol=0, atol=1e-4)


def test_gradients_are_those_of_texts_alone(model: CausalLMModule):
    texts = documents(9, 2, 10, 17, 3)
    batch = batch_of(texts)
    NextTokenObjective().losses(model(**batch.inputs), batch).sum().backward()
    packed = {name: weight.grad.clone() for name, weight in model.named_parameters() if weight.grad is not None}
    model.zero_grad()
    torch.cat([alone(model, text) for text in texts]).sum().backward()
    assert packed
    for name, weight in model.named_parameters():
        torch.testing.assert_close(packed[name], weight.grad, rtol=1e-3, atol=1e-4)
    model.zero_grad()


def test_scores_are_means_over_tokens(model: CausalLMModule):
    """However the texts divide into batches."""
    texts = documents(9, 2, 10, 24, 17, 3)
    tally = TokenTally(torch.device("cpu"))
    for some in (texts[:1], texts[1:]):
        batch = batch_of(some)
        tally.add(batch, model(**batch.inputs))
    scores, losses = tally.scores(), torch.cat([alone(model, text) for text in texts])
    assert scores.tokens == len(losses)
    assert scores.loss == pytest.approx(losses.mean().item(), rel=1e-5)
    assert scores.perplexity == pytest.approx(losses.mean().exp().item(), rel=1e-5)
    assert scores.as_metrics("test") == {"test_loss": scores.loss, "test_perplexity": scores.perplexity}


def test_a_saved_model_loads_with_the_same_answers(model: CausalLMModule, preprocessor: TokensInput, tmp_path: Path):
    save_model(model, language_model(preprocessor), tmp_path)
    loaded, _ = load_language_model(tmp_path)
    batch = batch_of(documents(9, 3))
    with torch.inference_mode():
        torch.testing.assert_close(loaded(**batch.inputs), model(**batch.inputs), rtol=1e-5, atol=1e-5)
    other = build(SPEC, preprocessor)
    carry(model, other, tmp_path / "checkpoint")
    for (name, weight), kept in zip(other.named_parameters(), model.parameters(), strict=True):
        assert torch.equal(weight, kept), name
    with pytest.raises(UserError, match="has a language model, which answers no rows"):
        load_model(tmp_path)


def test_a_pretrained_decoder_is_taken_with_its_weights(preprocessor: TokensInput, tmp_path: Path):
    config = GPT2Config(vocab_size=300, n_embd=16, n_layer=1, n_head=2, n_positions=32)
    GPT2LMHeadModel(config).save_pretrained(tmp_path)
    language_model(preprocessor).save(tmp_path)
    built = build(CausalLM(pretrained=str(tmp_path), max_length=LENGTH), preprocessor)
    assert built.network.config.model_type == "gpt2"
    with pytest.raises(UserError, match=r"causalLM.maxLength: .* takes at most 32 tokens, not 64"):
        build(CausalLM(pretrained=str(tmp_path), max_length=64), preprocessor)


def test_weights_are_float32_part_by_part_where_files_have_fewer_bits(preprocessor: TokensInput, tmp_path: Path):
    """Only a part of them is in memory at a time, and they equal those of a model that is read whole."""
    config = LlamaConfig(vocab_size=300, hidden_size=16, num_hidden_layers=2, num_attention_heads=2)
    LlamaForCausalLM(config).bfloat16().save_pretrained(tmp_path)
    language_model(preprocessor).save(tmp_path)
    spec = CausalLM(pretrained=str(tmp_path), max_length=LENGTH)
    whole, stored = build(spec, preprocessor), build(spec, preprocessor, as_stored=True)
    for part in stored.sharding_units():
        assert {weight.dtype for weight in part.parameters()} == {torch.float32}
        assert part is stored or torch.bfloat16 in {weight.dtype for weight in stored.parameters()}
    for (name, weight), expected in zip(stored.named_parameters(), whole.parameters(), strict=True):
        assert expected.dtype == torch.float32
        assert torch.equal(weight, expected), name


@pytest.mark.parametrize("in_bfloat16", [False, True])
@pytest.mark.parametrize("as_stored", [False, True])
def test_a_decoder_that_looks_beyond_a_texts_beginning_is_refused(
    preprocessor: TokensInput, tmp_path: Path, in_bfloat16: bool, as_stored: bool
):
    network = MambaForCausalLM(MambaConfig(vocab_size=300, hidden_size=16, num_hidden_layers=1))
    (network.bfloat16() if in_bfloat16 else network).save_pretrained(tmp_path)
    with pytest.raises(UserError, match=r"causalLM.pretrained: .* \(mamba\) attends across texts"):
        build(CausalLM(pretrained=str(tmp_path), max_length=LENGTH), preprocessor, as_stored=as_stored)


def test_a_pretrained_decoder_that_is_not_there_is_named(preprocessor: TokensInput, tmp_path: Path):
    with pytest.raises(UserError, match=r"^spec.model.causalLM.pretrained: there is no folder"):
        build(CausalLM(pretrained=str(tmp_path / "absent")), preprocessor)
