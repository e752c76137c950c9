"""Asks a server that speaks OpenAI's protocol. Sends several requests at once, and retries after transient errors."""

import json
import os
import random
import threading
from collections import deque
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from pydantic import BaseModel

from trainjob.api.baselines import LANGUAGE_MODEL_KEY, LanguageModel
from trainjob.baselines.language_model.answers import Answer, AnswerCache, key
from trainjob.baselines.language_model.budget import Budget, Spent
from trainjob.baselines.language_model.prompt import Message, response_format
from trainjob.doing import DOING
from trainjob.errors import UserError

ATTEMPTS = 6
"""Attempts for one question before the whole baseline is given up; known answers are kept."""
TIMEOUT_SECONDS = 60.0
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 0.5, 30.0
AHEAD = 32
"""The rounds of requests whose questions are prepared ahead."""
ANSWER_TOKENS = 512
"""Enough for a class, also after a few thoughts."""


class NoCompletion(Exception):
    """The server sent something else with status 200, as gateways do with another server's error."""

    def __init__(self, body: Any) -> None:
        found = body.model_dump(exclude_unset=True) if isinstance(body, BaseModel) else body
        error = found.get("error") if isinstance(found, dict) else None
        message = error.get("message") if isinstance(error, dict) else error
        super().__init__(f"no completion, but {json.dumps(message or found, default=str)}")
        code = error.get("code") if isinstance(error, dict) else None
        self.status_code = code if isinstance(code, int) else 200
        """The status in the body or, if it has none, that of the response."""


class Asker:
    """One model on one server, for one run."""

    def __init__(self, model: LanguageModel, classes: list[str], answers: AnswerCache) -> None:
        """Raises UserError where the `openai` package is missing."""
        try:
            from openai import OpenAI
        except ImportError:
            raise UserError("spec.baselines.languageModel needs the package openai: pip install openai") from None
        self.model, self.budget = model, Budget(model)
        self._answers, self._classes = answers, classes
        self._secret = os.environ.get(LANGUAGE_MODEL_KEY, "")
        self._client = OpenAI(
            api_key=self._secret or "none", base_url=model.endpoint, max_retries=0, timeout=TIMEOUT_SECONDS
        )
        self._structured = True
        self._stop = threading.Event()

    def ask_all(self, questions: Iterable[list[Message]], total: int) -> list[Answer | None]:
        """The answers to `total` questions in order, including those kept from an earlier run. None for questions that
        the budget did not cover; the list ends with the last question that was asked.

        Raises UserError if the server refuses, or fails repeatedly.
        """
        answers: list[Answer | None] = []
        DOING.begin(DOING.now.name, total, "answers")
        pending: deque[Future[Answer | None]] = deque()
        with ThreadPoolExecutor(self.model.concurrency) as executor:
            try:
                for question in questions:
                    if self.budget.reached:
                        break
                    pending.append(executor.submit(self._answer, question))
                    if len(pending) == AHEAD * self.model.concurrency:
                        answers.append(pending.popleft().result())
                answers += [each.result() for each in pending]
            except BaseException:
                self._stop.set()
                executor.shutdown(cancel_futures=True)
                raise
            finally:
                self._answers.close()
        return answers

    def _answer(self, question: list[Message]) -> Answer | None:
        answer = self._known_or_new(question)
        DOING.add(1)
        return answer

    def _known_or_new(self, question: list[Message]) -> Answer | None:
        name = key(self.model.endpoint, self.model.model, question)
        if (known := self._answers.get(name)) is not None:
            return known
        try:
            answer = self._ask(question)
        except Spent:
            return None
        except UserError:
            self._stop.set()
            raise
        self._answers.add(name, answer)
        return answer

    def _ask(self, question: list[Message]) -> Answer:
        import openai

        for attempt in range(ATTEMPTS):
            if self._stop.is_set():  # another question has failed for good
                raise Spent
            structured = self._structured
            self.budget.request()
            try:
                return self._read(self._send(question, structured))
            except (openai.APIStatusError, NoCompletion) as error:
                if structured and error.status_code in (400, 422):
                    self._structured = False  # this server does not know it: asked in words alone from now on
                    continue
                if error.status_code not in (408, 409, 429) and 400 <= error.status_code < 500:
                    raise self._refused(error) from None
                has_headers = isinstance(error, openai.APIStatusError)
                self._pause(attempt, error, error.response.headers.get("retry-after") if has_headers else None)
            except (openai.APIError, ValueError) as error:
                self._pause(attempt, error, None)  # no connection, or no JSON
        raise AssertionError  # the last pause raises

    def _send(self, question: list[Message], structured: bool) -> Any:
        options: dict[str, Any] = {"messages": question}
        options |= {"response_format": response_format(self._classes)} if structured else {}
        return self._client.chat.completions.create(
            model=self.model.model, temperature=0, max_tokens=ANSWER_TOKENS, **options
        )

    def _read(self, completion: Any) -> Answer:
        """Raises NoCompletion for any other response with status 200."""
        try:
            choice, usage = completion.choices[0], completion.usage
            text, ended = choice.message.content, choice.finish_reason
            input_tokens, output_tokens = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
        except (TypeError, AttributeError, LookupError):
            raise NoCompletion(completion) from None
        if ended == "error":  # of the server behind a gateway, in the midst of an answer
            raise NoCompletion(completion)
        self.budget.answered(input_tokens, output_tokens)
        return Answer(text or "", input_tokens, output_tokens)

    def _pause(self, attempt: int, error: Exception, wanted: str | None) -> None:
        """Waits as long as the server asks for, or for a doubling time. Raises UserError after the last attempt."""
        if attempt + 1 == ATTEMPTS:
            raise UserError(
                f"{self.model.endpoint} failed {ATTEMPTS} times, the last time with: {self._without_secret(error)}; "
                "the answers so far are kept: `trainjob baseline` continues from there"
            ) from None
        pause = FIRST_PAUSE_SECONDS * 2**attempt * random.uniform(0.5, 1.0)
        if wanted is not None and wanted.replace(".", "", 1).isdigit():
            pause = max(pause, float(wanted))
        self._stop.wait(min(pause, MAX_PAUSE_SECONDS))

    def _refused(self, error: Exception) -> UserError:
        return UserError(f"{self.model.endpoint} refuses {self.model.model}: {self._without_secret(error)}")

    def _without_secret(self, error: Exception) -> str:
        text = " ".join(str(error).split())[:300] or type(error).__name__
        return text.replace(self._secret, "***") if self._secret else text
