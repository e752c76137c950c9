"""Common parts of the operator's benchmarks: a control plane, the measurements on it, and a table of results."""

import asyncio
import statistics
import tempfile
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

from kubernetes.aio import config
from kubernetes.aio.client import ApiClient, Configuration

from cluster.control_plane import ControlPlane, running
from control_plane.operator_process import OperatorProcess
from trainjob.crd import crd

Figures = dict[str, list[float]]
Aims = Mapping[str, tuple[bool, float]]
"""Whether higher is better, and the aim."""


class Notebook:
    """Measured values by name."""

    def __init__(self) -> None:
        self.figures: Figures = {}

    def note(self, name: str, value: float) -> None:
        self.figures.setdefault(name, []).append(value)
        print(f"  {name}: {value:.4g}", flush=True)


class Bench(Notebook):
    """A control plane and its measurements."""

    def __init__(self, control_plane: ControlPlane, client: ApiClient) -> None:
        super().__init__()
        self.control_plane, self.client = control_plane, client


def on_a_control_plane(measure: Callable[[ControlPlane, ApiClient], Coroutine[Any, Any, Figures]]) -> Figures:
    """Runs a measurement with a client on a new control plane with the CRDs."""

    async def measured(control_plane: ControlPlane) -> Figures:
        configuration = Configuration()
        await config.load_kube_config(str(control_plane.kubeconfig), client_configuration=configuration)
        async with ApiClient(configuration) as client:
            return await measure(control_plane, client)

    with tempfile.TemporaryDirectory(prefix="trainjob-bench-") as folder, running(Path(folder)) as control_plane:
        control_plane.apply(crd())
        control_plane.await_definitions()
        return asyncio.run(measured(control_plane))


def counted(process: OperatorProcess) -> float:
    """The operator's number of TrainJobs, once it is ready."""
    try:
        process.get("/readyz")
        lines = process.get("/metrics").splitlines()
    except OSError:
        return 0
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith("trainjob_jobs{"))


def table(figures: Figures, aims: Aims, peers: Mapping[str, tuple[str, str]] | None = None) -> str:
    """A table of the medians, of ratios of two of them, and whether they reach their aims."""
    median = {name: statistics.median(values) for name, values in figures.items()}
    for name, (own, peer) in (peers or {}).items():
        if own in median and peer in median:
            median[name] = median[own] / median[peer]
    lines = ["| | median | min | max | aim | |", "|---|---|---|---|---|---|"]
    for name, value in median.items():
        values = figures.get(name, [value])
        aim = aims.get(name)
        told, met = ("", "") if aim is None else (f"{'≥' if aim[0] else '≤'} {aim[1]:g}", verdict(value, *aim))
        lines.append(f"| {name} | {value:.4g} | {min(values):.4g} | {max(values):.4g} | {told} | {met} |")
    return "\n".join(lines)


def verdict(value: float, at_least: bool, aim: float) -> str:
    return "reached" if (value >= aim if at_least else value <= aim) else "missed"
