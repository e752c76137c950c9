"""A language model stops and chooses tokens by our rules, whatever its generation_config.json says."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers.generation.configuration_utils import GenerationConfig
from transformers.models.auto.modeling_auto import AutoModelForCausalLM
from transformers.models.auto.tokenization_auto import AutoTokenizer
from transformers.models.llama.configuration_llama import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaForCausalLM

from preprocessors import language_model
from trainjob.api import CausalLM
from trainjob.errors import Notice
from trainjob.generator import TextGenerator
from trainjob.kinds.causal_lm.network import CausalLMModule, build
from trainjob.kinds.causal_lm.stop_tokens import end_token_ids, note_missing_turn_end
from trainjob.kinds.causal_lm.tokens import TokensInput
from trainjob.models import load_language_model, save_model

TURN, END, OTHER = "<|im_end|>", "<|endoftext|>", "<|user|>"
CHATML = (
    "{% for m in messages %}<|user|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|user|>assistant\n{% endif %}"
)
LENGTH = 64


def chat_preprocessor(template: str, form: Any = "messages", special: bool = True) -> TokensInput:
    """A preprocessor whose token 0 is TURN."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    marks = [AddedToken(text, special=special, normalized=False) for text in (TURN, END, OTHER)]
    trainer = trainers.BpeTrainer(vocab_size=280, special_tokens=marks, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(["a row of rows"] * 9, trainer)
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "chat_template": template}
    return TokensInput(["chat"], LENGTH, 8.0, tokenizer, config, form)


def decoder(folder: Path, preprocessor: TokensInput, flat: bool, **generation: Any) -> Path:
    """A pretrained one with random weights, or, if `flat`, one to which every token is as probable as every other, so
    that token 0 is the first of the most probable ones."""
    torch.manual_seed(1)
    network = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=preprocessor.vocabulary_size,
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=512,
            initializer_range=0.5,
        )
    )
    if flat:
        torch.nn.init.zeros_(network.model.norm.weight)
    network.save_pretrained(folder)
    language_model(preprocessor).save(folder)
    (folder / "generation_config.json").write_text(json.dumps(generation))
    return folder


def built(folder: Path, preprocessor: TokensInput) -> CausalLMModule:
    return build(CausalLM(pretrained=str(folder), max_length=LENGTH), preprocessor)


@pytest.mark.parametrize(
    ("template", "ends"),
    [
        (CHATML, [END, TURN]),
        (CHATML.replace(TURN, "{{ eos_token }}"), [END]),
        (CHATML.replace("{{ m.content }}<|im_end|>", " {{ m.content }} <|im_end|>\n<|endoftext|>"), [END, TURN]),
        (CHATML.replace("m.content", "'<|user|>\n' + m.content"), [END, TURN]),
        (CHATML.replace("<|im_end|>", "\n### End"), [END]),
        ("{{ raise_exception('no') }}", [END]),
    ],
)
@pytest.mark.parametrize("special", [True, False])
def test_the_token_that_ends_an_assistants_turn_is_an_end(template: str, ends: list[str], special: bool):
    preprocessor = chat_preprocessor(template, special=special)
    assert [preprocessor.tokenizer.id_to_token(token) for token in end_token_ids(preprocessor)] == ends
    texts = chat_preprocessor(template, form="text")
    assert [texts.tokenizer.id_to_token(token) for token in end_token_ids(texts)] == [END]


def test_a_template_that_ends_turns_with_no_token_is_told():
    with pytest.warns(Notice, match="^FIELD: the chat template writes no special token after an answer"):
        note_missing_turn_end(chat_preprocessor(CHATML.replace("<|im_end|>", "\n")), "FIELD")
    note_missing_turn_end(chat_preprocessor(CHATML), "FIELD")
    note_missing_turn_end(chat_preprocessor("", form="text"), "FIELD")


@pytest.mark.parametrize("special", [True, False])
def test_answers_end_with_the_turn_here_and_in_transformers(tmp_path: Path, special: bool):
    preprocessor = chat_preprocessor(CHATML, special=special)
    number = preprocessor.tokenizer.token_to_id
    base = decoder(tmp_path / "base", preprocessor, flat=True, eos_token_id=number(OTHER), pad_token_id=number(END))
    save_model(built(base, preprocessor), language_model(preprocessor), tmp_path / "model")
    saved = json.loads((tmp_path / "model" / "generation_config.json").read_text())
    assert saved["eos_token_id"] == [number(OTHER), number(END), number(TURN)]

    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "model")
    network: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    messages = [{"role": "user", "content": "a row"}]
    asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    answered = network.generate(**asked, max_new_tokens=9)[0, asked["input_ids"].shape[1] :].tolist()
    assert answered == [number(TURN)]
    assert TextGenerator.load(tmp_path / "model").generate(["a row"], max_new_tokens=9) == [""]


def test_a_model_that_was_saved_without_the_end_of_turns_stops_there(tmp_path: Path):
    preprocessor = chat_preprocessor(CHATML)
    folder = decoder(tmp_path, preprocessor, flat=True, eos_token_id=1)
    assert TextGenerator.load(folder).generate(["a row"], max_new_tokens=9) == [""]


TASTES: dict[str, dict[str, Any]] = {
    "penalty": {"repetition_penalty": 3.0},
    "n-grams": {"no_repeat_ngram_size": 1},
    "suppressed": {"suppress_tokens": list(range(3, 200))},
    "suppressed at first": {"begin_suppress_tokens": list(range(3, 200))},
    "bad words": {"bad_words_ids": [[token] for token in range(3, 200)]},
    "biased": {"sequence_bias": [[[5], 99.0]]},
    "beams": {"num_beams": 3},
    "forced": {"forced_bos_token_id": 7, "forced_eos_token_id": 8},
    "long": {"min_new_tokens": 9, "exponential_decay_length_penalty": [1, 9.0]},
    "sampled": {"do_sample": True, "temperature": 9.0, "top_k": 1, "typical_p": 0.1},
    "several": {"num_return_sequences": 2, "num_beams": 2, "return_dict_in_generate": True},
}


@pytest.mark.parametrize("taste", TASTES)
def test_greedy_takes_the_most_probable_token(tmp_path: Path, taste: str):
    preprocessor = chat_preprocessor(CHATML)
    folder = decoder(tmp_path, preprocessor, flat=False, **TASTES[taste])
    generator, (prompt,) = TextGenerator.load(folder), preprocessor.prompts(["a row of"])
    tokens, network = torch.tensor([prompt]), LlamaForCausalLM.from_pretrained(folder)
    for _ in range(12):
        with torch.inference_mode():
            best = network(input_ids=tokens).logits[0, -1].argmax()
        tokens = torch.cat([tokens, best[None, None]], dim=1)
    found = tokens[0, len(prompt) :].tolist()
    assert len(set(found)) < len(found), "a token must occur twice, for a penalty to matter"
    assert not set(found) & {0, 1, 2}, "no end must be among them"
    assert generator.generate(["a row of"], max_new_tokens=12) == [preprocessor.tokenizer.decode(found)]


def test_sampling_draws_from_all_tokens(tmp_path: Path):
    """Every token is as probable as every other here; transformers would keep 50."""
    preprocessor = chat_preprocessor(CHATML)
    folder = decoder(tmp_path, preprocessor, flat=True, do_sample=True, top_k=20, min_p=0.9, repetition_penalty=2.0)
    drawn = TextGenerator.load(folder).generate(["a row"] * 32, max_new_tokens=20, temperature=0.5, batch_size=32)
    assert len({token for text in drawn for token in preprocessor.tokenizer.encode(text).ids}) > 100


@pytest.mark.parametrize(
    ("loaded", "saved"),
    [
        ({"temperature": 0.6, "top_p": 0.9}, {"do_sample": True, "temperature": 0.6, "top_p": 0.9}),
        ({"early_stopping": True, "num_beams": 1}, {}),
        ({"repetition_penalty": 1.1}, {"repetition_penalty": 1.1}),
    ],
)
def test_what_transformers_loads_and_does_not_save_is_mended(
    tmp_path: Path, loaded: dict[str, Any], saved: dict[str, Any]
):
    preprocessor = chat_preprocessor(CHATML)
    base = decoder(tmp_path / "base", preprocessor, flat=True, eos_token_id=1, **loaded)
    save_model(built(base, preprocessor), language_model(preprocessor), tmp_path / "model")
    model, _ = load_language_model(tmp_path / "model")
    kept: Any = model.network.generation_config
    assert isinstance(kept, GenerationConfig)
    assert kept.eos_token_id == [1, 0]
    assert {name: getattr(kept, name) for name in loaded} == {name: saved.get(name) for name in loaded}
    assert kept.do_sample is saved.get("do_sample")
