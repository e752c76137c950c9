"""Runs of the `trainjob` command on tiny sets, to their end or killed on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import torch
import yaml
from safetensors.torch import load_file
from typer.testing import CliRunner

from environment import environment_kept
from trainjob.api.load import load_trainjob
from trainjob.api.training_status import TrainingStatus
from trainjob.cli.app import app
from trainjob.driver.run import run

TEXT_MODEL = {"textClassifier": {"encoder": {"layers": 2, "hiddenSize": 32, "heads": 2, "vocabularySize": 400}}}
IMAGE_MODEL = {"imageClassifier": {"cnn": {"channels": [8, 16], "hidden": 32}, "dropout": 0.3}}

LIMIT = 600  # seconds; runs through Ray start some ten processes, which takes a busy machine minutes
MARK = "TRAINJOB_TEST_RUN"
STREAMED = "import trainjob.driver.built_in as built_in; built_in.KEPT_BYTES = 0"
"""Ray Data streams the training rows in every epoch, however few they are."""
BEYOND_MEMORY = "import trainjob.driver.loader as loader; loader.SHARE = 0"
"""The loader `auto` takes Ray Data, however few the rows are."""
SLOW = {"checkpoints.everySteps": 1}
"""Each step waits until the checkpoint before it is saved, so that training is not over before it is ended."""
TELLING = """
import sys, time
from contextlib import suppress
from pathlib import Path
from trainjob.api.load import load_trainjob
from trainjob.driver.run import run

file = Path(sys.argv[1])
tell = lambda status: print(status.model_dump_json(by_alias=True, exclude_none=True), flush=True)
with suppress(Exception):
    run(load_trainjob(file), source=file.parent, started=time.time(), on_status=tell)
"""
ENVIRONMENT_STAYS = """
import os, sys, threading

def guard(event, arguments):
    if event == "os.putenv" and threading.active_count() > 1 and os.fsdecode(arguments[0]) not in os.environ:
        raise RuntimeError(f"{arguments[0]} is new to the environment, beside other threads")

sys.addaudithook(guard)
"""
WORKERS_FIRST = """
import sys

def guard(event, arguments):
    if event == "subprocess.Popen" and "trainjob.launch.fast.fork_server" in arguments[1]:
        heavy = {"torch", "ray", "transformers", "numpy", "pyarrow", "rich"} & sys.modules.keys()
        if heavy:
            raise RuntimeError(f"the driver has imported {heavy} before the workers could begin to")

sys.addaudithook(guard)
"""


@dataclass
class Run:
    """A TrainJob in a file of its own, and where its run is kept."""

    file: Path
    folder: Path
    first: str | None = None
    """Python that runs before the command does, in its process."""

    def command(self, *arguments: str) -> list[str]:
        program = ["-m", "trainjob"]
        if self.first is not None:
            program = ["-c", f"{self.first}\nfrom trainjob.cli.app import main\nmain()"]
        return [sys.executable, *program, "run", str(self.file), *arguments]

    def finish(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Runs to the end, which must be a good one."""
        done = self.start_and_wait(*arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    def start_and_wait(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), capture_output=True, text=True, timeout=LIMIT)

    def refused(self, *arguments: str) -> str:
        """Runs into a mistake of the user's, which must end with exit code 2, and returns the message."""
        done = self.start_and_wait(*arguments)
        assert done.returncode == 2, done.stdout + done.stderr
        assert "Traceback" not in done.stdout + done.stderr
        return done.stderr

    def again(self, *arguments: str) -> str:
        """The command's output for a finished run. It is called in this process, as it trains nothing."""
        with environment_kept():
            done = CliRunner().invoke(app, ["run", str(self.file), *arguments], catch_exceptions=False)
        assert (done.exit_code, done.stderr) == (0, "")
        return done.stdout

    def snapshot_again(self) -> dict[str, Any]:
        """The only snapshot of a run that had finished before. It is called here, too."""
        told: list[TrainingStatus] = []
        with environment_kept():
            run(load_trainjob(self.file), source=self.file.parent, started=time.time(), on_status=told.append)
        [status] = told
        return status.model_dump(mode="json", by_alias=True, exclude_none=True)

    def snapshots(self) -> list[dict[str, Any]]:
        """Runs, to whatever end, and returns the run's snapshots, each as `status.training` has it."""
        command = [sys.executable, "-c", TELLING, str(self.file)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        assert lines != [], done.stderr
        return [json.loads(line) for line in lines]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Starts in a process group of its own, as a shell does; what it starts is marked with the run's file."""
        return subprocess.Popen(
            self.command(*arguments),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            env=os.environ | {MARK: str(self.file)},
        )

    def processes(self) -> list[psutil.Process]:
        """The process that `start` has started, and its descendants."""
        return [process for process in psutil.process_iter() if _environment(process).get(MARK) == str(self.file)]

    def kill_at(self, reached: Callable[[list[str]], bool], kill: Callable[[int], None], *arguments: str) -> int:
        """Starts the run, calls `kill` with the driver's process number once its checkpoints have `reached` a point,
        and returns the exit code. The workers stand still until `kill` is done, so that the run cannot end before."""
        driver = self.start(*arguments)
        while not reached(self.complete_checkpoints()):
            assert driver.poll() is None, driver.communicate()[0]
            time.sleep(0.005)
        held = self._hold(driver)
        os.kill(driver.pid, signal.SIGCONT)  # of a process that stands still, any thread may get a signal, and keep it
        kill(driver.pid)
        for process in held:
            with suppress(psutil.NoSuchProcess):
                process.resume()
        self.output = driver.communicate(timeout=LIMIT)[0]
        left = psutil.wait_procs(self.processes(), timeout=120)[1]  # Ray's agents look for their raylet now and then
        assert [process.cmdline() for process in left] == []
        return driver.returncode

    def end_at_checkpoint(self, kill: Callable[[int], None], *arguments: str) -> int:
        """Starts the run, calls `kill` once it has a new checkpoint, and returns the exit code."""
        before = set(self.complete_checkpoints())

        def check_and_kill(driver: int) -> None:
            assert len(self.processes()) >= 3  # the driver and two workers: what must not be left behind is seen
            kill(driver)

        return self.kill_at(lambda checkpoints: bool(set(checkpoints) - before), check_and_kill, *arguments)

    def assert_same_end(self, whole: "Run") -> None:
        """This run has come to the same as one that was never ended on the way."""
        assert_equal(self.weights(), whole.weights())
        steps, losses = (
            [[record[field] for record in run.records(kind)] for run in (self, whole)]
            for kind, field in (("step", "step"), ("epoch", "train_loss"))
        )
        assert steps[0] == steps[1]
        assert losses[0] == losses[1]
        assert self.read("evaluation.json") == whole.read("evaluation.json")

    def _hold(self, driver: subprocess.Popen[str]) -> list[psutil.Process]:
        """Stops the run's processes, the driver first: without it, no run ends. Returns the others."""
        os.kill(driver.pid, signal.SIGSTOP)
        held = [each for each in self.processes() if each.pid != driver.pid]
        for process in held:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        return held

    def complete_checkpoints(self) -> list[str]:
        return sorted(path.parent.name for path in self.folder.glob("checkpoints/*/checkpoint.json"))

    def weights(self) -> dict[str, torch.Tensor]:
        return load_file(self.folder / "model" / "model.safetensors")

    def records(self, kind: str) -> list[dict[str, Any]]:
        lines = (self.folder / "metrics.jsonl").read_text().splitlines()
        return [record for record in map(json.loads, lines) if record["kind"] == kind]

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


Finished = tuple[Run, subprocess.CompletedProcess[str]]
"""A run and what the command printed."""


def write_run(folder: Path, kind: str, data: Path, changes: dict[str, Any], name: str) -> Run:
    """A TrainJob named `name` in `folder`; `changes` are fields by their path from the spec."""
    suffix, columns = (".csv", {"text": ["title", "body"], "label": "label"}) if kind == "text" else ("", {})
    dataset = {name: {"uri": str(data / f"{name}{suffix}")} for name in ("train", "test")} | columns
    spec: dict[str, Any] = {
        "model": TEXT_MODEL if kind == "text" else IMAGE_MODEL,
        "dataset": dataset,
        "training": {
            "epochs": 3,
            "batchSize": 16,
            "precision": "float32",
            "optimizer": {"adamW": {"learningRate": 2.0e-3}},
            "scheduler": {"cosine": {}},
        },
        "checkpoints": {"everySteps": 4},
        "workers": {"count": 2},
        "baselines": {},  # they take seconds: on only where they are the point
        "storage": {"uri": "runs"},
    }
    for path, value in changes.items():
        *parents, last = path.split(".")
        part = spec
        for parent in parents:
            part = part.setdefault(parent, {})
        part[last] = value
    return write_trainjob(folder, name, spec)


def write_trainjob(folder: Path, name: str, spec: dict[str, Any]) -> Run:
    document = {"apiVersion": "trainjob.dev/v1alpha1", "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}
    file = folder / f"{name}.yaml"
    file.write_text(yaml.safe_dump(document))
    return Run(file, folder / "runs" / name)


def assert_equal(weights: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert weights.keys() == expected.keys()
    assert [name for name in weights if not torch.equal(weights[name], expected[name])] == []


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}  # it has ended, or is another user's


def kill_driver(driver: int) -> None:
    os.kill(driver, signal.SIGKILL)


def crash_driver(driver: int) -> None:
    """Crashes the driver as a segmentation fault in native code would."""
    os.kill(driver, signal.SIGSEGV)


def interrupt_driver(driver: int) -> None:
    """Sends the signal of `kill -INT`."""
    os.kill(driver, signal.SIGINT)


def terminate_driver(driver: int) -> None:
    """Sends the signal of the kubelet and `kill`."""
    os.kill(driver, signal.SIGTERM)


def interrupt_all(driver: int) -> None:
    """Sends the signal of Ctrl-C on a terminal."""
    os.killpg(driver, signal.SIGINT)


def kill_worker(driver: int) -> None:
    """Kills a training worker, with or without Ray."""
    for process in psutil.Process(driver).children(recursive=True):
        title = " ".join(process.cmdline())
        forked = "trainjob.launch.fast.fork_server" in title and process.ppid() != driver
        if "RayTrainWorker" in title or forked:
            process.kill()
            return
    raise AssertionError("no training worker is running")
