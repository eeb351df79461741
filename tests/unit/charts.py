"""Packed Helm charts to start a test from."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from pathlib import Path

SETTINGS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-settings
data:
  colour: {{ .Values.colour | quote }}
  kubernetes: {{ .Capabilities.KubeVersion.Version }}
  monitored: {{ .Capabilities.APIVersions.Has "monitoring.coreos.com/v1" | quote }}
"""
ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ .Release.Name }}-reads}
rules: []
---
apiVersion: example.com/v1
kind: Widget
metadata:
  labels: {namespace: no}
  name: one
---
apiVersion: v1
kind: ServiceAccount
metadata: {annotations: {a: "ärger"}, name: account, namespace: elsewhere}
---
apiVersion: v1
kind: Service
metadata: {name: web}
"""
WIDGETS = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets, singular: widget}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
"""
HOOK = """\
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}-migrate
  annotations: {helm.sh/hook: %s}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}
"""


def packed(
    file: Path,
    templates: Mapping[str, str],
    *,
    version: str = "1.0.0",
    values: Mapping[str, object] | None = None,
    crds: Mapping[str, str] | None = None,
) -> dict[str, object]:
    """A chart in that file; what the config says of it."""
    texts = {
        "Chart.yaml": f"apiVersion: v2\nname: web\nversion: {version}\n",
        "values.yaml": json.dumps({"colour": "red", **(values or {})}),
        **{f"templates/{name}.yaml": text for name, text in templates.items()},
        **{f"crds/{name}.yaml": text for name, text in (crds or {}).items()},
    }
    out = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=out, mode="wb", mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w") as tar,
    ):
        for name, text in texts.items():
            info = tarfile.TarInfo(f"web/{name}")
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(out.getvalue())
    return {"file": str(file), "sha256": hashlib.sha256(out.getvalue()).hexdigest()}
