# shellcheck shell=bash
# How the kubelets of the cluster are asked for what they serve with: what gate.sh and master.sh share. Only
# definitions; they source it, and cluster-reader.sh. Runs on a master.

# unknown_kubelets CA [NAMES]: of all nodes, or of these, one a line: lines "node (why)" of those that do not serve with
# a certificate of CA for their address: "does not answer" where nothing is known of it. All at once, as many as that
# may be; a kubelet that does not know who asks answers 401, and that is an answer.
unknown_kubelets() {
  local rows
  rows=$(read_nodes address) || {
    echo "the API (does not answer)"
    return
  }
  if [[ -n ${2:-} ]]; then rows=$(of_names "$2" <<<"$rows"); fi
  awk -F'|' \
    '$2 != "" {print "url = \"https://" $2 ":10250/healthz\"\noutput = /dev/null"}' <<<"$rows" >"$STATE/kubelets.urls"
  # each line tells its own
  timeout 300 curl -sS --globoff --parallel --parallel-max 50 --noproxy '*' --connect-timeout 5 --max-time 10 \
    --cacert "$1" -w '%{url_effective}\t%{http_code}\t%{exitcode}\t%{errormsg}\n' \
    -K "$STATE/kubelets.urls" >"$STATE/kubelets.answers" 2>/dev/null || true
  awk -F '\t' '
    FILENAME == ARGV[1] {split($1, part, /[\/:]+/); code[part[2]] = $2; status[part[2]] = $3; why[part[2]] = $4; next}
    {
      split($0, row, "|")
      if (row[2] == "") print row[1] " (does not answer: its Node names no address)"
      else if (!(row[2] in code)) print row[1] " (does not answer at " row[2] ")"
      else if (code[row[2]] == "000" && status[row[2]] ~ /^(5|6|7|28)$/)
        print row[1] " (does not answer at " row[2] ": " why[row[2]] ")"
      else if (code[row[2]] == "000") print row[1] " (" why[row[2]] ")"
    }' "$STATE/kubelets.answers" - <<<"$rows"
}
