# shellcheck shell=bash
# Tells what the CIS benchmark asks of this machine, and changes nothing. `make cis` runs it over plain SSH;
# operations/cis/facts.py reads the lines: a word, its fields, tabs between. Texts are base64: they are somebody's
# words. No secret is read: of the encryption of Secrets the names of providers alone.
# Variables: PROCESSES (names as the kernel has them, of 15 characters at most), lists with a line each: PATHS (patterns
#   of the shell), TEXTS (files without secrets).
ENCRYPTION=$ROOT/etc/kubernetes/encryption.yaml
PROXY_METRICS=10249

say() { # say WORD FIELD...
  local IFS=$'\t'
  printf '%s\n' "$*"
}

# Flags as the process was started with them, whatever is in files by now.
processes() {
  local name pid
  for name in $PROCESSES; do
    # None is an answer.
    for pid in $(pgrep -x "$name" || true); do
      if [[ -r /proc/$pid/cmdline ]]; then say process "$name" "$(base64 -w 0 <"/proc/$pid/cmdline")"; fi
    done
  done
}

modes() {
  local pattern path mode owner
  while IFS= read -r pattern; do
    for path in $ROOT$pattern; do
      if [[ ! -e $path ]]; then continue; fi
      read -r mode owner < <(stat -L -c '%a %U:%G' -- "$path")
      say mode "$(base64 -w 0 <<<"${path#"$ROOT"}")" "$mode" "$owner"
    done
  done <<<"$PATHS"
}

texts() {
  local path
  while IFS= read -r path; do
    if [[ -n $path && -f $ROOT$path ]]; then say text "$path" "$(base64 -w 0 <"$ROOT$path")"; fi
  done <<<"$TEXTS"
}

# In their order: the first one encrypts.
providers() {
  if [[ ! -f $ENCRYPTION ]]; then return; fi
  say providers "$(sed -nE 's/^ *- *"?(aescbc|aesgcm|secretbox|kms|identity)"? *:.*/\1/p' "$ENCRYPTION" | xargs)"
}

proxy() { say proxy "$(ss -Hltn "sport = :$PROXY_METRICS" | awk '{print $4}' | xargs)"; }

main() {
  processes
  modes
  texts
  providers
  proxy
  say end
}
