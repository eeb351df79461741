# shellcheck shell=bash
# The gate before a wave of workers. Gate 0 comes before all waves: it tells the nodes how to drain, and lists what
# would block evictions. Gate k waits until every node of wave k has applied what is wanted, within the failure budget;
# then pause, hold and windows decide whether the next wave begins. Runs on a control plane node and takes no lock
# there: other phases have to work on this machine meanwhile.
# Variables:
#   WAVE, WAVES         its number, and how many
#   NODES, EARLIER, LATER: of this wave, of those before, of those after: lines "pool applied names", names as a-[1-3];
#                       each may be unset
#   BUDGET              how many nodes may fail in all
#   CRITICAL            names of nodes that may not fail
#   PAUSE_S             seconds before the next wave
#   WINDOWS             words "first-last", minutes of the week in UTC; empty: any time
#   WINDOWS_SAID        the same, as the config writes it
#   HOLD                1: no further wave
#   STALL_S, IDLE_S     see nodes.sh
#   MAINTENANCE, CONTROL_PLANE, ABSENT_BUDGET: see absent.sh; may be unset
#   NETWORK             1: nodes become Ready
#   DRAIN, VERSIONS, OS: of gate 0: "when seconds grace"; words "kubelet=1.36.3"; the value of os.packages, may be empty
# Changes: the annotation kube-ha.io/drain of Nodes.
# shellcheck source=etcdctl.sh disable=SC2154 # here: the folder of run.sh
source "$here/etcdctl.sh"
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=hooks.sh disable=SC2154
source "$here/hooks.sh"
# shellcheck source=update.sh
source "$here/update.sh"
# shellcheck source=evictions.sh
source "$here/evictions.sh"
# shellcheck source=absent.sh
source "$here/absent.sh"

# Nodes of NODES-like lines that are not as wanted, a line each: "busy", "idle" (nothing is under way there), "failed"
# or "silent" (unresponsive), the name, the reason. One with a mark of any other update was left half-way, whatever it
# announces: it has its turn again.
unfinished_nodes() { # unfinished_nodes LINES
  local have
  # An API that is unavailable for a moment is not a failure of this phase.
  have=$(trap - ERR && cluster_table 2>/dev/null) || {
    echo "$NO_ANSWER"
    return
  }
  awk -F'|' -v network="$NETWORK" "$NODE_ROWS"'
    END {
      for (name in want) {
        if (!there[name]) say("idle", name, "not registered")
        else if (begun[name] == want[name]) say("busy", name, "has begun to apply this configuration")
        else if (index(failed[name], want[name] " ") == 1)
          say("failed", name, "failed at " substr(failed[name], length(want[name]) + 2))
        else if (begun[name] != "" || failed[name] != "") say("idle", name, "was left half-way by an earlier update")
        else if (applied[name] != want[name]) say("idle", name, "has not applied this configuration")
        else if (ready[name] != "True" && network == 1) {
          silent = ready[name] == "Unknown"
          say(silent ? "idle" : "busy", name, silent ? "is unresponsive" : "not Ready")
        }
      }
    }' <(WANTED=$1 waited_for "$have") <(printf '%s\n' "$have") | sort
}
count_of() { awk NF <<<"$1" | wc -l; }
names_of() { awk NF <<<"$1" | cut -d' ' -f2; }

# Until every node of the wave is as wanted, or has failed for certain: by its own word that is news, or because nothing
# moves any more.
await_wave() {
  local left old=unread failures lost="" count fewest="" since=$SECONDS
  if [[ $BUDGET != 0 ]]; then lost=$(unfinished_nodes "${EARLIER:-}"); fi
  while true; do
    left=$(unfinished_nodes "${NODES:-}")
    if [[ -z $left ]]; then
      log "wave $WAVE of $WAVES is as wanted"
      return
    fi
    if [[ $left != "$NO_ANSWER" ]]; then
      # What a node said before this wave began may be of an earlier update: its retry takes it away.
      if [[ $old == unread ]]; then old=$(grep '^failed ' <<<"$left" || true); fi # none is an answer
      failures=$(comm -13 <(sort <<<"$old") <(grep '^failed ' <<<"$left" | sort || true))
      stop_if_too_many_failed "$failures" "$lost"
      if [[ $(count_of "$left") == $(count_of "$failures") ]]; then break; fi
      # Every node is idle, then busy, then done or failed: the sum only falls while something moves.
      count=$(($(awk '$1 == "busy" {n += 1} $1 == "idle" || $1 == "failed" {n += 2}
        END {print n + 0}' <<<"$left") - 2 * $(count_of "$failures")))
      if ((count < ${fewest:-count + 1})); then fewest=$count since=$SECONDS; fi
    fi
    if [[ $'\n'$left == *$'\n'busy* ]]; then
      if ((SECONDS - since >= STALL_S)); then
        die "wave $WAVE: nothing moved for $STALL_S s: $(first_rows "$(cut -d' ' -f2- <<<"$left")")" \
          "see journalctl -u kubelet -u containerd there; an engine with --parallel 1 cannot work on nodes while this" \
          "waits; then run pulumi up again"
      fi
    elif ((SECONDS - since >= IDLE_S)); then
      stop_if_too_many_failed "$left" "$lost"
      break
    fi
    end_unheard
    sleep 1
  done
  log "wave $WAVE of $WAVES: $(count_of \
    "$left") failed, which the failure budget of $BUDGET allows: $(first_rows "$(cut -d' ' -f2- <<<"$left")")"
}

stop_if_too_many_failed() { # stop_if_too_many_failed FAILED EARLIER: ends the rollout where the plan says so
  local name bad=$1 total
  if [[ -z $(awk NF <<<"$bad") ]]; then return; fi
  while read -r name; do
    if [[ " $CRITICAL " == *" $name "* ]]; then
      die "wave $WAVE: the critical node $(grep -F " $name " <<<"$bad" | cut -d' ' -f2-)" \
        "fix it, then run pulumi up again; no further wave has begun"
    fi
  done < <(names_of "$bad")
  total=$(($(count_of "$bad") + $(count_of "$2")))
  if ((total > BUDGET)); then
    die \
      "wave $WAVE: $total failed, $BUDGET may: $(first_rows \
        "$(printf '%s\n%s\n' "$bad" "$2" | awk NF | cut -d' ' -f2-)")" \
      "fix what the failed commands name, then run pulumi up again: it continues with these nodes; no further wave" \
      "has" \
      "begun"
  fi
}

# Whether the next wave may begin: pause, hold and windows count only while a later wave has something to do.
release() {
  if [[ -z $(unfinished_nodes "${LATER:-}") ]]; then return; fi
  if ((PAUSE_S > 0)); then
    log "waiting $PAUSE_S s before the next wave"
    sleep "$PAUSE_S"
  fi
  if [[ $HOLD == 1 ]]; then
    die "the rollout holds after wave $WAVE of $WAVES, as rollout.holdAfter says" \
      "look at what is done; then raise rollout.holdAfter or take it out, and run pulumi up again"
  fi
  in_window ||
    die \
      "wave $((WAVE + 1)) of $WAVES may not begin now, $(date -u '+%a %H:%M') UTC: rollout.windows is $WINDOWS_SAID" \
      "run pulumi up again within these times, or change rollout.windows"
}
minute_of_week() { date -u '+%u %H %M' | awk '{print ($1 - 1) * 1440 + $2 * 60 + $3}'; }
in_window() {
  local now window
  if [[ -z $WINDOWS ]]; then return; fi
  now=$(minute_of_week)
  for window in $WINDOWS; do
    if ((now >= ${window%-*} && now < ${window#*-})); then return; fi
  done
  return 1
}

# Nodes read on themselves how to drain; without a word it is what update.sh says.
tell_drain() {
  local rows names
  rows=$(read_nodes drain)
  names=$(awk -F'|' -v said="$DRAIN" -v usual="$USUAL_DRAIN" \
    'NR == FNR {split($0, row, " "); want[row[1]] = 1; next}
      $1 in want && ($2 == "" ? usual : $2) != said {print $1}' <(WANTED=${LATER:-} wanted_table) \
    <(printf '%s\n' "$rows"))
  if [[ -z $names ]]; then return; fi
  # kubectl wants what it writes behind the names.
  # shellcheck disable=SC2016 # of the inner shell
  xargs -n 200 sh -c '
    said=$0
    exec kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s annotate --overwrite \
      -- node "$@" "kube-ha.io/drain=$said"' "$DRAIN" <<<"$names" >/dev/null
  changes=$((changes + 1))
}

# Names of the nodes whose pods are evicted in this rollout.
to_drain() {
  local when table unfinished
  read -r when _ <<<"$DRAIN"
  if [[ $when == never ]]; then return; fi
  unfinished=$(unfinished_nodes "${LATER:-}" | awk '{print $2}')
  table=$(read_nodes kubelet runtime os)
  awk -F'|' -v when="$when" -v versions="$VERSIONS" -v os="$OS" '
    function minor(text) {sub(/^.*[\/v=]/, "", text); split(text, part, "."); return part[1] "." part[2]}
    BEGIN {split(versions, wanted, " "); kubelet = minor(wanted[1]); containerd = minor(wanted[2])}
    NR == FNR {unfinished[$1] = 1; next}
    $1 in unfinished && (when == "always" || minor($2) != kubelet || minor($3) != containerd ||
      (os != "" && $4 != os)) {print $1}' <(printf '%s\n' "$unfinished") <(printf '%s\n' "$table")
}

main() {
  # shellcheck disable=SC2034 # read by die
  HINT="see kubectl get nodes; then run pulumi up again"
  if [[ -z ${NODES:-}${LATER:-} ]]; then
    log "nobody is held back"
    return
  fi
  wait_for 60 "API ready" kubectl_admin get --raw /readyz
  if [[ $WAVE == 0 ]]; then
    tell_drain
    release
    try_evictions "$(to_drain)" "set rollout.drain.when"
  else
    await_wave
    release
  fi
  finish
}
