#!/usr/bin/env bash
# Makes this computer able to run the stacks: packages, Python environment, engine and plugins, artefacts, machine
# image. Idempotent: a second run takes seconds. Everything outside the checkout is in KUBE_HA_CACHE.
# With `plan`, `python` or `engine` behind it only as far as that, which needs neither root nor the lab's packages. With
# BUNDLE=folder in the environment these take all they need from a bundle that was carried here, and ask no network.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=lab/engine.sh
source lab/engine.sh
export KUBE_HA_CACHE
mkdir -p "$KUBE_HA_CACHE" .local/log

say() { printf '%(%T)T %s\n' -1 "$*"; }

python_environment() {
  local want
  want=$(cat requirements.txt requirements-dev.txt toolchain/requirements.txt | sha256sum)
  if [[ -f .venv/kube-ha.sum && $(<.venv/kube-ha.sum) == "$want" ]]; then return; fi
  say "python    environment .venv: installing"
  python3 -m venv .venv || die "python3 cannot make a virtual environment" "apt-get install -y python3-venv"
  .venv/bin/pip install --quiet --disable-pip-version-check --no-compile -r requirements.txt -r requirements-dev.txt \
    -r toolchain/requirements.txt
  # Of the clouds' SDKs, 250 MB of Python, only what is imported: that of the rest would take a minute, and as much disk
  # again.
  .venv/bin/python -m compileall -q -j 0 -x '/pulumi_(gcp|aws)/[a-z0-9]+/' .venv/lib
  .venv/bin/python -m compileall -q -j 0 \
    .venv/lib/python3*/site-packages/pulumi_{gcp/{compute,iam,serviceaccount,projects},aws/{ec2,ebs,iam,lb,s3,vpc}}
  printf '%s' "$want" >.venv/kube-ha.sum
  sha256sum <requirements-plan.txt >.venv/kube-ha-plan.sum
  say "python    environment .venv: done"
}

# What a change plan needs, in seconds; python_environment adds the rest to it.
plan_environment() {
  local want
  want=$(sha256sum <requirements-plan.txt)
  if [[ -f .venv/kube-ha-plan.sum && $(<.venv/kube-ha-plan.sum) == "$want" ]]; then return; fi
  python3 -m venv .venv || die "python3 cannot make a virtual environment" "apt-get install -y python3-venv"
  .venv/bin/pip install --quiet --disable-pip-version-check -r requirements-plan.txt
  printf '%s' "$want" >.venv/kube-ha-plan.sum
}

# Everything in it is compared with its list before anything is installed. .local/bundle is where stack files look for
# the mirror's manifest.
from_bundle() {
  local wheels
  if [[ -z ${BUNDLE:-} ]]; then return; fi
  wheels=$(python3 -m toolchain.unpack "$BUNDLE") ||
    die "the bundle in $BUNDLE cannot be used (see above)" "do what it says and run the same again"
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$wheels
  if [[ ! $BUNDLE -ef .local/bundle ]]; then ln -sfn "$(readlink -f "$BUNDLE")" .local/bundle; fi
  link_kubectl
}

link_kubectl() {
  mkdir -p .local/bin
  ln -sfn ../bundle/bin/kubectl .local/bin/kubectl
}

# The helm that renders charts, where a stack has one. With `plan` behind it there is Python for it, too.
helm_of_charts() {
  if ! grep -qsE '^ +chart:|[{,] *chart:' Pulumi.*.yaml; then return; fi
  .venv/bin/python -m artifacts.helm || die "there is no helm (see above)" "fix what it says and run the same again"
}

# Runs a step beside the others; its lines go to the terminal as they come, its end is looked at by `collect`. With job
# control it is a process group of its own, which can be ended as a whole; without, it would also ignore Ctrl-C.
background() {
  local name=$1
  shift
  set -m
  "$@" </dev/null &
  set +m
  steps[$!]=$name
}
declare -A steps=()

steps_run() {
  local pid
  for pid in "${!steps[@]}"; do
    if as_root kill -0 -- "-$pid" 2>/dev/null; then return 0; fi
  done
  return 1
}

# However this script ends, no build continues under the user's next command. INT comes first: on it, what is half made
# is taken away again.
end_steps() {
  local signal pid end
  trap '' INT TERM HUP # a second Ctrl-C must not leave half of them
  for signal in INT TERM KILL; do
    for pid in "${!steps[@]}"; do as_root kill -s "$signal" -- "-$pid" 2>/dev/null || true; done
    end=$((SECONDS + 10))
    while steps_run && ((SECONDS < end)); do sleep 0.1; done
  done
}
trap end_steps EXIT

collect() {
  local pid failed=""
  for pid in "${!steps[@]}"; do
    if ! wait "$pid"; then failed+=" ${steps[$pid]}"; fi
    unset "steps[$pid]"
  done
  [[ -z $failed ]] ||
    die "failed:$failed (see above)" "fix what it says and run make setup again; what is done stays done"
}

toolchain() {
  .venv/bin/python -m toolchain.install ||
    die "the engine and its plugins are not complete (see above)" "fix what it says and run the same again"
}

main() {
  local started=$SECONDS
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    die "Python 3.11 or newer is needed, this is $(python3 --version)" "install it (Debian 12 and Ubuntu 24.04 have it)"
  case ${1:-all} in plan | python | engine) from_bundle ;; esac
  case ${1:-all} in
    # What comes after these may print something for other programs, so their lines go to stderr.
    plan)
      plan_environment >&2
      helm_of_charts >&2
      return
      ;;
    python)
      python_environment >&2
      return
      ;;
    engine)
      python_environment >&2
      toolchain >&2
      helm_of_charts >&2
      return
      ;;
    all) ;;
    *) die "unknown part '$1'" "lab/setup.sh, or plan, python or engine behind it" ;;
  esac
  bash lab/host.sh install # ends with the check
  python_environment
  # The image is made of packages, the rest of compiling: in parallel they share the two resources.
  background "machine image" bash lab/image/build.sh
  toolchain
  background "artefacts" bash lab/bundle.sh dev
  collect
  helm_of_charts
  link_kubectl
  say "setup     complete in $((SECONDS - started)) s"
}
main "$@"
