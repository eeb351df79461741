# Sourced by the lab's scripts. Defines engine(), the one door to podman or docker, and die().
# shellcheck shell=bash

# shellcheck disable=SC2034  # used where this is sourced
LAB_IMAGE=localhost/kube-ha-lab
KUBE_HA_CACHE=${KUBE_HA_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/kube-ha}

die() { # die WHAT DO: one error for a person, with the fix
  printf 'ERROR %s: %s\n  do: %s\n' "${0##*/}" "$1" "$2" >&2
  exit 1
}

# Prints the engine's name: the wanted one, else podman, else docker. A docker client is often there without a daemon
# behind it, so docker is asked and podman, which has no daemon, is only looked up.
engine_name() {
  if [[ -n ${KUBE_HA_CONTAINER_ENGINE:-} ]]; then
    echo "$KUBE_HA_CONTAINER_ENGINE"
  elif command -v podman >/dev/null; then
    echo podman
  elif docker_answers; then
    echo docker
  else
    return 1
  fi
}

docker_answers() {
  command -v docker >/dev/null || return 1
  timeout 10 docker info >/dev/null 2>&1 || as_root timeout 10 docker info >/dev/null 2>&1
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo -n -- "$@"
  fi
}

# Machines are privileged containers with systemd: rootless engines cannot run them.
engine() {
  [[ -n ${ENGINE:-} ]] || ENGINE=$(engine_name) ||
    die "no container engine: neither podman nor a running docker" "lab/host.sh install"
  as_root "$ENGINE" "$@"
}
