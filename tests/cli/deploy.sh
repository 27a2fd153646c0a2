#!/usr/bin/env bash
# Kernels made from a device's description alone are those that the device asks for: every problem
# below is planned in strict mode, with an empty cache, from a bundle made beforehand.
#
#   deploy.sh KILN DEVICE
#
# Exits with 77 where DEVICE is cuda and there is no GPU.
set -euo pipefail
kiln=$1 device=$2

if [[ $device == cuda ]] && ! "$kiln" act --device cuda 1x1x1 >/dev/null 2>&1; then
  echo "skipped: $("$kiln" act --device cuda 1x1x1 2>&1 | tail -1)"
  exit 77
fi

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset KILN_BUNDLE_PATH KILN_CACHE KILN_RECORD
export KILN_CACHE_DIR=$folder/cache
cat >"$folder/manifest" <<'END'
conv mb2_ic16ih14oc24kh3ph1
conv --dir wgrad mb8_ic16ih14oc24kh3ph1
conv --dt f64 --dir dgrad mb2_ic8ih14oc24kh3ph1
pool --dir bwd ic4ih8kh2sh2ph0
act --act gelu_tanh --dt f16 2x3x4x4
softmax 2x1000x1x1
softmax --dir bwd --layout nhwc 2x16x3x11
softmax 1x20000x2x2
tensor --op reduce_sum 8x16x14x14:1x16x1x1
tensor --op reduce_max 5x7x7x17:1x7x1x17
tensor --layout nchw:nhwc --dt f32:f16 2x8x9x9
END

make_bundle() { "$kiln" prewarm "$folder/manifest" "$@" --bundle "$folder/bundle" | tail -2; }
if [[ $device == host ]]; then
  make_bundle --arch host
else
  "$kiln" info --describe-device >"$folder/chip.json"
  make_bundle --device "$folder/chip.json"
  # The architecture's own chip, where that is the one here, asks for the very same kernels.
  field() { sed -n "s/^ *\"$1\": \"*\([^\",]*\)\"*,*$/\1/p"; }
  arch=$(field architecture <"$folder/chip.json")
  if [[ $(field multiprocessors <"$folder/chip.json") == \
    $("$kiln" info --describe-device "$arch" | field multiprocessors) ]]; then
    known=$("$kiln" prewarm "$folder/manifest" --arch "$arch" | tail -1)
    echo "$arch: $known"
    [[ $known == "0 compiled"* ]]
  fi
fi

export KILN_CACHE_DIR=$folder/empty KILN_CACHE=strict KILN_BUNDLE_PATH=$folder/bundle
count=0
while read -r command line; do
  # shellcheck disable=SC2086 # flags are words of their own
  out=$("$kiln" "$command" --device "$device" --check --json $line 2>&1) &&
    [[ $out == *'"kernel_source":"bundle"'* ]] || {
    echo "$command $line: $out"
    exit 1
  }
  count=$((count + 1))
done <"$folder/manifest"
[[ ! -e $folder/empty ]]
echo "$count problems, every kernel from the bundle"
