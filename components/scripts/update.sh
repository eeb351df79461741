# shellcheck shell=bash
# An update of a node that serves, as its workload sees it: marked while it lasts, and where it would end or endanger
# containers the node's pods are evicted first. By the node's own kubelet identity, so no machine holds a credential for
# another one. Only definitions; phases source it, cluster-reader.sh and hooks.sh. On the Node: kube-ha.io/updating says
# what is under way. kube-ha.io/cordoned: the cordon is ours, and whoever ends the update takes it away, also after a
# run that was cut off; a cordon without it is somebody else's and stays. kube-ha.io/drain holds rollout.drain as "when
# seconds grace" (wave.sh writes it).
# It decides about this node's own update alone, and what is not of that form is not read: a master that tries evictions
# on others has DRAIN of its own values.
NODE_JSON=$STATE/node.json
USUAL_DRAIN="auto 300 -" # of a Node that says nothing

# What was applied whole before, and only runs again (by another way of login, say), is not an update. The mark goes
# before anything else is begun: a change that was cut off and is taken back changes things again.
WHOLE=$STATE/node.whole
know_whole() {
  if [[ -f $WHOLE && $(<"$WHOLE") != "$APPLIED" ]]; then rm -f "$WHOLE"; fi
}

# begin_update WHAT [intrusive]: WHAT is said on the Node. To be called before the first thing that is intrusive.
begin_update() {
  local end when timeout begun
  if ! joined; then return; fi # a machine that is not a node yet
  wait_for 60 "Node $NODE at the API" see_node
  if ! node_exists; then return; fi
  read -r when timeout _ < <(drain_settings)
  if [[ $when == never || ($when == auto && ${2:-} != intrusive) ]]; then
    # only said
    patch_self 10 "{\"metadata\":{\"annotations\":{\"kube-ha.io/updating\":\"$1\"}}}" >/dev/null 2>&1 || true
    return
  fi
  end=$((SECONDS + timeout))
  log "$1: its pods are evicted first"
  expect_evictions "$end" "$timeout"
  cordon_self "$1"
  begun=$SECONDS
  tell_hook beforeDrain "$NODE" "update: $1"
  evict_pods $((end + SECONDS - begun)) "$timeout"
}

# end_update: the node is what it should be; it takes pods again if it was us who cordoned it.
end_update() {
  local mark
  wait_for 60 "Node $NODE at the API" see_node
  if ! node_exists; then return; fi
  mark=$(node_says '.metadata.annotations["kube-ha.io/cordoned"] // ""')
  if [[ -n $mark ]]; then
    # One that was not ready before (no pod network yet, say) cannot be expected to be.
    if [[ $mark == ready ]]; then wait_for 180 "Node $NODE Ready after its update" ready_again; fi
    wait_for 60 "Node $NODE uncordoned" patch_self 10 \
      '{"metadata":{"annotations":{"kube-ha.io/updating":null,"kube-ha.io/cordoned":null}},"spec":{
        "unschedulable":null}}'
    log "takes pods again"
    changes=$((changes + 1))
    tell_hook afterUncordon "$NODE" "updated"
  elif [[ $(node_says '.metadata.annotations["kube-ha.io/updating"] // ""') != "" ]]; then
    wait_for 60 "Node $NODE without its mark" patch_self 10 '{"metadata":{"annotations":{"kube-ha.io/updating":null}}}'
  fi
}

# own_api SECONDS METHOD PATH [BODY]: the answer, and its HTTP status on the last line (000: none came).
own_api() {
  local body=()
  if (($# > 3)); then
    body=(-H "Content-Type: $([[ $2 == PATCH ]] && echo application/merge-patch+json || echo application/json)"
    --data-binary "$4")
  fi
  # the status says it
  curl -sS --max-time "$1" --noproxy '*' --cacert "$CLUSTER_CA" --cert "$IDENTITY" -w '\n%{http_code}' -X "$2" \
    "${body[@]}" "https://127.0.0.1:3446$3" || true
}
patch_self() { # patch_self SECONDS BODY
  local answer
  answer=$(own_api "$1" PATCH "/api/v1/nodes/$NODE" "$2")
  [[ ${answer##*$'\n'} == 200 ]] || refused "$answer"
}
refused() { # refused ANSWER: what the API says, in a line; always fails
  printf 'HTTP %s %s\n' "${1##*$'\n'}" "$(say_why "${1%$'\n'*}")"
  return 1
}
# no JSON: the status tells
say_why() {
  jq -r "$CLEAN"'[.message, .details.causes[]?.message] | map(select(. != null)) | join(" ")
    | said(300)' <<<"$1" 2>/dev/null || true
}

see_node() {
  local answer
  answer=$(own_api 10 GET "/api/v1/nodes/$NODE")
  case ${answer##*$'\n'} in
    200) put_quietly "$NODE_JSON" <<<"${answer%$'\n'*}" ;;
    404) put_quietly "$NODE_JSON" <<<'{}' ;;
    *) refused "$answer" ;;
  esac
}
put_quietly() { (umask 077 && cat >"$1"); } # what was seen is not a change of the machine
node_says() { jq -r "$1" "$NODE_JSON"; }
node_exists() { [[ $(node_says '.metadata.name // ""') == "$NODE" ]]; }
drain_settings() {
  local said=${DRAIN:-}
  if [[ -z $said ]]; then
    said=$(node_rows drain <"$NODE_JSON")
    said=${said#*|}
  fi
  printf '%s\n' "${said:-$USUAL_DRAIN}"
}

# A status from before the kubelet's start is that of the old one; both times are of this machine's clock.
ready_again() {
  local since ready
  since=$(systemctl show -p ActiveEnterTimestamp --value kubelet)
  since=$(date -u -d "${since:-now}" +%FT%TZ)
  see_node || return 1
  ready='.type == "Ready" and .status == "True"'
  [[ $(node_says "[.status.conditions[]? | select($ready and .lastHeartbeatTime >= \"$since\")] | length") == 1 ]] ||
    { node_says '.status.conditions[]? | select(.type == "Ready") | "\(.reason): \(.message)"' && return 1; }
}

# The mark and the cordon in one write: a run that is cut off leaves both or none.
cordon_self() {
  local mark=""
  wait_for 60 "Node $NODE at the API" see_node
  if [[ $(node_says '.spec.unschedulable // false') != true ]]; then
    mark=$(node_says 'if [.status.conditions[]? | select(.type == "Ready" and .status == "True")] == [] then "not-ready"
      else "ready" end')
    mark=",\"kube-ha.io/cordoned\":\"$mark\""
  fi
  wait_for 60 "Node $NODE cordoned" patch_self 10 \
    "{\"metadata\":{\"annotations\":{\"kube-ha.io/updating\":\"$1\"$mark}},\"spec\":{\"unschedulable\":true}}"
}

# Lines "namespace name uid grace owned ending moves" of the pods that have to go: not those of DaemonSets, not static
# ones, not those that have ended. moves: a controller of theirs moves them because an eviction was refused, as KubeVirt
# migrates virtual machines; others say so by an annotation.
own_pods() {
  local answer
  answer=$(own_api 30 GET "/api/v1/pods?fieldSelector=spec.nodeName%3D$NODE")
  if [[ ${answer##*$'\n'} != 200 ]]; then refused "$answer"; fi
  jq -r "$CLEAN"'.items[]
    | select(.metadata.annotations["kubernetes.io/config.mirror"] == null)
    | select(.status.phase != "Succeeded" and .status.phase != "Failed")
    | [.metadata.ownerReferences[]? | select(.controller == true) | .kind] as $owner | select($owner != ["DaemonSet"])
    | [(.metadata.namespace, .metadata.name | only("[a-z0-9]([a-z0-9.-]*[a-z0-9])?")),
    (.metadata.uid | only("[A-Za-z0-9-]+")), (.spec.terminationGracePeriodSeconds // 30 | whole),
       $owner != [], .metadata.deletionTimestamp != null,
       (.metadata.labels["kubevirt.io"]? == "virt-launcher"
         or .metadata.annotations["kube-ha.io/moves-when-refused"]? == "true")]
       | select(index("") == null) | map(tostring)
       | join(" ")' <<<"${answer%$'\n'*}"
}

# evict_pod NAMESPACE NAME UID GRACE [QUERY]: says why not.
evict_pod() {
  local answer most seconds=$4 eviction='{"apiVersion":"policy/v1","kind":"Eviction"'
  eviction+=",\"metadata\":{\"namespace\":\"$1\",\"name\":\"$2\"}"
  read -r _ _ most < <(drain_settings)
  if [[ $most != - ]] && ((seconds > most)); then seconds=$most; fi
  answer=$(own_api 30 POST "/api/v1/namespaces/$1/pods/$2/eviction${5:-}" \
    "$eviction,\"deleteOptions\":{\"gracePeriodSeconds\":$seconds,\"preconditions\":{\"uid\":\"$3\"}}}")
  case ${answer##*$'\n'} in
    200 | 201 | 404 | 409) ;; # 404, 409: that pod is gone, or another one has its name; it is listed again
    # || true: that is not a failure of the phase, and would be told as one.
    *) printf '%s/%s (%s)\n' "$1" "$2" "$(refused "$answer" || true)" ;;
  esac
}

# What would not be let go, a line each; nothing is changed. One that moves when it is refused is not asked: its refusal
# says nothing.
would_block() {
  local pods namespace name uid grace owned ending moves
  pods=$(own_pods) || {
    printf 'the list of its pods (%s)\n' "$pods"
    return
  }
  while read -r namespace name uid grace owned ending moves; do
    if [[ -z $namespace || $ending == true ]]; then continue; fi
    if [[ $owned == false ]]; then
      printf '%s/%s (has no controller, nothing would recreate it)\n' "$namespace" "$name"
    elif [[ $moves == false ]]; then
      evict_pod "$namespace" "$name" "$uid" "$grace" '?dryRun=All'
    fi
  done <<<"$pods"
}
# Nodes of the same wave may use up a budget for a while: it is asked again, with the node still in service.
expect_evictions() { # expect_evictions END TIMEOUT
  local blocked
  while true; do
    blocked=$(would_block)
    if [[ -z $blocked ]]; then return; fi
    if ((SECONDS >= $1)); then
      die \
        "pods cannot be evicted within $2 s, so the node was left as it was: $(head -n 5 <<<"$blocked" |
          paste -sd' ')" "make room or relax the PodDisruptionBudget (kubectl get pdb -A), delete pods without a" \
        "controller, or raise rollout.drain.timeoutS; then run pulumi up again"
    fi
    sleep 2
  done
}

evict_pods() { # evict_pods END TIMEOUT
  local left
  left=$(pods_left "$1")
  if [[ -n $left ]]; then
    die "pods are still here after $2 s, the node stays cordoned: $left" \
      "see why they stay (kubectl get pods -A --field-selector spec.nodeName=$NODE; kubectl get pdb -A), then run" \
      "pulumi up again: it continues, and uncordons the node at its end"
  fi
  changes=$((changes + 1))
}
# Evicts until none is left, or until END: then says which were, and why.
pods_left() { # pods_left END
  local pods left namespace name uid grace owned ending moves
  while true; do
    if ! pods=$(own_pods); then
      left="the list of its pods ($pods)"
    elif [[ -z $pods ]]; then
      return
    else
      left=""
      while read -r namespace name uid grace owned ending moves; do
        if [[ $ending == true ]]; then
          left+="$namespace/$name (is ending)"$'\n'
        else
          left+=$(evict_pod "$namespace" "$name" "$uid" "$grace")$'\n'
        fi
      done <<<"$pods"
    fi
    if ((SECONDS >= $1)); then
      awk NF <<<"${left:-its pods (evicted, and not gone)}" | head -n 5 | paste -sd' '
      return
    fi
    sleep 1
  done
}
