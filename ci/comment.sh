#!/usr/bin/env bash
# The preview of a stack as the one comment on a pull request that tells of this stack.
#   ci/comment.sh body STACK FOLDER        prints it; FOLDER is a report of `make preview`, .local/preview/STACK
# ci/comment.sh post STACK FOLDER PULL   puts it on pull request PULL: edits the comment of an earlier run, else makes
# one Takes from the environment: GITHUB_REPOSITORY (owner/name) and GH_TOKEN, for post; COMMIT, RUN_URL and ARTIFACT
# (which holds the whole report) are told where they are set; COMMENT_AUTHOR is who posts, github-actions[bot] if not
# said.
set -euo pipefail
shopt -s inherit_errexit

LIMIT=60000       # bytes of a report: GitHub takes 65,536 characters, and what stands around it needs some too
PLAN_LIMIT=25000  # of these, so that a long plan leaves room for the diff
NOTES_LIMIT=10000 # the same for what the engine says beside the diff

die() { # die WHAT DO
  printf 'ERROR comment: %s\n  do: %s\n' "$1" "$2" >&2
  exit 1
}

# What the report says to `plan`, `preview` or `steps`; nothing where there is no report.
state_of() { # state_of WORD
  if [[ -f $folder/status ]]; then sed -n "s/^$1 //p" "$folder/status"; fi
}

# Whole lines of a file up to so many bytes; how many are left goes to $work/left. A cut in Markdown closes what is open
# there, or the rest of the comment would become part of it.
shorten() { # shorten FILE BYTES [markdown]
  rm -f "$work/left"
  LC_ALL=C awk -v limit="$2" -v left="$work/left" -v markdown="${3:-}" '
    { size += length($0) + 1 }
    size > limit { lines++; next }
    { print }
    match($0, /^ *```+/) {
      marks = substr($0, RSTART, RLENGTH)
      gsub(/ /, "", marks)
      if (fence == "") fence = marks
      else if (length(marks) >= length(fence)) fence = ""
      next
    }
    fence == "" && /<details>/ { open++ }
    fence == "" && /<\/details>/ { open-- }
    END {
      if (!lines) exit
      print lines >left
      if (!markdown) exit
      if (fence != "") print fence
      while (open-- > 0) print "\n</details>"
    }' "$1"
}

note_of_cut() { # note_of_cut, after shorten
  local whole='the log of this run'
  if [[ ! -f $work/left ]]; then return; fi
  if [[ -n ${ARTIFACT:-} ]]; then whole="artifact \`$ARTIFACT\`"; fi
  if [[ -n ${RUN_URL:-} ]]; then whole="$whole ([run]($RUN_URL))"; fi
  printf '\n*%s more lines, left out here: the whole text is in %s.*\n' "$(<"$work/left")" "$whole"
}

# A code block that its text cannot end: the fence is longer than any run of backticks in it.
block() { # block LANGUAGE FILE BYTES
  local fence
  fence=$(grep -o '`\{3,\}' "$2" | sort | tail -n 1 || true) # none is not an error
  fence=${fence:-\`\`}\`
  printf '\n%s%s\n' "$fence" "$1"
  shorten "$2" "$3"
  printf '%s\n' "$fence"
  note_of_cut
}

headline() {
  case $(state_of plan)/$(state_of preview) in
    /) echo 'the preview was interrupted before it could tell anything' ;;
    refused/*) echo 'the plan is refused' ;;
    */refused) echo 'the preview is refused' ;;
    */none) echo 'plan only, the engine was not asked' ;;
    *) state_of steps ;;
  esac
}

plan_part() {
  case $(state_of plan) in
    good)
      shorten "$folder/plan.md" "$PLAN_LIMIT" markdown
      note_of_cut
      ;;
    refused)
      shorten "$folder/plan.md" "$LIMIT" markdown
      note_of_cut
      ;;
    *) printf 'What went wrong is in the log%s.\n' "${RUN_URL:+ of [the run]($RUN_URL)}" ;;
  esac
}

preview_part() { # preview_part BYTES
  case $(state_of preview) in
    good)
      printf '\n<details><summary><code>pulumi preview --diff</code>: %s</summary>\n' "$(state_of steps)"
      block diff "$folder/preview.txt" "$(($1 - NOTES_LIMIT))"
      if [[ -s $folder/problems.txt ]]; then block text "$folder/problems.txt" "$NOTES_LIMIT"; fi
      printf "\n</details>\n\nWhat an approval is given to has digest \`%s\`.\n" "$(<"$folder/digest")"
      ;;
    refused) block text "$folder/problems.txt" "$1" ;;
  esac
}

body() {
  local plan
  printf "%s\n### Stack \`%s\`: %s\n\n" "$marker" "$stack" "$(headline)"
  if [[ -n ${COMMIT:-} ]]; then printf 'Of commit %s%s.\n\n' "$COMMIT" "${RUN_URL:+, in [this run]($RUN_URL)}"; fi
  if [[ -s $work/program ]]; then
    printf \
      '> [!WARNING]\n> This pull request changes the program that wrote this plan: read %s of its files first.\n\n' \
      "$(wc -l <"$work/program")"
    printf "Changed: \`%s\`.\n\n" "$(head -n 5 "$work/program" | paste -sd' ')"
  fi
  plan=$(plan_part)
  printf '%s\n' "$plan"
  preview_part "$((LIMIT - $(LC_ALL=C wc -c <<<"$plan")))"
}

# The first comment of kube-ha that begins with the marker. Somebody else's that does is theirs.
existing() {
  local author=${COMMENT_AUTHOR:-github-actions[bot]}
  gh api --paginate "repos/$GITHUB_REPOSITORY/issues/$pull/comments?per_page=100" --jq \
    ".[] | select(.user.login == \"$author\") | select(.body | startswith(\"$marker\")) | .id" |
    sed -n 1p
}

# Files of the pull request that take part in planning: its own code has written the report, and could have written
# anything. Names are printed as code.
PROGRAM='^(__main__\.py|Makefile|Pulumi\.yaml|\.pulumi\.version|requirements[^/]*\.txt'
PROGRAM+='|(artifacts|ci|components|lab|operations|stacks|toolchain|\.github)/)'
changed_program() {
  gh api --paginate "repos/$GITHUB_REPOSITORY/pulls/$pull/files?per_page=100" --jq '.[].filename' |
    grep -E "$PROGRAM" | LC_ALL=C tr -dc 'A-Za-z0-9_./\n-' || true # none is not an error
}

post() {
  local id
  [[ -n ${GITHUB_REPOSITORY:-} ]] || die "GITHUB_REPOSITORY is not set" "GITHUB_REPOSITORY=owner/name $0 ..."
  [[ $pull =~ ^[0-9]+$ ]] || die "'$pull' is not a number of a pull request" "$0 post STACK FOLDER NUMBER"
  changed_program >"$work/program"
  body >"$work/body"
  id=$(existing)
  if [[ -n $id ]]; then
    gh api --silent --method PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$id" -F "body=@$work/body"
    echo "comment $id of stack $stack edited"
  else
    gh api --silent --method POST "repos/$GITHUB_REPOSITORY/issues/$pull/comments" -F "body=@$work/body"
    echo "comment of stack $stack made"
  fi
}

verb=${1:-} stack=${2:-} folder=${3:-} pull=${4:-}
# It becomes part of the marker and of a jq program.
[[ $stack =~ ^[A-Za-z0-9][A-Za-z0-9_.-]*$ ]] ||
  die "'$stack' is not a name of a stack" "$0 body|post STACK FOLDER [PULL]"
marker="<!-- kube-ha preview of stack $stack -->"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case $verb in
  body | post) "$verb" ;;
  *) die "unknown verb '$verb'" "$0 body|post STACK FOLDER [PULL]" ;;
esac
