#!/usr/bin/env bash
# Runs lists of problems whose lines carry their own flags, each through its command's --check.
#
#   line_list.sh KILN DEVICE COMMAND:LIST...
#
# Exits with 77 where DEVICE is cuda and there is no GPU.
set -euo pipefail
kiln=$1 device=$2
shift 2

if [[ $device == cuda ]] && ! "$kiln" act --device cuda 1x1x1 >/dev/null 2>&1; then
  echo "skipped: $("$kiln" act --device cuda 1x1x1 2>&1 | tail -1)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

run() {
  local command=${1%%:*} list=${1#*:} log
  log=$folder/$(basename "$list").log
  "$kiln" "$command" --device "$device" --check --batch "$list" >"$log" 2>&1 || touch "$log.failed"
  echo "$command $(basename "$list"): $(tail -1 "$log")"
  grep -v '^PASSED' "$log" | sed '$d' || true
}

running=0
for item in "$@"; do
  run "$item" &
  if ((++running >= $(nproc))); then
    wait -n
    running=$((running - 1))
  fi
done
wait
! compgen -G "$folder/*.failed" >/dev/null
