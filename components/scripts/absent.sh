# shellcheck shell=bash
# Whom nobody waits for: nodes that the config calls absent, and those that are unresponsive and may be. Only
# definitions; phases source it, with membership.sh and cluster-reader.sh.
# Variables: ABSENT (names as a-[1-3]; may be unset), MAINTENANCE (the same), CONTROL_PLANE (the same, of all masters),
#   ABSENT_BUDGET (how many workers may be unresponsive besides), WANTED (lines "pool applied names"; empty: of any
#   state).

# Wanted nodes that are unresponsive, and were as wanted when they were last heard of: whoever has something to apply is
# waited for. One a line.
silent_nodes() { # silent_nodes TABLE: what cluster_table says
  awk -F'|' -v any="${WANTED:+no}" "$NODE_ROWS"'
    any == "" && $3 == "Unknown" {print $1}
    END {
      for (name in want)
        if (ready[name] == "Unknown" && begun[name] == "" && applied[name] == want[name]) print name
    }' <(wanted_table) <(printf '%s\n' "$1") | awk NF | sort
}
# Of these, who may be: in maintenance; as many workers as the budget allows; masters while most of them are there.
left_out() { # left_out TABLE
  local silent rest masters workers
  silent=$(silent_nodes "$1")
  rest=$(comm -23 <(printf '%s\n' "$silent") <(sorted_names "${MAINTENANCE:-}"))
  comm -12 <(printf '%s\n' "$silent") <(sorted_names "${MAINTENANCE:-}") | awk NF
  masters=$(comm -12 <(printf '%s\n' "$rest") <(sorted_names "${CONTROL_PLANE:-}"))
  workers=$(comm -23 <(printf '%s\n' "$rest") <(sorted_names "${CONTROL_PLANE:-}"))
  if (($(rows_in "$masters") * 2 < $(rows_in "$(sorted_names "${CONTROL_PLANE:-}")"))); then awk NF <<<"$masters"; fi
  if (($(rows_in "$workers") <= ${ABSENT_BUDGET:-0})); then awk NF <<<"$workers"; fi
}
# Rows of what is wanted, without those that are left out.
waited_for() { # waited_for TABLE
  awk 'FILENAME == ARGV[1] {out[$1]; next} !($1 in out)' <(left_out "$1") <(wanted_table)
}
absent_names() { sorted_names "${ABSENT:-}"; }
sorted_names() { expand "$1" | awk NF | sort; }
rows_in() { awk NF <<<"$1" | wc -l; }
