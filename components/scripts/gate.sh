# shellcheck shell=bash
# Acceptance check: proves what a user means by "the cluster works", and leaves nothing behind. It covers API, scheduler
# and controllers, a pod on every node reached from every node, Service, NodePort and DNS. Runs last, on a control plane
# node; `make verify` runs it at any time.
# Variables:
#   PLAN                hash of the plan: every change passes through here
#   NODES               how many
#   MANIFEST            test objects
#   NETWORK             1: nodes become Ready, and pods have to reach each other
#   NAMESPACE, NAME, PORT: of the test pods and their Service
#   DNS_DOMAIN          of the cluster
#   REACH               how many neighbours each node tries; all where there are fewer nodes
#   DEPLOYMENTS         words "namespace/kind/name" that must be rolled out
#   DOORS               words "host:port": endpoints of clients outside; may be empty
#   API_NAME, API_ADDRESSES: a name that only machines of the network can look up, and the addresses that it may resolve
#                       to; may be unset
#   CLOUD_CONTROLLER    external: one has to initialise every node; may be unset
#   SERVING_CERTIFICATES: of kubelets: self-signed, issued or verified
#   ABSENT, MAINTENANCE, CONTROL_PLANE, ABSENT_BUDGET: see absent.sh
#   APPLIED             hash that every node announces; set at the end of an update, not by hand
# Changes: nothing.
# shellcheck source=kubelets.sh disable=SC2154 # here: the folder of run.sh
source "$here/kubelets.sh"
# shellcheck source=cluster-reader.sh
source "$here/cluster-reader.sh"
# shellcheck source=node-record.sh
source "$here/node-record.sh"
# shellcheck source=membership.sh disable=SC2154 # here: the folder of run.sh
source "$here/membership.sh"
# shellcheck source=absent.sh
source "$here/absent.sh"
SOCKET=/run/kube-ha-gate.sock

cleanup() {
  rm -f "$SOCKET"
  # as below
  kubectl_admin -n default delete configmap "kube-ha-gate-$$" --ignore-not-found --wait=false >/dev/null 2>&1 || true
  # on exit: the verdict stands
  kubectl_admin delete namespace "$NAMESPACE" --ignore-not-found --wait=false >/dev/null 2>&1 || true
  if see_who_is_there; then end_silent_pods; fi
  # it may be gone already
  if [[ -n ${proxy_pid:-} ]]; then kill "$proxy_pid" 2>/dev/null || true; fi
}

check_api() {
  local listed
  kubectl_admin get --raw '/readyz?verbose' >/dev/null
  kubectl_admin -n default create configmap "kube-ha-gate-$$" --from-literal=a=b >/dev/null
  # Into a variable, not into grep -q: that ends at the first match, and kubectl would die of the closed pipe.
  listed=$(kubectl_admin -n default get configmaps -o name)
  [[ $'\n'$listed$'\n' == *$'\n'"configmap/kube-ha-gate-$$"$'\n'* ]] ||
    die "an object just created is not in the list" "look at kube-apiserver and etcd"
  kubectl_admin -n default delete configmap "kube-ha-gate-$$" --wait=false >/dev/null
}

# A thousand nodes take longer than three to get an image, or to be dialled from.
for_nodes() { printf '%d\n' $(($1 + NODES / 4)); } # for_nodes SECONDS

# Who is asked: OURS without those that nobody waits for, AWAY, and how many nodes that leaves, HERE. Asked again in
# each try: a node that has died counts as there for most of a minute.
see_who_is_there() {
  local have out
  have=$(cluster_table) || return 1
  out=$(WANTED=${APPLIED:-} left_out "$have")
  AWAY=$({ absent_names && printf '%s\n' "$out"; } | awk NF | sort -u)
  OURS=$(comm -23 <(asked_nodes) <(printf '%s\n' "$AWAY"))
  HERE=$((NODES - $(rows_in "$out")))
}
# No kubelet says that a pod on a silent machine has ended, and its namespace would stay forever.
end_silent_pods() {
  local name
  while read -r name; do
    if [[ -z $name ]]; then continue; fi
    # as in cleanup
    kubectl_admin -n "$NAMESPACE" delete pods -l "app=$NAME" --field-selector "spec.nodeName=$name" --force \
      --grace-period 0 --wait=false >/dev/null 2>&1 || true
  done <<<"${AWAY:-}"
}

rolled_out() {
  local object namespace name limit
  limit=$(for_nodes 230)
  for object in $DEPLOYMENTS; do
    namespace=${object%%/*} name=${object#*/}
    if [[ -n ${AWAY:-} ]]; then
      wait_for "$limit" "$name in namespace $namespace rolled out on nodes that are there" \
        runs_here "$namespace" "$name"
      continue
    fi
    timeout "$((limit + 10))" kubectl --kubeconfig /etc/kubernetes/admin.conf -n "$namespace" rollout status "$name" \
      --timeout "${limit}s" >"$STATE/gate.log" 2>&1 ||
      die "$name in namespace $namespace is not rolled out: $(tail -n 2 "$STATE/gate.log")" \
        "kubectl -n $namespace describe pods; kubectl -n $namespace logs $name"
  done
}

# kubectl would wait for pods on machines that are silent.
# shellcheck disable=SC2016 # of jq
runs_here() { # runs_here NAMESPACE KIND/NAME
  local found
  see_who_is_there || return 1
  found=$(kubectl_admin -n "$1" get "$2" -o json) || return 1
  jq -e --argjson away "$(rows_in "$AWAY")" '
    .status as $is | (if .kind == "DaemonSet" then
      [$is.desiredNumberScheduled, $is.updatedNumberScheduled, $is.numberAvailable]
    else [.spec.replicas, $is.updatedReplicas, $is.availableReplicas] end | map(. // 0)) as [$all, $new, $run]
    | (.status.observedGeneration // 0) >= .metadata.generation and $run >= ([$all - $away, ([$all, 1] | min)] | max)
    and $new >= (if .kind == "DaemonSet" then $all - $away else $all end)' <<<"$found" >/dev/null || {
    jq -c '.status | del(.conditions)' <<<"$found"
    return 1
  }
}

# Of this stack's nodes alone (OURS): what somebody else has joined may be half made, and nobody waits for it here.
# Lines "node pod its-address the-node's-address".
test_pods() {
  local rows
  rows=$(kubectl_admin -n "$NAMESPACE" get pods -l "app=$NAME" --field-selector status.phase=Running -o json)
  # By a file: names of thousands of nodes are longer than an argument may be.
  jq -r --rawfile ours <(printf '%s' "$OURS") "$CLEAN"'
    (reduce ($ours | split("\n")[]) as $name ({}; .[$name] = true)) as $ours | .items[]
    | [(.spec.nodeName, .metadata.name | only("[a-z0-9]([a-z0-9.-]*[a-z0-9])?")),
    (.status.podIP, .status.hostIP | ipv4)]
    | select(index("") == null and $ours[.[0]]) | join(" ")' <<<"$rows" | sort
}
all_pods_run() {
  see_who_is_there
  [[ $(test_pods | wc -l) == "$HERE" ]] || {
    kubectl_admin -n "$NAMESPACE" get pods -o wide --no-headers
    return 1
  }
}

dial() { # dial POD WHAT HOST PORT: from that pod to that address
  local answer proxy=http://localhost/api/v1/namespaces/$NAMESPACE/pods/$1:$PORT/proxy
  answer=$(curl -sS --max-time 12 --unix-socket "$SOCKET" \
    "$proxy/dial?host=$3&port=$4&protocol=http&request=hostname&tries=1" 2>&1)
  [[ $answer == *'"responses":["'* ]] || {
    printf '%s -> %s (%s:%s): %s\n' "$1" "$2" "$3" "$4" "${answer:0:200}"
    return 1
  }
}

check_network() {
  local rows count i j service port host node pod target address table _
  wait_for "$(for_nodes 180)" "a running test pod on each of $NODES nodes" all_pods_run
  rows=$(test_pods)
  count=$(wc -l <<<"$rows")
  service=$(kubectl_admin -n "$NAMESPACE" get service "$NAME" -o 'jsonpath={.spec.clusterIP}')
  port=$(kubectl_admin -n "$NAMESPACE" get service "$NAME" -o 'jsonpath={.spec.ports[0].nodePort}')
  mapfile -t table <<<"$rows"
  for ((i = 0; i < count; i++)); do
    read -r node pod _ host <<<"${table[i]}"
    for ((j = 0; j <= REACH && j < count; j++)); do
      read -r target _ address _ <<<"${table[(i + j) % count]}"
      printf '%s %s %s %s\n' "$pod" "node:$node->pod-on:$target" "$address" "$PORT"
    done
    read -r target _ _ host <<<"${table[(i + 1) % count]}"
    printf '%s %s %s %s\n' "$pod" "node:$node->service" "$service" "$PORT"
    printf '%s %s %s %s\n' "$pod" "node:$node->dns" "$NAME.$NAMESPACE.svc.$DNS_DOMAIN" "$PORT"
    printf '%s %s %s %s\n' "$pod" "node:$node->nodeport-of:$target" "$host" "$port"
  done >"$STATE/gate.targets"
  count=$(wc -l <"$STATE/gate.targets")
  wait_for "$(for_nodes 90)" "every connection between nodes, pods and services" dial_all
  log "$count connections between pods, nodes and services work"
}
# What has answered once is not dialled again: of thousands of connections some fail by chance, others in every try.
dial_all() {
  local pid pids=() pod what host port left=$STATE/gate.left
  : >"$left"
  while read -r pod what host port; do
    { dial "$pod" "$what" "$host" "$port" || printf '%s %s %s %s\n' "$pod" "$what" "$host" "$port" >>"$left"; } &
    pids+=($!)
    if ((${#pids[@]} >= 12)); then
      for pid in "${pids[@]}"; do wait "$pid"; done
      pids=()
    fi
  done <"$STATE/gate.targets"
  for pid in "${pids[@]}"; do wait "$pid"; done
  mv -f "$left" "$STATE/gate.targets"
  [[ ! -s $STATE/gate.targets ]]
}

# By the cluster's own CA: what answers there is this cluster, under a name that its certificates know.
check_doors() {
  local door
  for door in ${DOORS:-}; do
    wait_for 60 "API ready at $door" curl -fsS --noproxy '*' --max-time 10 --cacert /etc/kubernetes/pki/ca.crt \
      -o /dev/null "https://$door/readyz"
  done
  if [[ -n ${DOORS:-} ]]; then log "the API answers at $DOORS"; fi
}

check_name() {
  # shellcheck disable=SC2034 # read by die
  local HINT="see that the private zone of that name belongs to this machine's network, and that the network's own"
  HINT+=" resolver is asked: resolvectl status; getent ahostsv4 ${API_NAME:-}"
  if [[ -n ${API_NAME:-} ]]; then wait_for 120 "$API_NAME pointing to $API_ADDRESSES" leads_there; fi
}

# A master that has just come may not be among its addresses yet; one that has gone must not.
leads_there() { # API_NAME points to some of API_ADDRESSES, and nowhere else
  local found address
  found=$(timeout 10 getent ahostsv4 "$API_NAME" | awk '{ print $1 }' | sort -u)
  if [[ -z $found ]]; then
    printf 'no address of it is known on %s\n' "$NODE"
    return 1
  fi
  for address in $found; do
    if [[ " $API_ADDRESSES " != *" $address "* ]]; then
      printf 'it points to %s too, where no client belongs\n' "$address"
      return 1
    fi
  done
}

# What kubelets serve with, and that API servers take it: logs, exec and port-forward need it. Those that have joined
# just now may still wait for it.
check_kubelets() {
  # shellcheck disable=SC2034 # read by die
  local HINT="on each master journalctl -u kube-ha-approver says which requests it does not approve, and why;"
  HINT+=" kubectl get csr; journalctl -u kubelet on the node; then run pulumi up again"
  if [[ ${SERVING_CERTIFICATES:-self-signed} == self-signed ]]; then return; fi
  # the one that signs: what another one signed would not outlive it
  openssl x509 -in /etc/kubernetes/pki/ca.crt >"$STATE/kubelets.ca"
  wait_for "$(for_nodes 150)" "a serving certificate of the cluster's CA on every kubelet" kubelets_known
  if [[ $SERVING_CERTIFICATES == verified ]]; then
    wait_for "$(for_nodes 60)" "every kubelet answering through an API server that checks its certificate" \
      kubelets_served
    wait_for 60 "the kubelet of $NODE answering through every API server" every_api_server_asks
  fi
  log "kubelets serve with certificates of the cluster's CA ($SERVING_CERTIFICATES)"
}
kubelets_known() {
  local found waiting
  see_who_is_there
  found=$(unknown_kubelets "$STATE/kubelets.ca" "$OURS")
  if [[ -z $found ]]; then return; fi
  waiting=$(kubectl_admin get csr --field-selector spec.signerName=kubernetes.io/kubelet-serving -o json |
    jq -r "$CLEAN"'[.items[] | select((.status.conditions // []) == [])
      | "\(.metadata.name | said(60)) of \(.spec.username | said(80))"] | .[0:5] | join(", ")') || waiting=unknown
  printf '%d without: %s; requests that wait: %s\n' "$(wc -l <<<"$found")" "$(head -n 5 <<<"$found" | paste -sd';')" \
    "$(cut -c 1-300 <<<"${waiting:-none}")"
  return 1
}
kubelets_served() {
  local names silent
  see_who_is_there
  names=$(read_nodes | of_names "$OURS") || return 1
  awk 'NF {print "url = \"http://localhost/api/v1/nodes/" $1 "/proxy/healthz\"\noutput = /dev/null"}' \
    <<<"$names" >"$STATE/kubelets.urls"
  # who is not among those that answered is asked for again
  timeout 300 curl -sS --globoff --parallel --parallel-max 20 --max-time 15 --unix-socket "$SOCKET" \
    -w '%{http_code} %{url_effective}\n' -K "$STATE/kubelets.urls" >"$STATE/kubelets.answers" 2>/dev/null || true
  silent=$(comm -23 <(sed -n 's/^url = "\(.*\)"$/\1/p' "$STATE/kubelets.urls" | sort) \
    <(awk '$1 == 200 {print $2}' "$STATE/kubelets.answers" | sort))
  if [[ -z $silent ]]; then return; fi
  printf '%d of %d do not, one says: %s\n' "$(wc -l <<<"$silent")" "$(wc -l <<<"$names")" \
    "$(curl -sS --max-time 15 --unix-socket "$SOCKET" "${silent%%$'\n'*}" 2>&1 | tr '\n' ' ' | cut -c 1-300)"
  return 1
}
every_api_server_asks() {
  local masters address
  masters=$(kubectl_admin -n default get endpointslices.discovery.k8s.io kubernetes \
    -o 'jsonpath={range .endpoints[*]}{range .addresses[*]}{@}{"\n"}{end}{end}') || return 1
  for address in $masters; do
    kubectl_admin --server "https://$address:6443" get --raw "/api/v1/nodes/$NODE/proxy/healthz" >/dev/null || return 1
  done
}

# Until then no pod is placed on a new node, CoreDNS neither.
check_initialized() {
  # shellcheck disable=SC2034 # read by die
  local HINT="see that the add-on with the cloud controller manager runs (kubectl get pods -A -o wide), tolerates this"
  HINT+=" taint, runs with hostNetwork and may ask the cloud (its log); then run pulumi up again"
  if [[ ${CLOUD_CONTROLLER:-} != external ]]; then return; fi
  wait_for 240 "every node initialised by a cloud controller manager" all_initialized
}
all_initialized() {
  local waiting
  waiting=$(read_nodes uninitialized | of_names "$OURS") || return 1
  waiting=$(awk -F'|' '$2 == "true" {printf "%s%s", sep, $1; sep = " "}' <<<"$waiting")
  if [[ -z $waiting ]]; then return; fi
  printf 'taint node.cloudprovider.kubernetes.io/uninitialized is still on %s\n' "$(cut -c 1-300 <<<"$waiting")"
  return 1
}

machine_ids() {
  local rows twice
  rows=$(read_nodes machine)
  twice=$(awk -F'|' '$2 != "" {of[$2] = of[$2] " " $1; count[$2]++}
    END {for (id in of) if (count[id] > 1) print id ":" of[id]}' <<<"$rows")
  [[ -z $twice ]] ||
    die "nodes share the machine-id $(head -n 5 <<<"$twice" | paste -sd';')" \
      "they were cloned: on one of them rm /etc/machine-id, systemd-machine-id-setup, reboot"
}

main() {
  # shellcheck disable=SC2034 # read by die
  HINT="kubectl get nodes; kubectl get pods -A -o wide;"
  HINT+=" journalctl -b -u kubelet -u containerd on the machine that is named"
  own
  trap cleanup EXIT
  wait_for 60 "API ready" kubectl_admin get --raw /readyz
  check_api
  check_doors
  check_name
  machine_ids
  read_record
  see_who_is_there
  if [[ $NETWORK == 1 || ${SERVING_CERTIFICATES:-} == verified ]]; then
    kubectl --kubeconfig /etc/kubernetes/admin.conf proxy --unix-socket "$SOCKET" >/dev/null 2>&1 8>&- 9>&- &
    proxy_pid=$!
  fi
  check_initialized
  check_kubelets
  if [[ $NETWORK == 1 ]]; then
    rolled_out
    log "API, controllers and add-ons work"
    wait_for 90 "namespace $NAMESPACE of an earlier check gone" no_namespace
    kubectl_admin apply -f - <<<"$MANIFEST" >/dev/null
    check_network
  fi
  # The update has come to its end; what retire.sh noted for another try of it says nothing about the next one.
  if [[ -n ${APPLIED:-} ]]; then
    kubectl_admin -n kube-system delete configmap kube-ha-incarnations --ignore-not-found >/dev/null
  fi
  log "the cluster works: $HERE nodes${AWAY:+; not asked: $(paste -sd' ' <<<"$AWAY")}"
}
no_namespace() {
  end_silent_pods
  [[ -z $(kubectl_admin get namespace "$NAMESPACE" --ignore-not-found -o name) ]]
}
