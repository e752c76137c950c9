"""Many TrainJobs at once, and what must hold of them whatever has happened meanwhile."""

from typing import Any

from cluster.jobs import Jobs, eventually


class ManyJobs:
    """TrainJobs, every third of which is to fail, and requests about them."""

    def __init__(self, jobs: Jobs, count: int) -> None:
        self.jobs = jobs
        self.names = [f"job-{number}" for number in range(count)]

    def create(self, suspend: bool = True, **spec: Any) -> None:
        """Suspended ones, as pods are mostly not the point."""
        for name in self.names:
            self.jobs.create(name, suspend=suspend, **spec)

    def await_ray_jobs(self) -> None:
        eventually(
            lambda: self.names_of_ray_jobs() == sorted(self.names) and all(map(self.has_ray_job, self.names)),
            seconds=240,
        )

    def names_of_ray_jobs(self) -> list[str]:
        """The names of their TrainJobs."""
        ray_jobs = self.jobs.cluster.find("rayjobs", self.jobs.namespace)
        return sorted(ray_job["metadata"]["ownerReferences"][0]["name"] for ray_job in ray_jobs)

    def has_ray_job(self, name: str) -> bool:
        """Whether the job has a RayJob that is not being deleted."""
        found = self.jobs.get("rayjobs", name)
        return found is not None and "deletionTimestamp" not in found["metadata"]

    def delete_ray_job(self, name: str) -> None:
        self.jobs.cluster.delete("rayjobs", self.jobs.namespace, name)

    def end(self, name: str, contrary: bool = False) -> None:
        """Writes the job's expected end into KubeRay's status, or with `contrary` the opposite one."""
        succeeded = (self._verdict(name) == "Succeeded") != contrary
        status = {
            "jobStatus": "SUCCEEDED" if succeeded else "FAILED",
            "jobDeploymentStatus": "Complete" if succeeded else "Failed",
        }
        self.jobs.report("rayjobs", name, status)

    def end_all(self) -> None:
        """Ends each as soon as it has its RayJob."""
        for name in self.names:
            eventually(lambda name=name: self.has_ray_job(name), seconds=240)
            self.end(name)

    def assert_settled(self) -> None:
        """Each has the right verdict and one RayJob, there is no other RayJob, and no verdict changes any more."""
        expected = {name: self._verdict(name) for name in self.names}
        eventually(lambda: self._phases() == expected, seconds=90, because=lambda: str(self._phases()))
        assert self.names_of_ray_jobs() == sorted(self.names)
        before = self._statuses()
        for name in self.names:
            self.end(name, contrary=True)
            self.jobs.patch("trainjobs", name, {"metadata": {"labels": {"look": "again"}}})
        self.jobs.create("the-last", suspend=True)
        self.jobs.until("the-last", phase="Suspended")
        assert self._statuses() == before

    def _phases(self) -> dict[str, str]:
        return {name: status.get("phase", "") for name, status in self._statuses().items()}

    def _statuses(self) -> dict[str, dict[str, Any]]:
        found = {each["metadata"]["name"]: each for each in self.jobs.cluster.find("trainjobs", self.jobs.namespace)}
        return {name: found[name].get("status", {}) for name in self.names}

    def _verdict(self, name: str) -> str:
        return "Failed" if int(name.rpartition("-")[2]) % 3 == 0 else "Succeeded"
