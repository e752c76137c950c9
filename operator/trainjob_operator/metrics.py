"""The operator's Prometheus metrics."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

QUEUE_DEPTH = Gauge("trainjob_queue_depth", "TrainJobs waiting to be reconciled.", registry=REGISTRY)
RECONCILE_SECONDS = Histogram("trainjob_reconcile_seconds", "Duration of one reconciliation.", registry=REGISTRY)
RECONCILES = Counter("trainjob_reconciles_total", "Reconciliations by result.", ["result"], registry=REGISTRY)
JOBS = Gauge("trainjob_jobs", "TrainJobs by namespace and phase.", ["namespace", "phase"], registry=REGISTRY)
START_SECONDS = Histogram(
    "trainjob_start_seconds",
    "Time from a TrainJob's creation to its first phase Running.",
    buckets=(1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
    registry=REGISTRY,
)
LEADER = Gauge("trainjob_leader", "1 if this replica is the leader.", registry=REGISTRY)
SETTINGS_REFUSED = Gauge(
    "trainjob_settings_refused",
    "1 if the settings file has changed and is invalid: the earlier settings stay in force.",
    registry=REGISTRY,
)
ACCESS_MISSING = Gauge(
    "trainjob_access_missing",
    "1 if the operator lacks access that it needs; /readyz says which.",
    registry=REGISTRY,
)
