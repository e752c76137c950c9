"""Stories of TrainJobs: what happens to one, step by step, and what its status says after each step."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from operator_process import SETTINGS

from cluster.jobs import Jobs, eventually

Fields = dict[str, Any]

NEW_SETTINGS = {
    **SETTINGS,
    "nodePools": {"other": {}},
    "defaults": {"storage": {"uri": "s3://new"}, "startDeadline": "2h"},
}


@dataclass
class Scene:
    """The place where stories run: the operator's permissions there, and its state at the next start."""

    jobs: Jobs
    names: list[str]
    settings: Fields = field(default_factory=lambda: SETTINGS)
    _refused: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """Resource and name of objects that the operator may not write."""

    def is_refused(self, name: str) -> bool:
        """Whether a TrainJob's status cannot be written."""
        return ("trainjobs/status", name) in self._refused

    def permit(self) -> None:
        """Gives the operator's account the permissions that the operator's page lists, but for what is refused."""
        names = {
            resource: [name for name in self.names if (resource, name) not in self._refused]
            for resource in ("trainjobs/status", "rayjobs")
        }
        rules = [
            _rule("trainjob.dev", "trainjobs", "get list watch delete"),
            _rule("trainjob.dev", "trainjobs/status", "patch", names["trainjobs/status"]),
            _rule("ray.io", "rayjobs", "get list watch create delete"),
            _rule("ray.io", "rayjobs", "patch", names["rayjobs"]),
            _rule("networking.k8s.io", "networkpolicies", "get create patch"),
            _rule("", "pods", "list watch"),
            _rule("", "events", "list create"),
        ]
        group, metadata = "rbac.authorization.k8s.io", {"name": "operator", "namespace": self.jobs.namespace}
        path = f"/apis/{group}/v1/namespaces/{self.jobs.namespace}"
        role = {"apiGroup": group, "kind": "Role", "name": "operator"}
        account = {"kind": "ServiceAccount", **metadata}
        for kind, content in {
            "Role": {"rules": rules},
            "RoleBinding": {"roleRef": role, "subjects": [account]},
        }.items():
            body = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": metadata, **content}
            place = f"{path}/{kind.lower()}s/operator"
            self.jobs.cluster.request("PATCH", place, body, patch="apply-patch+yaml", fieldManager="admin")

    def refuse(self, resource: str, name: str) -> None:
        self._refused.add((resource, name))
        self.permit()
        eventually(lambda: not self._may_patch(resource, name))

    def allow(self, resource: str, name: str) -> None:
        self._refused.discard((resource, name))
        self.permit()
        eventually(lambda: self._may_patch(resource, name))

    def _may_patch(self, resource: str, name: str) -> bool:
        """Whether the API server, which takes a moment to learn of a Role, lets the operator's account do that."""
        plural, _, subresource = resource.partition("/")
        group = "trainjob.dev" if plural == "trainjobs" else "ray.io"
        attributes = {
            "namespace": self.jobs.namespace,
            "verb": "patch",
            "group": group,
            "resource": plural,
            "name": name,
        }
        if subresource:
            attributes["subresource"] = subresource
        user = f"system:serviceaccount:{self.jobs.namespace}:operator"
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        found = self.jobs.cluster.request("POST", path, {"spec": {"user": user, "resourceAttributes": attributes}})
        return found is not None and found["status"]["allowed"]


Act = Callable[[Scene, str], None]
"""Something happens to the TrainJob of this name."""


@dataclass(frozen=True)
class Step:
    """A set of simultaneous events, and the operator's response."""

    acts: tuple[Act, ...]
    then: Fields
    """Fields of the status afterwards."""
    says: tuple[str, ...]
    """Reasons of the Events that this makes."""
    answers: bool
    """Whether the step reacts to the operator, and so cannot happen without it."""


@dataclass(frozen=True)
class Story:
    """The story of one TrainJob, which the first step creates."""

    steps: tuple[Step, ...]
    ray_jobs: int
    """The number of RayJobs that are created for it."""
    left: Fields | None
    """Fields of the RayJob's final spec; None if no RayJob remains."""
    unseen: tuple[str, ...]
    """Fields of its last status that nobody can tell who was away for several steps, as nothing in the cluster tells
    them any more."""

    def chapters(self, away: int) -> list[tuple[Step, ...]]:
        """The steps, in groups of those that an operator misses who is away for at most so many at a time. Nobody can
        miss what follows on its own doing."""
        chapters = [self.steps[:1]]
        for step in self.steps[1:]:
            if len(chapters) == 1 or step.answers or len(chapters[-1]) == away:
                chapters.append(())
            chapters[-1] += (step,)
        return chapters


def step(*acts: Act, then: Fields, says: str = "", answers: bool = False) -> Step:
    return Step(acts, then, tuple(says.split()), answers)


def story(*steps: Step, ray_jobs: int = 1, left: Fields | None = None, gone: bool = False, unseen: str = "") -> Story:
    return Story(steps, ray_jobs, None if gone else left or {}, tuple(unseen.split()))


def created(metadata: Fields | None = None, **spec: Any) -> Act:
    return lambda scene, name: scene.jobs.create(name, metadata, **spec)


def user(**spec: Any) -> Act:
    """The user edits the TrainJob."""
    return lambda scene, name: scene.jobs.patch("trainjobs", name, {"spec": spec})


def look_again(scene: Scene, name: str) -> None:
    """A change that asks for nothing has the operator try again what it could not do."""
    scene.jobs.patch("trainjobs", name, {"metadata": {"labels": {"look": "again"}}})


def trainer(**training: Any) -> Act:
    """The training process reports."""
    return lambda scene, name: scene.jobs.report("trainjobs", name, {"training": training})


def kuberay(**status: Any) -> Act:
    """KubeRay reports, once there is a RayJob."""

    def act(scene: Scene, name: str) -> None:
        scene.jobs.ray_job(name)
        scene.jobs.report("rayjobs", name, status)

    return act


def changed(kind: str, **change: Any) -> Act:
    """Somebody changes an object of the TrainJob's name."""
    return lambda scene, name: scene.jobs.patch(kind, name, change)


def deleted(kind: str) -> Act:
    """Somebody deletes an object of the TrainJob's name."""
    return lambda scene, name: scene.jobs.cluster.delete(kind, scene.jobs.namespace, name)


def pod(kind: str, number: int, **status: Any) -> Act:
    """A pod of the RayCluster `first` is created, or gets another status."""

    def act(scene: Scene, name: str) -> None:
        jobs, found = scene.jobs, scene.jobs.get("trainjobs", name)
        assert found is not None
        labels = {"trainjob.dev/uid": found["metadata"]["uid"], "ray.io/node-type": kind, "ray.io/cluster": "first"}
        annotations = {"trainjob.dev/name": name, "trainjob.dev/workers": "1"}
        own = f"{name}-{kind}-{number}"
        metadata = {"name": own, "labels": labels, "annotations": annotations}
        spec = {"containers": [{"name": f"ray-{kind}", "image": "none"}]}
        jobs.cluster.put(
            "pods", jobs.namespace, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        )
        jobs.report("pods", own, status)

    return act


def lost(kind: str, number: int) -> Act:
    """A pod is gone."""
    return lambda scene, name: scene.jobs.cluster.delete("pods", scene.jobs.namespace, f"{name}-{kind}-{number}")


def new_settings(scene: Scene, _: str) -> None:
    """The administrator changes the operator's settings, which restarts it: of all stories at once."""
    scene.settings = NEW_SETTINGS


def refused(resource: str) -> Act:
    """The operator loses its permission to patch the object."""
    return lambda scene, name: scene.refuse(resource, name)


def allowed(resource: str) -> Act:
    return lambda scene, name: scene.allow(resource, name)


def _rule(group: str, resource: str, verbs: str, names: list[str] | None = None) -> Fields:
    return {"apiGroups": [group], "resources": [resource], "verbs": verbs.split(), "resourceNames": names or []}
