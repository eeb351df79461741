# shellcheck shell=bash
# What applying objects of add-ons would change, by an API server's own word. Only definitions; phases source it.

# differing MANAGER KUBECTL-WORD...: of manifests that the words name (stdin may be one), lines "differs" or "missing"
# and the object, as kubectl names it (GROUP.VERSION.KIND.NAMESPACE.NAME), or "trouble" and what kubectl said, with tabs
# between.
differing() {
  local answer status=0
  # What it compares is in files meanwhile: in memory, and no list of kinds is kept.
  answer=$(TMPDIR=/dev/shm KUBECTL_EXTERNAL_DIFF="diff -U0 -N" timeout 60 kubectl \
    --kubeconfig /etc/kubernetes/admin.conf --cache-dir /dev/null/none --request-timeout 30s diff --server-side \
    --force-conflicts --field-manager "$1" "${@:2}" 2>&1) || status=$?
  # One hunk or more of each object that differs; of one that is not there nothing is before it.
  awk '/^diff / {name = $0; sub(/.*\//, "", name); next}
    /^@@ / && name != "" {print ($2 == "-0,0" ? "missing" : "differs") "\t" name; name = ""}' <<<"$answer"
  if ((status > 1)); then printf 'trouble\t%s\n' "$(tail -n 1 <<<"$answer" | cut -c1-300)"; fi
}
