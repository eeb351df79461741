# shellcheck shell=bash
# Downloads: fetched, verified by their SHA-256, put in place once, and known again. Only definitions.

# published_sum FILE-NAME URL: the SHA-256 that upstream publishes, in a file of `sum` or `sum  name` lines.
published_sum() {
  local text redirects=()
  # A redirect must not lead from https to where anybody can change the answer.
  if [[ $2 == https:* ]]; then redirects=(--proto-redir "=https"); fi
  text=$(curl -fsSL --proto '=https,http' "${redirects[@]}" --connect-timeout 10 --retry 4 --retry-connrefused \
    --max-time 60 "$2") || die "cannot download the checksum $2" "see that $NODE reaches that address, or set a mirror"
  awk -v name="$1" '{sub(/^\*/, "", $2); sub(/.*\//, "", $2)}
    length($1) == 64 && $1 ~ /^[0-9a-f]+$/ && ($2 == "" || $2 == name) {print $1; exit}' <<<"$text"
}

# fetch URL SUM PATH: make PATH the verified download. SUM is a SHA-256, or published:<url>.
fetch() {
  local url=$1 sum=$2 path=$3 answer is redirects=()
  if [[ $url == https:* ]]; then redirects=(--proto-redir "=https"); fi
  if [[ $sum == published:* ]]; then
    sum=$(published_sum "${url##*/}" "${sum#published:}")
    [[ -n $sum ]] || die "no SHA-256 of ${url##*/} in ${2#published:}" "report the address, or set a mirror"
  fi
  mkdir -p "${path%/*}"
  answer=$(curl -fsSL --proto '=http,https' "${redirects[@]}" --connect-timeout 10 --retry 4 --retry-delay 1 \
    --retry-connrefused --max-time 900 -o "$path.part" "$url" 2>&1) || not_fetched $? "$url" "$path" "$answer"
  is=$(sha256sum <"$path.part")
  [[ ${is%% *} == "$sum" ]] ||
    die "$url has sha256 ${is%% *}, wanted $sum" \
      "do not use this file: find out who changed it, or make the bundle again"
  mv -f "$path.part" "$path"
}

not_fetched() { # not_fetched STATUS URL PATH ANSWER
  local todo="see that $NODE reaches that address (mirror, proxy, firewall), then run pulumi up again"
  # 23: what came could not be written.
  if (($1 == 23)); then
    todo="make room in ${3%/*} ($(df -h --output=avail "${3%/*}" 2>/dev/null | tail -n 1 |
      xargs) left), then run pulumi up again"
  fi
  die "cannot download $2: $4" "$todo"
}

# installed NAME SUM: is this very artefact in place, as it was put there?
installed() { [[ -f $STATE/$1.artefact && $(<"$STATE/$1.artefact") == "$2" ]] && untouched "$1"; }
# untouched NAME: sizes and times are those of the installation; a hash of every binary in every run would take seconds.
untouched() {
  local mark=$STATE/$1.files paths is
  if [[ ! -f $mark ]]; then return; fi # installed by a version that kept none
  mapfile -t paths < <(cut -d' ' -f3- "$mark")
  is=$(stat -c '%s %.Y %n' -- "${paths[@]}" 2>&1) || true # a file that is gone is an answer
  [[ $is == "$(<"$mark")" ]]
}
# mark_installed NAME SUM FILE...: after the last FILE is in place. The unit of that name may still run what was there
# before.
mark_installed() {
  local name=$1 sum=$2 stamps
  shift 2
  stamps=$(stat -c '%s %.Y %n' -- "$@")
  rm -f "$STATE/$name.service.sum"
  put 644 "$STATE/$name.files" <<<"$stamps"
  put 644 "$STATE/$name.artefact" <<<"$sum"
}

# install_binary NAME URL SHA256 TARGET: one file, swapped in whole while an old one may run.
install_binary() {
  if installed "$1" "$3"; then return; fi
  fetch "$2" "$3" "$4.new"
  chmod 755 "$4.new"
  mv -f "$4.new" "$4"
  sync -f "$4" # before the mark that says that it is there
  mark_installed "$1" "$3" "$4"
}

# install_archive NAME URL SHA256 FOLDER STRIP MEMBER...: members of a tarball into FOLDER.
install_archive() {
  local name=$1 url=$2 sum=$3 folder=$4 strip=$5 path=$HOME_DIR/cache/$1 listed files=()
  shift 5
  if installed "$name" "$sum"; then return; fi
  fetch "$url" "$sum" "$path"
  mkdir -p "$folder"
  # tar writes each file as a new one and never writes into the old one, which may be running (--unlink-first would do
  # the same, and fail at folders that are not empty). Files get the time of now: that of the archive says nothing.
  listed=$(tar -xzvf "$path" -C "$folder" --no-same-owner --touch --show-transformed-names \
    --strip-components="$strip" "$@")
  rm -f "$path"
  mapfile -t files < <(awk -v folder="$folder" '!/\/$/ {print folder "/" $0}' <<<"$listed")
  sync -f "$folder"
  mark_installed "$name" "$sum" "${files[@]}"
}
