"""The pages that the server shows besides predictions."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from asking import Server
from preprocessors import input_of
from trainjob.kinds.inputs.text import TextInput
from trainjob.predictor import Predictor
from trainjob.serving.page import page

ADDRESS = re.compile(r"""(?:src|href)=["']?([^"'> ]+)""")


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_need_nothing_from_elsewhere(texts: Server, path: str):
    html = texts.get(path).text
    assert "://" not in html
    found = ADDRESS.findall(html)
    assert len(found) >= 3
    for address in found:
        assert texts.get(f"/{address.lstrip('/')}").status == 200, address


def test_a_page_asks_for_the_models_columns_or_for_an_image(texts: Server, images: Server):
    assert re.findall(r'data-column="(\w+)"', texts.get("/").text) == ["title", "body"]
    assert "4 classes" in texts.get("/").text
    assert 'type="file"' in images.get("/").text


def test_names_are_only_text(text_run: Path):
    preprocessor = Predictor.load(text_run).preprocessor
    texts = replace(input_of(preprocessor, TextInput), columns=['<script>"', "</script>"])
    odd = replace(preprocessor, input=texts)
    html = page("<b>&", odd)
    assert "<b>" not in html
    assert html.count("<script>") == html.count("</script>") == 1


def test_the_api_is_described_with_the_models_columns(texts: Server, images: Server):
    schemas = texts.get("/openapi.json").json["components"]["schemas"]
    assert list(schemas["Row"]["properties"]) == schemas["Row"]["required"] == ["title", "body"]
    assert images.get("/openapi.json").json["components"]["schemas"]["Images"]["required"] == ["images"]
    responses = texts.get("/openapi.json").json["paths"]["/predict"]["post"]["responses"]
    assert {"200", "408", "413", "422", "429", "503"} <= set(responses)


def test_the_example_of_the_api_is_answered(texts: Server, images: Server):
    """A form of the page /docs begins with it, and the command of the page to try the model has it."""
    for server in (texts, images):
        body = server.get("/openapi.json").json["paths"]["/predict"]["post"]["requestBody"]
        [example] = body["content"]["application/json"]["schema"]["examples"]
        assert f"const example = {json.dumps(example)};" in server.get("/").text
        answer = server.predict(json.dumps(example).encode())
        assert (answer.status, len(answer.json["predictions"])) == (200, 1)


def test_health_tells_which_model_it_is(texts: Server):
    assert texts.get("/healthz").json == {"model": "tags", "kind": "text", "classes": 4}


def test_metrics_count_requests_and_rows(images: Server):
    before = images.get("/metrics").text
    assert images.predict(b"").status == 422
    after = images.get("/metrics").text

    def count(text: str) -> float:
        found = re.search(r'^trainjob_serving_requests_total{status="422"} (\S+)', text, re.MULTILINE)
        return float(found[1]) if found else 0.0

    assert count(after) == count(before) + 1
    assert "trainjob_serving_request_seconds_bucket" in after
    assert "process_resident_memory_bytes" in after
