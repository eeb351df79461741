# shellcheck shell=bash
# How this machine sees the API: which masters its HAProxy reaches, and whether it has the virtual IP. Only definitions;
# probe.sh tells it to who asks, metrics.sh to Prometheus.

# A line "server state" for each master; what HAProxy's socket says where there is no answer, and status 1.
haproxy_servers() {
  local answer
  answer=$(timeout 5 socat -t 3 - UNIX-CONNECT:/run/haproxy/admin.sock <<<"show stat" 2>&1) || {
    printf '%s\n' "$answer"
    return 1
  }
  awk -F, '$1 == "kubernetes-api" && $2 !~ /^(FRONTEND|BACKEND)$|-unchecked$/ {print $2, $18}' <<<"$answer"
}

# has_address IPV4: 1 or 0, as it is just now
has_address() {
  local has=0
  if [[ $(ip -o -4 addr show) == *" $1/"* ]]; then has=1; fi
  printf '%s\n' "$has"
}
