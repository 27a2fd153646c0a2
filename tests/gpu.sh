#!/usr/bin/env bash
# Runs the tests that need a GPU, then the benchmark, beside cuDNN and cuBLAS where there are any.
# Exits with 77 where there is no GPU.
#
#   bash tests/gpu.sh              installs what is missing and builds first
#   bash tests/gpu.sh --no-build   runs a build/ that may come from another machine, and needs
#                                  nothing but it, the driver and libnvrtc

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

if [[ ${1:-} == --no-build ]]; then
  [[ -x $build/src/kiln && -f $build/gpu_tests.txt ]] ||
    die "build/ holds no finished build: run tests/gpu.sh without --no-build"
else
  (($# == 0)) || die "usage: bash tests/gpu.sh [--no-build]"
  install_packages $(missing_build_packages) $(missing_test_packages)
  configure "$build" -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=ON
  compile "$build"
fi

if reason=$(no_gpu); then
  note "skipped: no GPU ($reason)"
  exit 77
fi

# A build from another machine names the library's old place.
export LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}

# One line of gpu_tests.txt is a name, a tab and a command. No CTest: it may be missing here.
failures=()
count=0
while IFS=$'\t' read -r name command; do
  say "$name"
  count=$((count + 1))
  bash -c "$command" </dev/null || failures+=("$name (exit $?)")
done <"$build/gpu_tests.txt"

for type in f32 f64; do
  for direction in fwd dgrad wgrad; do
    say "The paper's layers, $direction, in $type, against the reference"
    "$build/src/kiln" conv --dir "$direction" --device cuda --check --dt "$type" \
      --batch tests/problems/paper.txt || failures+=("kiln conv --dir $direction --dt $type")
  done
done

say "The benchmark"
"$build/src/kiln" bench --device cuda --against cudnn,cublas --csv "$build/bench.csv" \
  --json "$build/bench.json" || failures+=("kiln bench")
note "tests/bench/plot.py $build/bench.csv --out FOLDER draws it"

say "$count GPU test programs, ${#failures[@]} failures"
if ((${#failures[@]})); then
  printf '  FAILED: %s\n' "${failures[@]}"
  exit 1
fi
