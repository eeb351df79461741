# shellcheck shell=bash
# Waits until a load balancer points to an API server that is ready; changes nothing, and takes no lock: it may wait for
# minutes, and others have work to do on this machine. Values: DOORS (words "host:port" of its addresses), LIMIT
# (seconds for each). Runs on a master.
main() {
  local door
  # shellcheck disable=SC2034 # read by die
  HINT="see that the load balancer has every master as a target, and that its health check reaches port 6443 of them"
  end_unheard
  for door in $DOORS; do
    wait_for "$LIMIT" "API ready at $door" curl -fsS --noproxy '*' --max-time 10 --cacert /etc/kubernetes/pki/ca.crt \
      -o /dev/null "https://$door/readyz"
  done
  log "the load balancer serves at $DOORS"
}
