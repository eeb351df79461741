# shellcheck shell=bash
# The one reader of what others may write into the API. A kubelet writes what it likes into its own Node (annotations,
# conditions, versions, addresses: all of it free text to the API server), whoever makes pods or objects into those: it
# is data, taken from JSON field by field, each by the form that it has to have. What has another form is told as
# nothing. So no row, no field and no word of a command line is of their making. Only definitions; phases source it.

# \z and not $, which jq takes for the end of a line too.
# shellcheck disable=SC2016,SC2034 # of jq; the second: read by those who source this
CLEAN='
  def only($form): if type == "string" and length <= 512 and test("\\A(?:" + $form + ")\\z") then . else "" end;
  def said($most): if type == "string" then .[0:4 * $most]
  | [explode[] | if . < 32 then 32 else . end | select(. < 127)] | implode | gsub("\\|"; "/") | gsub("##\\["; "# [")
  | gsub("  +"; " ") | .[0:$most] else "" end;
  def whole: if type == "number" then [[floor, 0] | max, 2000000000] | min else 0 end;
  def version: only("([a-z]+://)?v?[0-9]{1,4}[.][0-9]{1,4}[.][0-9]{1,4}[0-9A-Za-z.+~-]{0,40}");
  def ipv4: only("([0-9]{1,3}[.]){3}[0-9]{1,3}");
  def dns_label: only("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?");'

# shellcheck disable=SC2016 # of jq
NODE_FIELD='
  def mark($key): .metadata.annotations["kube-ha.io/" + $key]?;
  def field($name):
    if $name == "applied" or $name == "begun" then mark($name) | only("[0-9a-f]{16}")
    elif $name == "failed" then mark("failed")
    | if type == "string" and (.[0:17] | test("\\A[0-9a-f]{16} \\z")) then .[0:17] + (.[17:] | said(240)) else "" end
    elif $name == "ready" then [.status.conditions[]? | select(.type == "Ready").status
    | only("True|False|Unknown")][0] // ""
    elif $name == "cordoned" then .spec.unschedulable == true | if . then "true" else "" end
    elif $name == "leaving" then mark($name) | only("true")
    elif $name == "maintenance" then mark($name) | only("true|cordoned-before")
    elif $name == "kept" then mark($name) | only("[1-9][0-9]{0,8}")
    elif $name == "drain" then mark($name) | only("(auto|always|never) (0|[1-9][0-9]{0,4}) (-|0|[1-9][0-9]{0,4})")
    elif $name == "os" then mark($name) | only("[A-Za-z0-9._-]{1,64}")
    elif $name == "kubelet" then .status.nodeInfo.kubeletVersion? | version
    elif $name == "runtime" then .status.nodeInfo.containerRuntimeVersion? | version
    elif $name == "machine" then .status.nodeInfo.machineID? | only("[0-9A-Fa-f-]{1,64}")
    elif $name == "address" then [.status.addresses[]? | select(.type == "InternalIP").address | ipv4
    | select(. != "")][0] // ""
    elif $name == "uninitialized" then any(.spec.taints[]?; .key == "node.cloudprovider.kubernetes.io/uninitialized")
    | if . then "true" else "" end
    else error("no field " + $name) end;'

# of_names NAMES: of such rows on stdin, those of these names, one a line.
of_names() { awk -F'|' 'FILENAME == ARGV[1] {named[$1]; next} $1 in named' <(printf '%s\n' "$1") -; }
# read_nodes FIELD...: a row "name|field|..." for each Node, by name. Fails where the API does not answer.
read_nodes() { nodes_json | node_rows "$@"; }
# readiness NODE: "name|True"; nothing where there is none
readiness() { kubectl_admin get --ignore-not-found -o json -- node "$1" | node_rows ready; }
nodes_json() { kubectl_admin get nodes -o json; }
node_rows() { # node_rows FIELD...: of a list of Nodes, or one, on stdin
  jq -r --arg fields "$*" "$CLEAN $NODE_FIELD"'
    ($fields | split(" ")) as $fields | if .items then .items[] else . end
    | . as $node | .metadata.name | only("[a-z0-9]([a-z0-9.-]*[a-z0-9])?") | select(. != "")
    | [., ($fields[] as $name | $node | field($name))] | join("|")' | sort -t '|' -k 1,1
}

expand() { # expand a-[1-3],b-[2-8/3],c: one name a line
  local part parts prefix from to step
  IFS=', ' read -ra parts <<<"$1" # not an unquoted loop: [1-3] is a pattern that a file could match
  for part in "${parts[@]}"; do
    if [[ $part =~ ^(.*)\[([0-9]+)-([0-9]+)(/([0-9]+))?\]$ ]]; then
      prefix=${BASH_REMATCH[1]} from=${BASH_REMATCH[2]} to=${BASH_REMATCH[3]} step=${BASH_REMATCH[5]:-1}
      seq -f "$prefix%.0f" "$from" "$step" "$to"
    else
      printf '%s\n' "$part"
    fi
  done
}
