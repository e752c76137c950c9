// For the definitions of ServiceMonitor and PrometheusRule: nothing is built.
module trainjob.test/monitoring

go 1.24.0

require github.com/prometheus-operator/prometheus-operator v0.85.0
