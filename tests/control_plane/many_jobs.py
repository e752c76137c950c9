"""Many TrainJobs at once, and what must hold of them whatever has happened meanwhile."""

import json
import ssl
import urllib.error
import urllib.request
from typing import Any

from cluster.jobs import Jobs, document, eventually


class ManyJobs:
    """TrainJobs, every third of which is to fail, and requests about them that take no kubectl's time."""

    def __init__(self, jobs: Jobs, count: int) -> None:
        self.jobs = jobs
        self.names = [f"job-{number}" for number in range(count)]
        configuration = json.loads(jobs.cluster.kubeconfig.read_text())
        server = configuration["clusters"][0]["cluster"]
        self._url, self._token = server["server"], configuration["users"][0]["user"]["token"]
        tls = urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=server["certificate-authority"]))
        self._direct = urllib.request.build_opener(urllib.request.ProxyHandler({}), tls)

    def create(self, suspend: bool = True, **spec: Any) -> None:
        """Suspended ones, as pods are mostly not the point."""
        for name in self.names:
            self._request("POST", self._train_job(), document(name, suspend=suspend, **spec))

    def await_ray_jobs(self) -> None:
        eventually(lambda: self.names_of_ray_jobs() == sorted(self.names), seconds=90)

    def names_of_ray_jobs(self) -> list[str]:
        """The names of their TrainJobs."""
        ray_jobs = self._request("GET", self._ray_job())["items"]
        return sorted(ray_job["metadata"]["ownerReferences"][0]["name"] for ray_job in ray_jobs)

    def has_ray_job(self, name: str) -> bool:
        """Whether it has one that is not being deleted."""
        try:
            return "deletionTimestamp" not in self.ray_job(name)["metadata"]
        except urllib.error.HTTPError:
            return False

    def ray_job(self, name: str) -> dict[str, Any]:
        return self._request("GET", self._ray_job(name))

    def change_ray_job(self, name: str, change: dict[str, Any]) -> None:
        self._request("PATCH", self._ray_job(name), change)

    def delete_ray_job(self, name: str) -> None:
        self._request("DELETE", self._ray_job(name))

    def end(self, name: str, contrary: bool = False) -> None:
        """Has KubeRay's status say that the job has ended as it is to, or in the other way."""
        succeeded = (self._verdict(name) == "Succeeded") != contrary
        status = {
            "jobStatus": "SUCCEEDED" if succeeded else "FAILED",
            "jobDeploymentStatus": "Complete" if succeeded else "Failed",
        }
        self._request("PATCH", self._ray_job(name) + "/status", {"status": status})

    def end_all(self) -> None:
        """Ends each as soon as it has its RayJob."""
        for name in self.names:
            eventually(lambda name=name: self.has_ray_job(name), seconds=90)
            self.end(name)

    def assert_settled(self) -> None:
        """Each has the right verdict and one RayJob, there is no other RayJob, and no verdict changes any more."""
        expected = {name: self._verdict(name) for name in self.names}
        eventually(lambda: self._phases() == expected, seconds=90, because=lambda: str(self._phases()))
        assert self.names_of_ray_jobs() == sorted(self.names)
        before = self._statuses()
        for name in self.names:
            self.end(name, contrary=True)
            self._request("PATCH", self._train_job(name), {"metadata": {"labels": {"look": "again"}}})
        self.jobs.create("the-last", suspend=True)
        self.jobs.until("the-last", phase="Suspended")
        assert self._statuses() == before

    def _phases(self) -> dict[str, str]:
        return {name: status.get("phase", "") for name, status in self._statuses().items()}

    def _statuses(self) -> dict[str, dict[str, Any]]:
        found = {each["metadata"]["name"]: each for each in self._request("GET", self._train_job())["items"]}
        return {name: found[name].get("status", {}) for name in self.names}

    def _verdict(self, name: str) -> str:
        return "Failed" if int(name.rpartition("-")[2]) % 3 == 0 else "Succeeded"

    def _ray_job(self, name: str = "") -> str:
        return f"/apis/ray.io/v1/namespaces/{self.jobs.namespace}/rayjobs/{name}"

    def _train_job(self, name: str = "") -> str:
        return f"/apis/trainjob.dev/v1alpha1/namespaces/{self.jobs.namespace}/trainjobs/{name}"

    def _request(self, method: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": content}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        with self._direct.open(request, timeout=30) as response:
            return json.load(response)
