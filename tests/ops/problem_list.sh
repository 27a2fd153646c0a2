#!/usr/bin/env bash
# Runs a list of problems through `kiln conv --check` in every type, layout and mode by turns.
#
#   problem_list.sh KILN DEVICE LIST TURNS
#
# Each problem runs TURNS times, each time in another of the 16 combinations: 4 turns are all four
# types, 16 everything. Problems are spread so that any number of turns meets every combination.
# Exits with 77 where DEVICE is cuda and there is no GPU.
set -euo pipefail
kiln=$1 device=$2 list=$3 turns=$4

if [[ $device == cuda ]] && ! "$kiln" conv --device cuda mb1ic4ih4oc4kh1 >/dev/null 2>&1; then
  echo "skipped: $("$kiln" conv --device cuda mb1ic4ih4oc4kh1 2>&1 | tail -1)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
types=(f32 f64 f16 bf16) layouts=(nchw nchw nhwc nhwc) modes=(xcorr conv xcorr conv)

# Combination 4 * (layout and mode) + type gets its lines in the file of that number.
grep -vE '^(#|--|$)' "$list" | awk -v turns="$turns" -v folder="$folder" '{
  for (t = 0; t < turns; ++t)
    print > (folder "/" 4 * ((int(NR / 4) + t + int(t / 4)) % 4) + (NR + t) % 4)
}'

run() {
  local index=$1
  "$kiln" conv --device "$device" --check --dt "${types[index % 4]}" \
    --layout "${layouts[index / 4]}" --mode "${modes[index / 4]}" --batch "$folder/$index" \
    >"$folder/$index.log" 2>&1 || touch "$folder/$index.failed"
  echo "${types[index % 4]} ${layouts[index / 4]} ${modes[index / 4]}: $(tail -1 "$folder/$index.log")"
  grep -v '^PASSED' "$folder/$index.log" | sed '$d' || true
}

running=0
for ((index = 0; index < 16; ++index)); do
  run "$index" &
  if ((++running >= $(nproc))); then
    wait -n
    running=$((running - 1))
  fi
done
wait
! compgen -G "$folder/*.failed" >/dev/null
