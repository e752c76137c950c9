"""A language model as a baseline, at a server that speaks OpenAI's protocol."""

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from baseline_runs import write_run
from chat_server import ChatServer, Reply, Request, serving

from trainjob.api.baselines import LanguageModel
from trainjob.baselines.compare import compare_with_baselines
from trainjob.baselines.language_model import ask
from trainjob.baselines.language_model.classify import classify
from trainjob.baselines.language_model.prompt import read_answer
from trainjob.baselines.rows import Sampled
from trainjob.errors import UserError
from trainjob.runs.predictions import read_predictions
from trainjob.storage import Folder

CLASSES = ["blue", "red"]
TRAIN = Sampled(
    [f"{name} word{number}" for number in range(6) for name in CLASSES], np.arange(12) % 2, np.arange(12), 12
)
HELD = Sampled([f"{CLASSES[number % 2]} thing{number}" for number in range(40)], np.arange(40) % 2, np.arange(40), 40)
SECRET = "sk-very-secret-1234"


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ask, "FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(ask, "MAX_PAUSE_SECONDS", 0.05)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


def right(request: Request, number: int) -> Reply:
    """The first word of the text is its class."""
    return Reply(json.dumps({"label": request["messages"][-1]["content"].split()[0]}))


def first(reply: Reply, times: int = 1) -> Callable[[Request, int], Reply]:
    """Sends `reply` at first, and correct replies afterwards."""
    return lambda request, number: reply if number < times else right(request, number)


def asked(chat: ChatServer, run: Path, **fields: object) -> tuple[list[int], list[int], str]:
    """Predictions, the rows that they are for, and the notes as one text."""
    model = LanguageModel.model_validate({"endpoint": chat.address, "model": "tiny", **fields})
    found = classify(model, Folder(str(run)), CLASSES, TRAIN, HELD, seed=0)
    return found.predicted.tolist(), found.row_indices.tolist(), " ".join(found.notes)


def test_every_row_is_asked_about_once(tmp_path: Path) -> None:
    with serving(right) as chat:
        predicted, row_indices, notes = asked(chat, tmp_path, concurrency=4)
    assert predicted == HELD.labels.tolist()
    assert row_indices == list(range(40))
    assert sorted(chat.texts()) == sorted(map(str, HELD.values))
    assert notes == "40 answers of 1,600 tokens in all; 40 requests now"
    assert chat.keys == {f"Bearer {SECRET}"}
    assert {request["model"] for request in chat.requests} == {"tiny"}
    schema = chat.requests[0]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["label"]["enum"] == CLASSES


def test_so_many_are_asked_at_once(tmp_path: Path) -> None:
    with serving(lambda request, number: Reply(right(request, number).text, seconds=0.05)) as chat:
        asked(chat, tmp_path, concurrency=5)
    assert 1 < chat.most_at_once <= 5


@pytest.mark.parametrize(
    "trouble",
    [
        Reply("slow down", status=429, headers={"Retry-After": "0.01"}),
        Reply("slow down", status=429, headers={"Retry-After": "Fri, 31 Dec 1999 23:59:59 GMT"}),
        Reply("broken", status=500),
        Reply("away", status=503),
        Reply(body=b"<html>gateway</html>", status=502),
        Reply(body=b'{"choices": ['),
        Reply(body=b"hello", headers={"Content-Type": "text/plain"}),
        Reply(body=b'{"choices": []}'),
        Reply(body=b'{"choices": [{"message": null}]}'),
        Reply(body=b"[]"),
        Reply(body=b"null"),
        Reply(hang_up=True),
        Reply("late", seconds=3.0),
    ],
)
def test_what_may_pass_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trouble: Reply) -> None:
    monkeypatch.setattr(ask, "TIMEOUT_SECONDS", 1.0)
    with serving(first(trouble, 3)) as chat:
        predicted, row_indices, _ = asked(chat, tmp_path)
    assert predicted == HELD.labels.tolist()
    assert row_indices == list(range(40))
    assert len(chat.requests) >= 43


def test_a_server_without_structured_output_is_asked_in_words(tmp_path: Path) -> None:
    def reply(request: Request, number: int) -> Reply:
        if "response_format" in request:
            return Reply("response_format is not supported", status=400)
        return right(request, number)

    with serving(reply) as chat:
        predicted, _, _ = asked(chat, tmp_path, concurrency=1)
    assert predicted == HELD.labels.tolist()
    assert sum("response_format" in request for request in chat.requests) == 1


@pytest.mark.parametrize("status", [401, 403, 404])
def test_a_refusal_ends_it_and_tells_no_secret(tmp_path: Path, status: int) -> None:
    refusing = serving(lambda request, number: Reply(f"bad key {SECRET}", status=status))
    with refusing as chat, pytest.raises(UserError, match=r"refuses tiny: .*bad key \*\*\*") as error:
        asked(chat, tmp_path, concurrency=2)
    assert SECRET not in str(error.value)
    assert len(chat.requests) <= 4


def test_a_question_that_no_server_takes_ends_it(tmp_path: Path) -> None:
    refusing = serving(lambda request, number: Reply("no such thing", status=400))
    with refusing as chat, pytest.raises(UserError, match="refuses tiny"):
        asked(chat, tmp_path, concurrency=1)
    assert len(chat.requests) == 2


def error_body(**error: object) -> Reply:
    return Reply(body=json.dumps({"error": error}).encode())


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (error_body(message="upstream is overloaded", code=503), 'no completion, but "upstream is overloaded"'),
        (error_body(message=None), 'no completion, but {"error": {"message": null}}'),
        (Reply(body=b'{"error": "out of credit"}'), 'no completion, but "out of credit"'),
        (Reply(body=b'{"detail": "Not Found"}'), 'no completion, but {"detail": "Not Found"}'),
        (Reply(body=b'{"choices": [{"message": null}]}'), 'no completion, but {"choices": [{"message": null}]}'),
        (Reply(body=b"null"), "no completion, but null"),
        (
            Reply(body=b'{"choices": [{"message": {"content": ""}, "finish_reason": "error"}]}'),
            'no completion, but {"choices": ',
        ),
    ],
)
def test_an_error_with_status_200_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reply: Reply, said: str
) -> None:
    monkeypatch.setattr(ask, "FIRST_PAUSE_SECONDS", 0.0)
    failing = serving(lambda request, number: reply)
    with (
        failing as chat,
        pytest.raises(UserError, match=f"failed {ask.ATTEMPTS} times, the last time with: {re.escape(said)}"),
    ):
        asked(chat, tmp_path, concurrency=1)


def test_a_refusal_with_status_200_is_one(tmp_path: Path) -> None:
    refusing = serving(lambda request, number: error_body(message="no such model", code=404))
    with refusing as chat, pytest.raises(UserError, match='refuses tiny: no completion, but "no such model"'):
        asked(chat, tmp_path, concurrency=1)
    assert len(chat.requests) == 1


def test_a_server_that_stays_away_ends_it_and_what_is_known_is_kept(tmp_path: Path) -> None:
    def reply(request: Request, number: int) -> Reply:
        return right(request, number) if number < 10 else Reply("overloaded", status=503)

    with serving(reply) as chat:
        with pytest.raises(UserError, match=rf"failed {ask.ATTEMPTS} times, the last time with: .*overloaded"):
            asked(chat, tmp_path, concurrency=2)
        known = len((tmp_path / "predictions" / "answers.jsonl").read_text().split())
        before = len(chat.requests)
        chat.reply = right
        predicted, _, _ = asked(chat, tmp_path)
        assert predicted == HELD.labels.tolist()
        assert known > 0
        assert len(chat.requests) - before == 30


def test_nothing_is_asked_twice(tmp_path: Path) -> None:
    with serving(right) as chat:
        once = asked(chat, tmp_path)
        again = asked(chat, tmp_path)
        assert len(chat.requests) == 40
        assert again[:2] == once[:2]
        assert again[2] == "40 answers of 1,600 tokens in all; 0 requests now"
        asked(chat, tmp_path, descriptions={"red": "like blood"})
        assert len(chat.requests) == 80, "it is another question"
    assert SECRET not in (tmp_path / "predictions" / "answers.jsonl").read_text()


def test_a_line_that_a_kill_has_torn_is_asked_again(tmp_path: Path) -> None:
    with serving(right) as chat:
        asked(chat, tmp_path)
        file = tmp_path / "predictions" / "answers.jsonl"
        file.write_bytes(file.read_bytes()[:-30])
        asked(chat, tmp_path)
        assert len(chat.requests) == 41
        asked(chat, tmp_path)
        assert len(chat.requests) == 41


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        ({"maxRequests": 7}, 7),
        ({"maxTokens": 200}, 5),
        ({"maxCost": 0.003, "inputPrice": 10, "outputPrice": 30}, 5),
    ],
)
def test_a_limit_ends_it_with_what_is_known(tmp_path: Path, limit: dict[str, float], most: int) -> None:
    """An answer has 30 and 10 tokens: 0.0006 at these prices."""
    with serving(right) as chat:
        predicted, row_indices, notes = asked(chat, tmp_path, concurrency=1, **limit)
        assert len(chat.requests) == len(row_indices) == most
        assert predicted == HELD.labels[row_indices].tolist()
        assert f"compared on {most} of the 40 rows, drawn at random, as {next(iter(limit))} was reached" in notes
        _, row_indices, _ = asked(chat, tmp_path, concurrency=1, **limit)
        assert len(row_indices) == 2 * most, "it goes on from there"


def test_repeated_requests_count(tmp_path: Path) -> None:
    with serving(first(Reply("busy", status=503), 3)) as chat:
        _, row_indices, _ = asked(chat, tmp_path, concurrency=1, maxRequests=10)
    assert (len(chat.requests), len(row_indices)) == (10, 7)


def test_answers_of_no_class_are_wrong_and_shown(tmp_path: Path) -> None:
    with serving(lambda request, number: Reply("I cannot\nsay" if number < 8 else "blue")) as chat:
        predicted, _, notes = asked(chat, tmp_path, concurrency=1)
    assert Counter(predicted) == {2: 8, 0: 32}
    assert '8 answers name none of the classes and count as wrong, such as "I cannot say" (8)' in notes


def test_examples_are_of_each_class_and_from_the_training_part(tmp_path: Path) -> None:
    with serving(right) as chat:
        asked(chat, tmp_path, shots=2, descriptions={"red": "the colour\nof blood"})
    shown = {json.dumps(request["messages"][1:-1]) for request in chat.requests}
    assert len(shown) == 1, "the same for all texts"
    pairs = json.loads(shown.pop())
    texts = [each["content"] for each in pairs if each["role"] == "user"]
    answers = [json.loads(each["content"])["label"] for each in pairs if each["role"] == "assistant"]
    assert set(texts) <= set(map(str, TRAIN.values))
    assert [text.split()[0] for text in texts] == answers
    assert Counter(answers) == {"blue": 2, "red": 2}
    assert "- red: the colour of blood\n" in chat.requests[0]["messages"][0]["content"]


def test_the_nearest_examples_are_chosen_for_each_text(tmp_path: Path) -> None:
    held = Sampled(["some word3 here"], np.array([1]), np.array([0]), 1)
    with serving(right) as chat:
        model = LanguageModel(endpoint=chat.address, model="tiny", shots=1, examples="nearest")
        classify(model, Folder(str(tmp_path)), CLASSES, TRAIN, held, seed=0)
    [request] = chat.requests
    assert {each["content"] for each in request["messages"] if each["role"] == "user"} == {
        "blue word3",
        "red word3",
        "some word3 here",
    }


def test_a_description_of_no_class_is_refused(tmp_path: Path) -> None:
    with serving(right) as chat, pytest.raises(UserError, match="descriptions names green, but the classes are blue"):
        asked(chat, tmp_path, descriptions={"green": "grass"})


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ('{"label": "red"}', "red"),
        ('Sure!\n```json\n{"label": "RED"}\n```', "red"),
        ('{"label": "blue"} no, rather {"label": "red"}', "red"),
        ('<think>blue or red? {"label": "blue"}</think>{"label": "red"}', "red"),
        (" **Red**. ", "red"),
        ('"red"', "red"),
        ("It is a red thing.", "red"),
        ("dark red", "dark red"),
        ("It must be dark red, I think", "dark red"),
        ("red or blue", None),
        ("bored", None),
        ("", None),
        ('{"label": null}', None),
        ('{"label": ["red"]} ?', "red"),
        ('{"class": 3', None),
        ("[]", None),
        ('{"label": "c++"}', "c++"),
        ("c++ of course", "c++"),
    ],
)
def test_answers_are_read_as_they_are_meant(answer: str, meant: str | None) -> None:
    assert read_answer(answer, ["blue", "red", "dark red", "c++"]) == meant


def test_it_stands_beside_the_other_baselines(tmp_path: Path, texts: Path) -> None:
    def reply(request: Request, number: int) -> Reply:
        words = Counter(word.rstrip("0123456789") for word in request["messages"][-1]["content"].split())
        del words["word"]
        return Reply(words.most_common(1)[0][0] if words else "none")

    with serving(reply) as chat:
        model = {"endpoint": chat.address, "model": "tiny", "secretName": "key", "concurrency": 4}
        job, run = write_run(tmp_path, "text", texts, baselines={"mostFrequent": {}, "languageModel": model})
        _, found = compare_with_baselines(job, run, ["mostFrequent", "languageModel"]).baselines
        assert found.error == ""
        assert found.standing is not None
        assert found.standing.accuracy.value > 0.9
        assert any("none of the classes" in note for note in found.notes)
        kept = read_predictions(run, "languageModel")
        assert kept["prediction"].null_count > 0
        assert kept["row"].to_pylist() == list(range(151))
        chat.reply = lambda request, number: Reply("no", status=401)
        run.delete("predictions/answers.jsonl")
        _, found = compare_with_baselines(job, run, ["mostFrequent", "languageModel"]).baselines
        assert "refuses tiny" in found.error
