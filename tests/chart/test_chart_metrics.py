"""The chart's Prometheus rules and Grafana dashboard use the operator's metrics."""

import json

import promql_parser
import pytest
import yaml
from promql_parser import Expr, VectorSelector
from releases import CHART, find, render

from trainjob_operator.metrics import REGISTRY

PARTS = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("_total",), "gauge": ("",)}
"""The suffixes that Prometheus adds to a metric's name."""
EXPORTED = {f"{metric.name}{part}": metric.name for metric in REGISTRY.collect() for part in PARTS[metric.type]}
"""The names that Prometheus scrapes from the operator, and the metric of each."""

GROUPS = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())["groups"]
DASHBOARD = json.loads((CHART / "files" / "dashboard.json").read_text())["panels"]
ALERTS = {alert["alert"]: alert["expr"] for group in GROUPS for alert in group["rules"]}
PANELS = {f"{panel['title']} {shown['refId']}": shown["expr"] for panel in DASHBOARD for shown in panel["targets"]}


def test_a_service_monitor_reads_the_service_and_keeps_the_jobs_namespace():
    own = {"enabled": True, "interval": "10s", "labels": {"release": "prometheus"}}
    objects = render({"metrics": {"serviceMonitor": own}})
    monitor, service = find(objects, "ServiceMonitor"), find(objects, "Service")
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert monitor["spec"]["endpoints"] == [{"port": "http", "interval": "10s", "honorLabels": True}]


def test_alerts_and_dashboard_are_installed_as_they_are():
    objects = render({"metrics": {"prometheusRule": {"enabled": True}, "dashboard": {"enabled": True}}})
    assert find(objects, "PrometheusRule")["spec"]["groups"] == GROUPS
    shown = find(objects, "ConfigMap", "trainjob-operator-dashboard")
    assert shown["metadata"]["labels"]["grafana_dashboard"] == "1"
    assert json.loads(shown["data"]["trainjob.json"])["panels"] == DASHBOARD


def test_alerts_say_what_is_wrong_and_what_to_do():
    alerts = [alert for group in GROUPS for alert in group["rules"]]
    assert alerts
    assert all(alert["annotations"]["summary"] and alert["annotations"]["description"] for alert in alerts)


def metrics_in(expression: str) -> set[str]:
    """The metrics that an expression of PromQL asks for; raises ValueError where it is none."""
    names: set[str] = set()

    def look(part: Expr) -> None:
        if isinstance(part, VectorSelector):
            names.add(part.name or "")

    promql_parser.walk(promql_parser.parse(expression), look)
    return names


@pytest.mark.parametrize("expression", [*ALERTS.values(), *PANELS.values()], ids=[*ALERTS, *PANELS])
def test_what_is_asked_of_prometheus_is_understood_and_there(expression: str):
    assert metrics_in(expression)
    assert metrics_in(expression) <= EXPORTED.keys()


def test_the_dashboard_shows_every_metric():
    shown = {EXPORTED[name] for expression in PANELS.values() for name in metrics_in(expression)}
    alerts_alone = {"trainjob_leader", "trainjob_access_missing", "trainjob_settings_refused"}
    assert shown == {*EXPORTED.values()} - alerts_alone
