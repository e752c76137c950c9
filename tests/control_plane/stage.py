"""Plays stories side by side, with an operator that may be away while they go on."""

import json
import re
import subprocess
from collections import Counter
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from operator_process import OperatorProcess, account
from story import Fields, Scene, Story

from cluster.component import ENDS_WITH_US
from cluster.control_plane import ControlPlane
from cluster.jobs import Jobs, eventually, new_namespace
from servers.programs import program

LAST = "the-last"
"""A TrainJob that is created after all stories."""

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
CHANGEABLE = ("suspend", "backoffLimit", "preRunningDeadlineSeconds")
"""Fields of a RayJob's spec."""


@dataclass(frozen=True)
class Outcome:
    """The final state of a TrainJob."""

    status: Fields
    ray_jobs: int
    left: Fields | None
    events: Counter[str]


def played(
    cluster: ControlPlane, stories: Mapping[str, Story], modes: Mapping[str, int], folder: Path
) -> dict[str, dict[str, Outcome]]:
    """Plays every story in every mode and returns the outcomes. A mode is the number of steps for which the operator is
    stopped at a time; 0 if it never is."""
    with watched_ray_jobs(cluster, folder / "ray-jobs") as log, ThreadPoolExecutor() as pool:
        plays = {mode: pool.submit(_play, cluster, stories, away, folder, log) for mode, away in modes.items()}
        return {mode: play.result() for mode, play in plays.items()}


def holds(fields: Fields, status: Fields) -> bool:
    """Whether a status has these fields; None where it is to have none."""
    return {field: status.get(field) for field in fields} == fields


@contextmanager
def watched_ray_jobs(cluster: ControlPlane, log: Path) -> Generator[Path]:
    """A file that gets a line with namespace, name and UID whenever a RayJob is created or changed."""
    columns = 'jsonpath={.metadata.namespace} {.metadata.name} {.metadata.uid}{"\\n"}'
    command = [program("kubectl"), "--kubeconfig", cluster.kubeconfig, "get", "rayjobs", "--all-namespaces", "--watch"]
    with log.open("wb") as out:
        process = subprocess.Popen([*ENDS_WITH_US, *command, f"--output={columns}"], stdout=out)
    try:
        yield log
    finally:
        process.kill()
        process.wait()


def _play(
    cluster: ControlPlane, stories: Mapping[str, Story], away: int, folder: Path, log: Path
) -> dict[str, Outcome]:
    with new_namespace(cluster) as namespace:
        own = folder / namespace
        own.mkdir()
        stage = Stage(Scene(Jobs(cluster, namespace), [*stories, LAST]), stories, away, own)
        try:
            stage.play()
            return stage.outcomes(log)
        finally:
            stage.kill()


class Stage:
    """A namespace in which all stories are played in lock step: a restart of the operator is one for all of them."""

    def __init__(self, scene: Scene, stories: Mapping[str, Story], away: int, folder: Path) -> None:
        self._scene, self._jobs, self._stories = scene, scene.jobs, stories
        self._away, self._folder = away, folder
        self._chapters = {name: each.chapters(max(1, away)) for name, each in stories.items()}
        self._process: OperatorProcess | None = None
        self._settings = scene.settings
        self._kubeconfig = account(self._jobs, folder)
        scene.permit()

    def play(self) -> None:
        for number in range(max(map(len, self._chapters.values()))):
            if self._away:
                self.kill()
            self._perform(number)
            self._start()
            late = partial(self._late, number)
            eventually(lambda late=late: not late(), 90, late)
        eventually(lambda: not self._wrong_ray_jobs(), 90, self._wrong_ray_jobs)

    def _perform(self, number: int) -> None:
        """Performs the events of this chapter in each story."""
        for name, chapters in self._chapters.items():
            for step in chapters[number] if number < len(chapters) else ():
                for act in step.acts:
                    act(self._scene, name)
                    if self._away == 0:
                        self._start()

    def outcomes(self, log: Path) -> dict[str, Outcome]:
        """The outcomes of all stories, once the operator has nothing left to do."""
        self._jobs.create(LAST, suspend=True)
        eventually(lambda: "Suspended" in self._jobs.events(LAST), 90)  # Events are sent one after the other
        eventually(lambda: f"{self._jobs.namespace} {LAST} " in log.read_text())
        made = Counter(line.rpartition(" ")[0] for line in set(log.read_text().splitlines()))
        found, events, left = self._found(), self._events(), self._ray_jobs()
        return {
            name: Outcome(
                self._status(found.get(name, {})), made[f"{self._jobs.namespace} {name}"], left.get(name), events[name]
            )
            for name in self._stories
        }

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process = None

    def _start(self) -> None:
        """Starts it, also where it runs with other settings than it should."""
        if self._settings != self._scene.settings:
            self.kill()
        if self._process is None:
            self._settings = self._scene.settings
            environment = {"KUBECONFIG": str(self._kubeconfig)}
            self._process = OperatorProcess(
                self._jobs.cluster,
                self._folder,
                [self._jobs.namespace],
                environment=environment,
                settings=self._settings,
            )
            self._process.wait_ready()

    def _late(self, number: int) -> str:
        """The stories whose status or Events are not yet what they should be after this chapter."""
        return self._late_statuses(number) or self._late_events(number)

    def _late_statuses(self, number: int) -> str:
        jobs, late = self._found(), list[str]()
        for name, chapters in self._chapters.items():
            job, then = jobs.get(name, {}), chapters[: number + 1][-1][-1].then
            status = self._status(job)
            if not (self._is_seen(name, job) and holds(then, status)):
                late.append(f"{name}: not {then} but {status}")
        return "\n".join(late)

    def _late_events(self, number: int) -> str:
        """An operator that was away need not say more than how the story ends."""
        events, late = self._events(), list[str]()
        for name, chapters in self._chapters.items():
            says = Counter(said for chapter in chapters[: number + 1] for step in chapter for said in step.says)
            last = Counter(chapters[-1][-1].says) if number + 1 >= len(chapters) else Counter[str]()
            if not (events[name] == says if self._away < 2 else last <= events[name]):
                late.append(f"{name}: not {dict(says)} but {dict(events[name])}")
        return "\n".join(late)

    def _is_seen(self, name: str, job: Fields) -> bool:
        """Whether the operator has seen the spec as it is, if it still can and need."""
        status = job.get("status", {})
        is_final = status.get("phase") in (None, "Succeeded", "Failed")
        return is_final or self._scene.is_refused(name) or status["observedGeneration"] == job["metadata"]["generation"]

    def _wrong_ray_jobs(self) -> str:
        """The stories that should end without a RayJob and have one, or the other way round."""
        left = self._ray_jobs()
        return " ".join(name for name, each in self._stories.items() if (name in left) == (each.left is None))

    def _found(self) -> dict[str, Fields]:
        jobs = self._jobs.cluster.find("trainjobs", self._jobs.namespace)
        return {job["metadata"]["name"]: job for job in jobs}

    def _ray_jobs(self) -> dict[str, Fields]:
        """The mutable part of each RayJob's spec."""
        return {
            found["metadata"]["name"]: {field: found["spec"].get(field) for field in CHANGEABLE}
            for found in self._jobs.cluster.find("rayjobs", self._jobs.namespace)
        }

    def _events(self) -> dict[str, Counter[str]]:
        """The number of Events for each reason, by TrainJob."""
        events: dict[str, Counter[str]] = {name: Counter() for name in [*self._stories, LAST]}
        for event in self._jobs.cluster.find("events", self._jobs.namespace, fields="involvedObject.kind=TrainJob"):
            events[event["involvedObject"]["name"]][event["reason"]] += 1
        return events

    def _status(self, job: Fields) -> Fields:
        """A status as it is in every namespace and at any time, and the condition Accepted's reason as a field.

        Which pod was lost is known only to an operator that still finds it, about to be deleted.
        """
        if "phase" not in job.get("status", {}):
            return {}
        status = json.loads(TIME.sub("TIME", json.dumps(job["status"])).replace(self._jobs.namespace, "NAMESPACE"))
        for each in (status, *status["conditions"]):
            del each["observedGeneration"]
        if "interruptions" in status:
            status["interruptions"].pop("lastPod", None)
        accepted = next(each["reason"] for each in status["conditions"] if each["type"] == "Accepted")
        return {**status, "accepted": accepted}
