#!/usr/bin/env bash
# Add-ons that are put back between updates (addons.NAME.reconcile). Phase manifests leaves here, on the master that
# applied them, what it was told; kube-ha-addons.timer runs that phase again by it. It does so only while the cluster's
# list of the add-on says that this machine applied these very values: not while a change is under way or was cut off,
# not once another master has applied the add-on, and not in a cluster of another identity.
# The phases manifests and nodes source this. Run by itself, it is what the timer runs.
KEPT_HOME=${HOME_DIR:-/var/lib/kube-ha}/addons # NAME.values, as on stdin; NAME.last, time and words of the last look
KEPT_MARK=kube-ha.io/kept                      # of the list: which node has which values
KEPT_MIN=5                                     # between two looks
KEPT_UNITS=("${ROOT:-}/etc/systemd/system/kube-ha-addons.service" "${ROOT:-}/etc/systemd/system/kube-ha-addons.timer")

kept_mark() { # kept_mark NAME: of its list, "NODE SUM"
  kubectl_admin -n kube-system get configmap "kube-ha-addon-$1" -o json |
    jq -r --arg mark "$KEPT_MARK" '.metadata.annotations[$mark] // ""'
}
# From here on nobody puts back what it was.
unmark_kept() {
  kubectl_admin -n kube-system annotate -- configmap "kube-ha-addon-$NAME" "$KEPT_MARK-" >/dev/null
}
sum_of_kept() { sha256sum <"$KEPT_HOME/$1.values" | cut -c1-16; }

# keep_addon: what this phase was told, for the timer; the mark last.
keep_addon() {
  local word file
  if [[ -z ${RECONCILE:-} ]]; then
    drop_kept "$NAME"
    return
  fi
  # Its own scripts: those of the node may be of another version of kube-ha, until phase node has run again.
  # shellcheck disable=SC2016,SC2154 # the very text of the phase; here: the folder of run.sh
  for file in run lib manifests $(sed -n 's|^source "$here/\([a-z-]*\)\.sh"$|\1|p' "$here/manifests.sh"); do
    put 600 "$KEPT_HOME/scripts/$file.sh" <"$here/$file.sh" >/dev/null
  done
  {
    for word in NODE CLUSTER CLUSTER_ID CONTAINER INCARNATION SCRIPT_SUM NAME FILES OBJECTS LIST SECRETS COPIES; do
      printf '%s=%q\n' "$word" "${!word:-}"
    done
    printf 'RECONCILE=timer\n# end\n'
  } | put 600 "$KEPT_HOME/$NAME.values"
  noted good
  keep_looking
  kubectl_admin -n kube-system annotate --overwrite -- configmap "kube-ha-addon-$NAME" \
    "$KEPT_MARK=$NODE $(sum_of_kept "$NAME")" >/dev/null
}
noted() { printf '%s %s\n' "$(date +%s)" "$1" >"$KEPT_HOME/$NAME.last"; }
keep_looking() {
  put 644 "${KEPT_UNITS[0]}" <<<"[Unit]
Description=Add-ons as they were applied

[Service]
Type=oneshot
ExecStart=/bin/bash $KEPT_HOME/scripts/reconcile.sh
TimeoutStartSec=30min
Nice=10"
  put 644 "${KEPT_UNITS[1]}" <<<"[Unit]
Description=Add-ons as they were applied, every $KEPT_MIN min

[Timer]
OnActiveSec=${KEPT_MIN}min
OnUnitInactiveSec=${KEPT_MIN}min

[Install]
WantedBy=timers.target"
  settle restart kube-ha-addons.timer "${KEPT_UNITS[@]}"
}

# drop_kept NAME: nobody puts it back from here any more.
drop_kept() {
  if [[ ! -e $KEPT_HOME/$1.values ]]; then return; fi
  rm -f "$KEPT_HOME/$1.values" "$KEPT_HOME/$1.last"
  changes=$((changes + 1))
  log "add-on $1 is no longer put back by this machine"
  if compgen -G "$KEPT_HOME/*.values" >/dev/null; then return; fi
  systemctl disable -q --now kube-ha-addons.timer
  rm -rf "$KEPT_HOME" "${KEPT_UNITS[@]}" "$STATE/kube-ha-addons.timer.sum"
  systemctl daemon-reload
}
keep_only() { # keep_only ADDON...
  local file name
  for file in "$KEPT_HOME"/*.values; do
    name=${file##*/} name=${name%.values}
    if [[ -e $file && " $* " != *" $name "* ]]; then drop_kept "$name"; fi
  done
}

# put_back: phase manifests, as the timer runs it. It ends where it is not this machine's to do, and looks before it
# applies: what is as it was is not written.
put_back() {
  local mark rows
  if [[ -f $LOCK ]] && ! flock -n "$LOCK" true; then
    log "an update is under way on this machine: add-on $NAME is looked at later"
    return
  fi
  own
  wait_for 60 "API ready" kubectl_admin get --raw /readyz
  mark=$(kept_mark "$NAME") ||
    die "the cluster has no list of add-on $NAME (ConfigMap kube-system/kube-ha-addon-$NAME)" \
      "raise converge.generation and run pulumi up: it is made again"
  if [[ -z $mark ]]; then
    log "add-on $NAME is being changed, or its last change was cut off: nothing is put back until an update ends it"
    return
  elif [[ ! -e $KEPT_HOME/$NAME.values || $mark != "$NODE $(sum_of_kept "$NAME")" ]]; then
    if [[ ${mark%% *} != "$NODE" ]]; then drop_kept "$NAME"; fi
    log "add-on $NAME was applied by ${mark%% *} since: nothing is put back by these values"
    return
  fi
  check_files
  # shellcheck disable=SC2154 # of check_files
  rows=$(differing "$ADDON_MANAGER" ${SECRETS:+-f -} "${copied[@]}" <<<"${SECRETS:-}")
  if [[ -n $rows ]]; then
    log "add-on $NAME: $(plain <<<"$rows" | head -n 20 | paste -sd';')"
    wait_for "$APPLY_S" "add-on $NAME put back" apply
    if [[ -s $STATE/manifests.refused ]]; then
      die "add-on $NAME: the API refuses $(head -n 3 "$STATE/manifests.refused" | cut -c 1-300 | paste -sd';')"
    fi
    log "add-on $NAME was put back"
  fi
  mark_bare
  make_passwords
  noted good
}

if [[ ${BASH_SOURCE[0]:-} == "$0" ]]; then
  set -uo pipefail
  export LC_ALL=C PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
  failed=0
  for file in "$KEPT_HOME"/*.values; do
    # Phases wait 600 s for the machine's lock; the rest is for those that wait already.
    if [[ ! -e $file ]] || answer=$(timeout 400 bash "$KEPT_HOME/scripts/run.sh" manifests <"$file" 2>&1); then
      if [[ -n ${answer:-} ]]; then printf '%s\n' "$answer"; fi
      continue
    fi
    printf '%s\n' "$answer"
    failed=1
    if [[ -e $file ]]; then
      printf '%s %s\n' "$(date +%s)" "$(sed -n 's/^ERROR [^:]*: //p' <<<"$answer" | head -n 1 | cut -c 1-200)" \
        >"${file%.values}.last"
    fi
  done
  exit "$failed"
fi
