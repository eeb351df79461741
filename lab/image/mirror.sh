#!/bin/bash
# First process of a lab's mirror container: serves the bundle mounted at /bundle, files over HTTP on 8080 (paths are
# <host>/<path> of upstream) and images as a read-only registry on 5000.
# Ends as soon as one of the two ends, so that a half-dead mirror is seen.
set -euo pipefail

main() {
  printf '%s\n' \
    'daemon off; worker_processes 2; pid /run/mirror.pid; error_log /dev/stderr;' \
    'events { worker_connections 1024; }' \
    'http { access_log off; sendfile on; default_type application/octet-stream;' \
    '  server { listen 8080; root /bundle/files; autoindex on; } }' >/run/mirror.conf
  # Read only twice over: the mount is, and without `readonly` the registry would try to write upload state on every
  # start.
  printf '%s\n' 'version: 0.1' 'log: {level: warn}' \
    'storage: {filesystem: {rootdirectory: /bundle/registry}, maintenance: {readonly: {enabled: true}}}' \
    'http: {addr: ":5000"}' >/run/registry.yml
  # nginx drops its workers' rights, and a bundle may be readable by its owner alone.
  nginx -c /run/mirror.conf -g 'user root;' &
  docker-registry serve /run/registry.yml &
  trap 'kill $(jobs -p)' TERM INT
  wait -n
  kill "$(jobs -p | head -n 1)" 2>/dev/null || true # the other one may be gone as well
  exit 1
}
main
