#!/usr/bin/env bash
# shellcheck disable=SC2034 # approve.sh reads and sets what stands here, and this what that sets
# By what certificate requests are judged: only definitions, and nothing is asked of anybody but is_alive, which
# approve.sh has. Installed by phase master in front of approve.sh.
SERVING_SIGNER=kubernetes.io/kubelet-serving
JOINING_SIGNER=kubernetes.io/kube-apiserver-client-kubelet
declare -A address_of=() # by name, 8 hexadecimal digits
declare -A joins=()      # by name, who joins now
joiner=""                # the user that their token makes them
domain=""                # of the names that AWS's cloud controller manager gives nodes: ip-10-0-0-7.DOMAIN

# expand_addresses: lines "name digits" of the table. Lines of that: "a-[1-3],a-[7-9/2] 10.0.0.10+" (the number at the
# end of the name is added), "a-[1-3] 10.0:000b000c000d" (4 digits for each name, in their order) or "name 10.0.0.7".
expand_addresses() {
  awk '
    function hex(address, part) {
      split(address, part, ".")
      return sprintf("%02x%02x%02x%02x", part[1], part[2], part[3], part[4])
    }
    function plus(address, number, part, sum) {
      split(address, part, ".")
      sum = ((part[1] * 256 + part[2]) * 256 + part[3]) * 256 + part[4] + number
      return int(sum / 16777216) "." int(sum / 65536) % 256 "." int(sum / 256) % 256 "." sum % 256
    }
    function told(name, number) {
      if (rest != "") print name, start substr(rest, 4 * place++ + 1, 4)
      else print name, hex(plus(base, number))
    }
    NF == 2 && $2 !~ /[+:]/ {print $1, hex($2); next}
    NF == 2 {
      rest = ""; base = substr($2, 1, length($2) - 1)
      if (split($2, halves, ":") == 2) {
        rest = halves[2]; start = substr(hex(halves[1] ".0.0"), 1, 4); place = 0
      }
      count = split($1, parts, ",")
      for (i = 1; i <= count; i++) {
        if (match(parts[i], /\[[0-9]+-[0-9]+(\/[0-9]+)?\]$/)) {
          split(substr(parts[i], RSTART + 1, RLENGTH - 2), range, /[-\/]/)
          step = (range[3] > 0) ? range[3] : 1
          for (n = range[1] + 0; n <= range[2] + 0; n += step) told(substr(parts[i], 1, RSTART - 1) n, n)
        } else if (match(parts[i], /[0-9]+$/)) {
          told(parts[i], substr(parts[i], RSTART) + 0)
        }
      }
    }'
}

# What is in a request, as bytes in hexadecimal digits (DER, X.690). Both set made: to the bytes of a text, or to a
# value with what it was as content.
hex() {
  local i digits=""
  made=""
  for ((i = 0; i < ${#1}; i++)); do
    printf -v digits '%02x' "'${1:i:1}"
    made+=$digits
  done
}
wrap() { # wrap TAG...: from the inside out
  local tag size
  for tag in "$@"; do
    size=$((${#made} / 2))
    if ((size < 128)); then
      printf -v size '%02x' "$size"
    elif ((size < 256)); then
      printf -v size '81%02x' "$size"
    else
      printf -v size '82%04x' "$size"
    fi
    made=$tag$size$made
  done
}
attribute() { # attribute OID TEXT: one part of a subject, a PrintableString
  hex "$2"
  wrap 13
  made=0603$1$made
  wrap 30 31
}

# read_der DIGITS: sets tag, content and rest of the first value in it; fails where it is cut off.
read_der() {
  local size head=4
  tag=${1:0:2}
  [[ ${1:2:2} =~ ^[0-9a-f]{2}$ ]] || return 1
  size=$((16#${1:2:2}))
  if ((size == 0x81 || size == 0x82)); then
    head=$((4 + 2 * (size - 0x80)))
    [[ ${1:4:head-4} =~ ^[0-9a-f]+$ ]] || return 1
    size=$((16#${1:4:head-4}))
  elif ((size >= 0x80)); then
    return 1
  fi
  content=${1:head:2*size} rest=${1:head+2*size}
  ((${#content} == 2 * size))
}

# is_wanted DIGITS NAME [ADDRESS DNS-NAME]: the request is, byte for byte but for key and signature, what that node's
# kubelet asks for: this subject, this
# one DNS name and this one address, in this order, and nothing else; without them, a subject alone. Nothing has to be
# understood of what anybody else may have put into it.
is_wanted() {
  local tag content rest made subject names=a000 body
  attribute 55040a system:nodes
  subject=$made
  attribute 550403 "system:node:$2"
  made=$subject$made
  wrap 30
  subject=$made
  if (($# > 2)); then alternative_names "$3" "$4"; fi
  read_der "$1" || return 1
  [[ $tag == 30 && -z $rest ]] || return 1
  read_der "$content" || return 1
  [[ $tag == 30 && $content == "020100$subject"*"$names" ]] || return 1
  body=${content#"020100$subject"}
  read_der "${body%"$names"}" || return 1 # the public key, and nothing but it
  [[ $tag == 30 && -z $rest ]]
}
alternative_names() { # alternative_names ADDRESS DNS-NAME: sets names
  hex "$2"
  wrap 82
  names=$made made=$1
  wrap 87
  made=$names$made
  wrap 30 04
  made=0603551d11$made # subjectAltName
  wrap 30 30 31
  made=06092a864886f70d01090e$made # extensionRequest
  wrap 30 a0
  names=$made
}
# node_of DIGITS: the name of the node that a request seems to be of; whether it is, byte for byte, is_wanted says.
node_of() {
  local digits text="" i
  [[ $1 =~ 060355040313([0-7][0-9a-f])73797374656d3a6e6f64653a ]] || return 1 # system:node:
  digits=${1#*"${BASH_REMATCH[0]}"}
  digits=${digits:0:2*(16#${BASH_REMATCH[1]} - 12)}
  for ((i = 0; i < ${#digits}; i += 2)); do
    printf -v text '%s%b' "$text" "\\x${digits:i:2}"
  done
  [[ $text =~ ^[a-z0-9][a-z0-9.-]*$ ]] && printf '%s\n' "$text"
}

PEM_REQUEST=$'^-----BEGIN CERTIFICATE REQUEST-----\n([A-Za-z0-9+/=\n]+)\n-----END CERTIFICATE REQUEST-----\n*$'
# der_of BASE64-OF-PEM: exactly one request and nothing around it, for others may read another block of a text than the
# API does.
der_of() {
  local pem
  pem=$(base64 -d <<<"$1" 2>/dev/null | tr -d '\000\r' && echo .) || return 1
  pem=${pem%.}
  [[ $pem =~ $PEM_REQUEST ]] || return 1
  base64 -d <<<"${BASH_REMATCH[1]}" 2>/dev/null | od -An -v -tx1 | tr -d ' \n'
}

# judge SIGNER USER GROUP USAGES REQUEST: why not; empty: it may be approved
judge() {
  local digits
  if ! digits=$(der_of "$5"); then
    echo "not readable as a request"
  elif [[ $1 == "$JOINING_SIGNER" ]]; then
    judge_joining "$2" "$3" "$4" "$digits" "$5"
  else
    judge_serving "$2" "$3" "$4" "$digits" "$5"
  fi
}
judge_serving() { # judge_serving USER GROUP USAGES DIGITS REQUEST
  local node=${1#system:node:} address
  if [[ $2 != nodes || ! $1 =~ ^system:node:[a-z0-9.-]+$ ]]; then
    echo "asked for by somebody who is not a node"
    return
  fi
  address=${address_of[$node]:-}
  if [[ ! ,$3, =~ ^,digital\ signature,(key\ encipherment,)?server\ auth,$ ]]; then
    echo "for another use than serving: $3"
  elif [[ -z $address ]]; then
    echo "the stack's config has no such node in the cluster (ConfigMap kube-system/kube-ha-addresses)"
  elif ! is_wanted "$4" "$node" "$address" "$node" &&
    { [[ -z $domain ]] || ! is_wanted "$4" "$node" "$address" "$(cloud_name "$address")"; }; then
    printf 'asks for other names than %s and %d.%d.%d.%d: %s\n' "$node" "0x${address:0:2}" "0x${address:2:2}" \
      "0x${address:4:2}" "0x${address:6:2}" "$(asked_for "$5")"
  fi
}
judge_joining() { # judge_joining USER GROUP USAGES DIGITS REQUEST
  local node
  if [[ $2 != joiners || $1 != "$joiner" ]]; then
    echo "a node's identity, asked for by somebody who has no token of the stack to join by"
  elif [[ ! ,$3, =~ ^,client\ auth,digital\ signature,(key\ encipherment,)?$ ]]; then
    echo "for another use than that of a node's identity: $3"
  elif ! node=$(node_of "$4") || ! is_wanted "$4" "$node"; then
    echo "asks for something else than a node's identity: $(asked_for "$5")"
  elif [[ -z ${joins[$node]:-} ]]; then
    echo "$node does not join now (ConfigMap kube-system/kube-ha-joining);" \
      "to approve it by hand: kubectl certificate approve"
  else
    is_alive "$node"
  fi
}
cloud_name() { printf 'ip-%d-%d-%d-%d.%s' "0x${1:0:2}" "0x${1:2:2}" "0x${1:4:2}" "0x${1:6:2}" "$domain"; }
# For people alone.
asked_for() {
  local text
  text=$(base64 -d <<<"$1" 2>/dev/null | timeout 5 openssl req -noout -text 2>/dev/null | tr -cd '[:print:]\n' |
    awk '/Subject:|DNS:|IP Address:|URI:|email:/ {$1 = $1; printf "%s%s", sep, $0; sep = "; "}' | cut -c 1-200)
  printf '%s' "${text:-no names}"
}
