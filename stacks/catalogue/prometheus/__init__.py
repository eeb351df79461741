"""Prometheus, with an agent on every node: what the cluster does, kept, shown and judged."""
