"""A run's folder → one HTML file: `trainjob.report.render.render`."""
