"""What watches the daemon: alert rules, a dashboard, and the objects that bring both to Prometheus and Grafana."""
