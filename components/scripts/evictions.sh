# shellcheck shell=bash
# Evictions of nodes that are other machines, from a control plane node and as the administrator: tried dry, and done.
# What an eviction is, update.sh knows. Only definitions; phases source it, and update.sh before it.
KEYS=/run/kube-ha-evictions # of the administrator, while evictions are asked for

# Every eviction of these nodes is tried dry before the first of them is cordoned.
try_evictions() { # try_evictions NAMES WAY: names one a line; WAY is what the user may do besides
  local names=$1 blocked end=$((SECONDS + 60))
  if [[ -z $names ]]; then return; fi
  log "trying the evictions of $(wc -l <<<"$names") node(s)"
  take_keys
  while true; do
    blocked=$(blockers "$names")
    if [[ -z $blocked ]]; then break; fi
    if ((SECONDS >= end)); then
      die "evictions would be refused, no node was touched: $(first_rows "$blocked")" \
        "make room or relax the PodDisruptionBudget (kubectl get pdb -A), delete pods without a controller, or $2;" \
        "then run pulumi up again"
    fi
    names=$(awk '{print $2}' <<<"$blocked" | sort -u)
    sleep 2
  done
  rm -rf "$KEYS"
}
empty_node() { # empty_node NODE SECONDS: a cordoned one
  local left
  take_keys
  left=$(be_on "$1" && pods_left $((SECONDS + $2)))
  rm -rf "$KEYS"
  if [[ -n $left ]]; then
    die "pods are still on $1 after $2 s, it stays cordoned: $left" \
      "see why they stay (kubectl get pods -A --field-selector spec.nodeName=$1; kubectl get pdb -A), then run pulumi" \
      "up again"
  fi
}
take_keys() {
  local name
  trap 'rm -rf "$KEYS"' EXIT
  (umask 077 && mkdir -p "$KEYS")
  for name in client-certificate-data client-key-data; do
    kubectl --kubeconfig /etc/kubernetes/admin.conf config view --raw -o "jsonpath={.users[0].user.$name}" | base64 -d
  done >"$KEYS/admin.pem"
}
# In a subshell: update.sh works on this node.
# shellcheck disable=SC2034 # read by update.sh
be_on() { NODE=$1 IDENTITY=$KEYS/admin.pem NODE_JSON=$KEYS/$1.json; }
blockers() { # blockers NAMES: lines "on NODE: POD (REASON)", of several nodes at a time
  local name pids=() pid
  rm -f "$KEYS"/*.blocked
  while read -r name; do
    # shellcheck disable=SC2030 # of this one node
    (
      be_on "$name"
      { see_node >/dev/null && would_block || echo "its Node (cannot be read)"; } |
        sed "s|^|on $name |" >"$KEYS/$name.blocked"
    ) &
    pids+=($!)
    if ((${#pids[@]} >= 8)); then
      for pid in "${pids[@]}"; do wait "$pid"; done
      pids=()
    fi
  done <<<"$1"
  for pid in "${pids[@]}"; do wait "$pid"; done
  cat "$KEYS"/*.blocked
}
