"""What Prometheus reads of the operator."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

REGISTRY = CollectorRegistry()

QUEUE_DEPTH = Gauge("trainjob_queue_depth", "TrainJobs that wait to be reconciled.", registry=REGISTRY)
RECONCILE_SECONDS = Histogram("trainjob_reconcile_seconds", "Time of one reconciliation.", registry=REGISTRY)
RECONCILES = Counter("trainjob_reconciles_total", "Reconciliations by result.", ["result"], registry=REGISTRY)
JOBS = Gauge("trainjob_jobs", "TrainJobs by namespace and phase.", ["namespace", "phase"], registry=REGISTRY)
START_SECONDS = Histogram(
    "trainjob_start_seconds",
    "From a TrainJob's creation to its first Running.",
    buckets=(1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600),
    registry=REGISTRY,
)
LEADER = Gauge("trainjob_leader", "1 where this replica does the work.", registry=REGISTRY)
SETTINGS_REFUSED = Gauge(
    "trainjob_settings_refused",
    "1 where the settings' file has changed and cannot be used: the earlier settings still hold.",
    registry=REGISTRY,
)
ACCESS_MISSING = Gauge(
    "trainjob_access_missing",
    "1 where the operator lacks something that it needs: /readyz says what.",
    registry=REGISTRY,
)
