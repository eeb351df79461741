"""What an administrator's kubeconfig tells: the cluster's CA, and until when it is good."""

from __future__ import annotations

import base64

import yaml

from operations.observe import answers
from operations.observe.facts import Certificate


def authority(kubeconfig: str) -> str:
    """The CA's certificate, PEM; empty where there is none."""
    return _decoded(kubeconfig, "clusters", "cluster", "certificate-authority-data")


def administrator(kubeconfig: str) -> Certificate | None:
    """The administrator's own certificate."""
    text = _decoded(kubeconfig, "users", "user", "client-certificate-data")
    return answers.certificate(text) if text else None


def _decoded(kubeconfig: str, section: str, kind: str, key: str) -> str:
    """A value of the first entry of a section; empty where it is not to be had."""
    try:
        found = yaml.safe_load(kubeconfig)[section][0][kind][key]
        return base64.b64decode(str(found)).decode()
    except (yaml.YAMLError, LookupError, TypeError, ValueError):
        return ""
