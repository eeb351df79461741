"""Logs of every node and pod, kept on the node until a store has them."""
