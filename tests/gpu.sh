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

# Most of a test's time goes into compiling, so they run beside each other; the benchmark runs alone.
logs=$build/gpu-logs
rm -rf "$logs"
mkdir -p "$logs"
# run_test NAME COMMAND: its output in logs/NAME.log, what became of it in a line, and a file
# logs/NAME.failed if it did.
run_test() {
  local status=0 start=$SECONDS
  bash -c "$2" </dev/null >"$logs/$1.log" 2>&1 || status=$?
  if ((status)); then
    echo "exit $status" >"$logs/$1.failed"
    printf '%s\n' "FAILED $1 (exit $status, $((SECONDS - start)) s)" "$(<"$logs/$1.log")"
  else
    note "passed $1 ($((SECONDS - start)) s)"
  fi
}
# One line of gpu_tests.txt is a name, a tab and a command. No CTest: it may be missing here.
tests() {
  cat "$build/gpu_tests.txt"
  for type in f32 f64; do
    for direction in fwd dgrad wgrad; do
      printf '%s\t%s\n' "paper.$direction.$type" "'$build/src/kiln' conv --dir $direction \
        --device cuda --check --dt $type --batch src/cli/bench/layers/paper.txt"
    done
  done
  # Strides, whose phases are as many problems in one, and outputs beyond the L2 cache.
  for type in f32 f16; do
    printf '%s\t%s\n' "resnet50.dgrad.$type" "'$build/src/kiln' conv --dir dgrad \
      --device cuda --check --dt $type --batch src/cli/bench/layers/resnet50.txt"
  done
}

say "Test programs, their output in $logs"
count=0
while IFS=$'\t' read -r name command; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n; done
  run_test "$name" "$command" &
  count=$((count + 1))
done < <(tests)
wait
failures=()
for failed in "$logs"/*.failed; do
  [[ -e $failed ]] && failures+=("$(basename "$failed" .failed) ($(<"$failed"))")
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
