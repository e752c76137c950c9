"""Errors about invalid fields in a file or in overrides."""

from pathlib import Path

import pytest
import yaml
from pydantic import TypeAdapter
from trainjob_files import GOOD, problems, write

from trainjob.api import TrainJob
from trainjob.api.load import load_trainjob
from trainjob.api.wording import PATTERNS
from trainjob.errors import UserError

BAD_FIELDS = [
    ("    epochs: 3", "    epochs: ten", "13  spec.training.epochs  expected a whole number, got 'ten'"),
    (
        "    epochs: 3",
        "    epochs: '3'",
        "13  spec.training.epochs  expected a whole number, got '3'; remove the quotes",
    ),
    ("    epochs: 3", "    epochs: 2.5", "13  spec.training.epochs  expected a whole number, got 2.5"),
    ("    epochs: 3", "    epochs: 1e30", "13  spec.training.epochs  expected a whole number, got 1e+30"),
    ("    epochs: 3", "    epochs: 1" + 30 * "0", "13  spec.training.epochs  expected a whole number, got 1e+30"),
    ("    epochs: 3", "    epochs: true", "13  spec.training.epochs  expected a whole number, got true"),
    ("    epochs: 3", "    epochs: 0", "13  spec.training.epochs  must be at least 1, got 0"),
    ("    epochs: 3", "    epochs: [3]", "13  spec.training.epochs  expected a whole number, got a list"),
    ("    epochs: 3", "    seed: 4294967296", "13  spec.training.seed  must be less than 4294967296, got 4294967296"),
    ("    epochs: 3", "    epoch: 3", "13  spec.training.epoch  unknown field; did you mean epochs?"),
    ("    epochs: 3", "    batch_size: 3", "13  spec.training.batch_size  unknown field; did you mean batchSize?"),
    (
        "    epochs: 3",
        "    count: 2",
        "13  spec.training.count  unknown field here; did you mean spec.workers.count?",
    ),
    (
        "    epochs: 3",
        "    precision: fp8",
        "13  spec.training.precision  must be auto, bf16, fp16 or float32, got 'fp8'",
    ),
    (
        "    epochs: 3",
        "    optimizer: {sgd: {nesterov: true}}",
        "13  spec.training.optimizer.sgd.nesterov  needs momentum greater than 0",
    ),
    (
        "    epochs: 3",
        "    optimizer: {sgd: {nesterov: 'true'}}",
        "13  spec.training.optimizer.sgd.nesterov  expected true or false, got 'true'; remove the quotes",
    ),
    (
        "    epochs: 3",
        "    optimizer: {adam: {learningRate: '1e-4'}}",
        "13  spec.training.optimizer.adam.learningRate  expected a number, got '1e-4'; remove the quotes",
    ),
    (
        "    epochs: 3",
        "    optimizer: {adam: {betas: [0.9]}}",
        "13  spec.training.optimizer.adam.betas  must have at least 2 items, got 1",
    ),
    (
        "    epochs: 3",
        "    optimizer: {adam: {betas: [0.9, 1]}}",
        "13  spec.training.optimizer.adam.betas[1]  must be less than 1, got 1",
    ),
    (
        "    epochs: 3",
        "    optimizer: {lion: {}}",
        "13  spec.training.optimizer.lion  unknown field; allowed: adam, adamW, sgd",
    ),
    (
        "    epochs: 3",
        "    optimizer: adam",
        "13  spec.training.optimizer  expected a mapping (name: value), got 'adam'",
    ),
    (
        "    epochs: 3",
        "    optimizer: {adam: {}, sgd: {}}",
        "13  spec.training.optimizer  set exactly one of adam, adamW, sgd; found adam and sgd",
    ),
    (
        "    epochs: 3",
        "    optimizer:\n      sgd:",
        "13  spec.training.optimizer  set exactly one of adam, adamW, sgd; found none; "
        "write `sgd: {}` for its defaults (nothing after the colon means left out)",
    ),
    ("    text: [title]", "    text: title", "10  spec.dataset.text  expected a list, got 'title': write [title]"),
    ("    text: [title]", "    text: []", "10  spec.dataset.text  must not be empty"),
    ("    text: [title]", "    text: [a, 3]", "10  spec.dataset.text[1]  expected text, got 3; put it in quotes"),
    (
        "    text: [title]",
        "    text: [x, y]",
        "10  spec.dataset.text[1]  expected text, got true; put it in quotes "
        "(without them YAML reads y, n, yes, no, on and off as true and false)",
    ),
    ("    text: [title]", "    text:\n    - a\n    -", "12  spec.dataset.text[1]  expected text, got nothing"),
    (
        "    text: [title]",
        "    text: [title, title]",
        "10  spec.dataset.text  names title twice",
    ),
    (
        "    text: [title]",
        "    text: [title, tag]",
        "10  spec.dataset.text  must not include the label's column: a model that reads the answer learns nothing "
        "(tag)",
    ),
    (
        "{uri: data/train.csv}",
        "{uri: 'hf://datasets/rows'}",
        "9  spec.dataset.train.uri  must be a path, or an address that starts with s3://BUCKET, gs://BUCKET, "
        "hf://datasets/OWNER/NAME, https://HOST (without a user) or file:///, got 'hf://datasets/rows'",
    ),
    (
        "{uri: data/train.csv}",
        '{uri: "rows.csv\\n"}',
        "9  spec.dataset.train.uri  must be a path, or an address that starts with s3://BUCKET, gs://BUCKET, "
        "hf://datasets/OWNER/NAME, https://HOST (without a user) or file:///, got 'rows.csv\\n'",
    ),
    (
        "    epochs: 3",
        "    epochs: 1" + 400 * "0",
        f"13  spec.training.epochs  '1{49 * '0'}'… (401 characters) does not fit the YAML tag !!int",
    ),
    (
        "    epochs: 3",
        "    1" + 400 * "0" + ": 3",
        f"13  spec.training  '1{49 * '0'}'… (401 characters) does not fit the YAML tag !!int",
    ),
    ("    epochs: 3", "    !!timestamp 2020-01-01: 3", "13  spec.training  a field's name must be text"),
    ("    epochs: 3", "    !!binary aGk=: 3", "13  spec.training  a field's name must be text"),
    ("    epochs: 3", "    yes: 3", "13  spec.training  YAML reads the name 'yes' as true: put it in quotes"),
    ("    epochs: 3", "    01: 3", "13  spec.training  YAML reads the name '01' as 1: put it in quotes"),
    (
        "    epochs: 3",
        "    epochs: 3\n  workers: {memory: 16, cpus: 0m}",
        "14  spec.workers.memory  must be a number of bytes, such as 500M, 1.5Gi or 8000000000, got '16'",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  workers: {cpus: 0m}",
        "14  spec.workers.cpus  must be a number of CPU cores, such as 2, 0.5 or 500m, got '0m'",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  storage: {uri: 'https://host/runs', endpoint: 'http://'}",
        "14  spec.storage.uri  must be a path, or an address that starts with s3://BUCKET, gs://BUCKET or file:///, "
        "got 'https://host/runs'",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  storage: {uri: runs, endpoint: 'http://'}",
        "14  spec.storage.endpoint  must be the address of a server, such as http://minio:9000, without a user, got "
        "'http://'",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  pods: {image: my image}",
        "14  spec.pods.image  must be the name of an image, such as registry.example.com/team/trainer:1.0, "
        "got 'my image'",
    ),
    ("    label: tag", "    label: ''", "11  spec.dataset.label  must not be empty"),
    (
        "    label: tag",
        "",
        "8  spec.dataset.label  is required by model.textClassifier: the column that holds the label",
    ),
    ("{uri: data/train.csv}", "{}", "9  spec.dataset.train  set exactly one of uri, uris; found none"),
    ("{uri: data/train.csv}", "{uri:}", "9  spec.dataset.train  set exactly one of uri, uris; found none"),
    (
        "{uri: data/train.csv}",
        "{uri: a.csv, uris: [b.csv]}",
        "9  spec.dataset.train  set exactly one of uri, uris; found uri and uris",
    ),
    ("{uri: data/train.csv}", "{uris: []}", "9  spec.dataset.train.uris  must not be empty"),
    ("{uri: data/train.csv}", "{uris: /a.csv}", "9  spec.dataset.train.uris  expected a list, got '/a.csv'"),
    (
        "{uri: data/train.csv}",
        "{uris: [/a.csv, 3]}",
        "9  spec.dataset.train.uris[1]  expected text, got 3; put it in quotes",
    ),
    ("{uri: data/train.csv}", "{uris: [/a.csv, /b/../a.csv]}", "9  spec.dataset.train.uris  names /a.csv twice"),
    (
        "    label: tag",
        "    label: tag\n    validation: {fraction: 0.2, uris: [a.csv]}",
        "12  spec.dataset.validation  set exactly one of fraction, uri, uris; found fraction and uris",
    ),
    ("{uri: data/train.csv}", "[]", "9  spec.dataset.train  expected a mapping (name: value), got an empty list"),
    (
        "{uri: data/train.csv}",
        "{uri: x, uri: y}",
        "9  spec.dataset.train.uri  is given twice; the first one is at job.yaml:9",
    ),
    (
        "{layers: 1}",
        "{hiddenSize: 10}",
        "7  spec.model.textClassifier.encoder.hiddenSize  must be a multiple of heads (10 % 4 = 2)",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  tuning: {parameters: {}}",
        "14  spec.tuning.parameters  must not be empty",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  tuning: {parameters: {training.epochs: {grid: [1, 2]}}}",
        "14  spec.tuning.parameters  must use `grid` with search: grid, and another distribution with any other search "
        "(training.epochs)",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  tuning: {parameters: {training.epochs: {range: [3, 3]}}}",
        "14  spec.tuning.parameters.training.epochs.range  the first number must be less than the second",
    ),
    (
        "    epochs: 3",
        "    epochs: 3\n  tuning: {parameters: {training.epochs: {choice: [3, 3]}}}",
        "14  spec.tuning.parameters.training.epochs.choice  names 3 twice",
    ),
    ("{layers: 1}", "!local {}", "7  spec.model.textClassifier.encoder  the YAML tag !local is not supported"),
    ("metadata: {name: tags}", "", "1  metadata  is required"),
    (
        "{name: tags}",
        "{name: My_Tags}",
        "3  metadata.name  must be lower-case letters, digits, '-' and '.', with a letter or digit at both ends "
        "of every part, got 'My_Tags'",
    ),
    ("{name: tags}", "{name: tags, labels: {a: 1}}", "3  metadata.labels.a  expected text, got 1; put it in quotes"),
    ("kind: TrainJob", "kind: Deployment", "2  kind  must be TrainJob, got 'Deployment'"),
    ("v1alpha1", "v2", "1  apiVersion  must be trainjob.dev/v1alpha1, got 'trainjob.dev/v2'"),
]


@pytest.mark.parametrize(("old", "new", "line"), BAD_FIELDS, ids=[new.strip() for _, new, _ in BAD_FIELDS])
def test_a_bad_field_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: str) -> None:
    assert old in GOOD
    assert line in [found.removeprefix("job.yaml:") for found in problems(write(tmp_path, GOOD.replace(old, new, 1)))]


def test_a_list_of_uris_has_an_end(tmp_path: Path) -> None:
    uris = ", ".join(f"{number}.csv" for number in range(1001))
    assert problems(write(tmp_path, GOOD.replace("{uri: data/train.csv}", f"{{uris: [{uris}]}}"))) == [
        "job.yaml:9  spec.dataset.train.uris  must have at most 1000 items, got 1001"
    ]


def test_all_problems_come_at_once_in_the_order_of_lines(tmp_path: Path) -> None:
    text = (
        GOOD.replace("epochs: 3", "epochs: 0").replace("label: tag", "lable: tag").replace("{layers: 1}", "{layers: x}")
    )
    assert problems(write(tmp_path, text), "spec.retries=-1") == [
        "job.yaml:7  spec.model.textClassifier.encoder.layers  expected a whole number, got 'x'",
        "job.yaml:11  spec.dataset.lable  unknown field; did you mean label?",
        "job.yaml:13  spec.training.epochs  must be at least 1, got 0",
        "--set spec.retries=-1  spec.retries  must be at least 0, got -1",
    ]


def test_of_thousands_of_problems_the_first_are_told(tmp_path: Path) -> None:
    fields = "".join(f"  wrong{number}: 1\n" for number in range(1000))
    lines = problems(write(tmp_path, GOOD + fields))
    assert len(lines) == 101
    assert lines[0].endswith("1000 problems, of which these are the first 100:")


def test_a_softmax_over_several_labels_is_refused(tmp_path: Path) -> None:
    document = yaml.safe_load(GOOD)
    document["spec"]["dataset"]["labels"] = [document["spec"]["dataset"].pop("label"), "other"]
    document["spec"]["model"]["textClassifier"]["loss"] = {"crossEntropy": {}}
    (found,) = problems(write(tmp_path, yaml.safe_dump(document)))
    assert found.endswith(
        "spec.model.textClassifier.loss  must not be crossEntropy with dataset.labels: a softmax gives each row one "
        "class; write `binaryCrossEntropy: {}` or leave loss out"
    )


def test_rules_that_span_fields_are_told_together(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD + "    batchSize: 32\n  workers: {count: 3}\n  checkpoints: {metric: loss}\n")
    assert problems(file) == [
        "job.yaml:14  spec.training.batchSize  must be a multiple of workers.count (32 % 3 = 2)",
        "job.yaml:16  spec.checkpoints.metric  must be one of validation_loss, validation_accuracy, "
        "validation_precision, validation_recall, validation_f1, train_loss, validation_micro_f1, "
        "validation_average_precision for model.textClassifier",
    ]


def test_objects_of_the_pods_have_the_keys_that_kubernetes_requires(tmp_path: Path):
    pods = "  pods:\n    env: [{name: A}, {value: b}]\n    volumeMounts: [{name: code}]\n    volumes: [{name: 3}]\n"
    assert problems(write(tmp_path, GOOD + pods)) == [
        "job.yaml:15  spec.pods.env[1]  needs a name, which is a text",
        "job.yaml:16  spec.pods.volumeMounts[0]  needs a mountPath, which is a text",
        "job.yaml:17  spec.pods.volumes[0]  needs a name, which is a text",
    ]


def test_the_operators_own_volumes_and_paths_are_not_for_others(tmp_path: Path) -> None:
    pods = "  pods:\n    volumes: [{name: trainjob-tmp}]\n    volumeMounts: [{name: a, mountPath: /mnt/storage/a}]\n"
    assert problems(write(tmp_path, GOOD + pods)) == [
        "job.yaml:15  spec.pods.volumes  trainjob, trainjob-storage, trainjob-tmp, trainjob-home are names of volumes "
        "that the operator adds: choose others",
        "job.yaml:16  spec.pods.volumeMounts  every mount must name one of the volumes",
        "job.yaml:16  spec.pods.volumeMounts  /etc/trainjob and /mnt/storage are where the operator mounts volumes: "
        "choose other paths",
    ]


def test_an_attempt_may_not_take_longer_to_start_than_the_job_has(tmp_path: Path) -> None:
    assert problems(write(tmp_path, GOOD + "  deadlines: {total: 90m, start: 2h}\n")) == [
        "job.yaml:14  spec.deadlines.start  must not be longer than deadlines.total (2h > 90m)"
    ]
    assert (
        load_trainjob(write(tmp_path, GOOD + "  deadlines: {total: 2h, start: 120m}\n")).spec.deadlines.start == "120m"
    )


BAD_OVERRIDES = [
    ("spec.training.epcohs=3", "spec.training.epcohs  unknown field; did you mean epochs?"),
    ("spec.training.epochs=ten", "spec.training.epochs  expected a whole number, got 'ten'"),
    ("spec.training.epochs.x=1", "spec.training.epochs.x  spec.training.epochs is not a mapping"),
    ("spec.dataset.text[2]=a", "spec.dataset.text[2]  spec.dataset.text has no item [2]"),
    ("spec.dataset.text={a: 1}", "spec.dataset.text  expected a list, got a mapping"),
    ("spec.dataset.train={uri: a, url: b}", "spec.dataset.train.url  unknown field; did you mean uri?"),
    ("spec.retries=[", "spec.retries  not valid YAML: expected the node content, but found '<stream end>'"),
    ("spec.retries", "write it as PATH=VALUE, such as spec.training.epochs=3"),
    ("spec..retries=1", "write it as PATH=VALUE, such as spec.training.epochs=3"),
    ("=1", "write it as PATH=VALUE, such as spec.training.epochs=3"),
]


@pytest.mark.parametrize(("override", "line"), BAD_OVERRIDES, ids=[override for override, _ in BAD_OVERRIDES])
def test_a_bad_override_is_named_in_place_of_the_line(tmp_path: Path, override: str, line: str) -> None:
    assert problems(write(tmp_path, GOOD), override) == [f"--set {override}  {line}"]


def test_an_override_that_clashes_with_the_file_points_at_the_choice(tmp_path: Path) -> None:
    assert problems(write(tmp_path, GOOD), "spec.model.textClassifier.pretrained=x") == [
        "job.yaml:6  spec.model.textClassifier  set exactly one of pretrained, encoder; found pretrained and encoder"
    ]


def test_every_pattern_of_the_type_is_put_into_words() -> None:
    def patterns(schema: object) -> set[str]:
        if isinstance(schema, dict):
            own = {schema["pattern"]} if isinstance(schema.get("pattern"), str) else set[str]()
            return own.union(*map(patterns, schema.values()))
        return set[str]().union(*map(patterns, schema)) if isinstance(schema, list) else set()

    assert patterns(TypeAdapter(TrainJob).json_schema()) == set(PATTERNS)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("label: tag", "lable: tag", "spec.dataset.lable  unknown field; did you mean label?"),
        ("spec:", "spec:\n  labels: tag", "spec.labels  unknown field here; did you mean spec.dataset.label or"),
        ("spec:", "spec:\n  task: regression", "spec.task  unknown field: the task follows from spec.model"),
        (
            "model:",
            "model:\n    regressor: {}",
            "spec.model.regressor  unknown field: to predict numbers, use spec.model.textRegressor, imageRegressor",
        ),
        ("model:", "model:\n    ner: {}", "unknown field: to find spans in texts, use spec.model.tokenClassifier"),
    ],
)
def test_what_is_not_there_is_named_with_what_to_do_instead(tmp_path: Path, old: str, new: str, said: str) -> None:
    text = (
        "apiVersion: trainjob.dev/v1alpha1\nkind: TrainJob\nmetadata: {name: tags}\nspec:\n  model:\n"
        "    textClassifier: {encoder: {}}\n  dataset:\n    train: {uri: tags.csv}\n    text: [title]\n    label: tag\n"
    )
    file = tmp_path / "job.yaml"
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(UserError) as caught:
        load_trainjob(file, [])
    assert said in str(caught.value)
