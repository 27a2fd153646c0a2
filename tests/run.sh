#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests. Safe to run again, and quick the second
# time: kernels that were compiled, results of the host device and files that were linted are
# remembered in ~/.cache/kiln-tests until their input changes.
#
#   bash tests/run.sh          format, and the quick tier of the CPU tests (the GPU tests too where
#                              there is a GPU): what to run while editing
#   bash tests/run.sh --wide   lint, the wide tier, and the host device under AddressSanitizer and
#                              UBSan: what continuous integration runs
#   bash tests/run.sh --full   everything: every tile, count and list that the tests have, and
#                              kiln.torch against a PyTorch that is installed below the build folder
#
#   --cold                     nothing is remembered from earlier runs, compiled objects neither
#
# tests/README.md says what is in each tier.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

tier=quick cold=0
for word in "$@"; do
  case $word in
    --wide) tier=wide ;;
    --full) tier=full ;;
    --cold) cold=1 ;;
    *) die "usage: bash tests/run.sh [--wide | --full] [--cold]" ;;
  esac
done
export KILN_TEST_TIER=$tier
[[ $tier != full ]] || export KILN_TEST_FULL=1

results=()  # "name: what became of it", for the last lines
failed=0
passed() { results+=("passed   $1"); }
failure() {
  results+=("FAILED   $1")
  failed=1
}
skipped() { results+=("skipped  $1"); }

source_files() { find "$@" -type f \( -name '*.[ch]' -o -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) | sort; }

check_format() {
  local tool
  tool=$(clang_tool clang-format)
  # Functions of C's linkage are written as their headers have them.
  if grep -nE '\w\(void\)' $(find src cache -name '*.cpp' | grep -vE '^src/(api|cudnn|torch)/'); then
    failure "format: a C++ function without parameters is declared with (), not (void)"
  elif [[ -z $tool ]]; then
    skipped "format: clang-format $clang_version is not installed"
  elif source_files include src cache kernel_sources samples tests |
    xargs -P "$jobs" -n 20 "$tool" --dry-run -Werror; then
    passed "format"
  else
    failure "format: run clang-format -i on the files named above"
  fi
}

# lint_text TOOL FILE: bodies of templates are read where they are used; without those that a file does
# not use, three files took 4, 8 and 30% less time.
lint_text() {
  local report
  report=$("$1" --quiet -p "$build/lint" --extra-arg=-fdelayed-template-parsing "$2" 2>&1) || {
    grep -v 'warnings\? generated' <<<"$report"
    return 1
  }
}

# lint_unit TOOL UNIT FILE...: UNIT is the text of all FILEs. What is found in it is looked for in each
# of them alone, for the report names their lines, and they may fit together worse than it seemed.
lint_unit() {
  local tool=$1 unit=$2 file failed=0
  shift 2
  if (($# > 1)) && lint_text "$tool" "$unit" >/dev/null; then
    stamp_file "$@"
    return
  fi
  for file in "$@"; do
    if lint_text "$tool" "$file"; then stamp_file "$file"; else failed=1; fi
  done
  return "$failed"
}

# Nothing is found in these files: writes their stamps, whose names build/lint/stale has.
stamp_file() {
  local file
  for file in "$@"; do
    echo "$file" >"$memory_of_tests/lint/$(awk -v file="$file" '$2 == file { print $1 }' "$build/lint/stale")"
  done
}

# A stamp is named by a file and the checksums of what it includes and of the configuration: a file is
# linted again when one of these has changed. Files are linted several as one, which takes a quarter of
# the time; the full tier reads each alone.
check_lint() {
  local tool file parts sums size=8
  tool=$(clang_tool clang-tidy)
  if [[ -z $tool ]]; then
    skipped "lint: clang-tidy $clang_version is not installed"
    return
  fi
  [[ $tier != full ]] || size=1
  mkdir -p "$build/lint"
  cp "$build/compile_commands.json" "$build/lint/"
  : >"$build/lint/stale"
  find src cache -name '*.cpp' | sort | xargs python3 .ci/sources.py inputs >"$build/lint/inputs"
  while IFS=$'\t' read -r file parts; do
    # shellcheck disable=SC2086 # Paths of the checkout, relative to it.
    sums=$({ echo "$size"; sha1sum .clang-tidy $parts; } | sha1sum)
    [[ -f $memory_of_tests/lint/${sums:0:40} ]] || echo "${sums:0:40} $file" >>"$build/lint/stale"
  done <"$build/lint/inputs"
  export -f lint_text lint_unit stamp_file
  export build memory_of_tests
  local failed_lint=0 count
  count=$(wc -l <"$build/lint/stale")
  if ((count)); then
    # shellcheck disable=SC2046 # Paths of the checkout, relative to it.
    python3 .ci/sources.py units --size "$size" "$build/lint" $(cut -d ' ' -f 2 "$build/lint/stale") |
      xargs -P "$jobs" -L 1 bash -c 'lint_unit "$@"' - "$tool" || failed_lint=1
  fi
  # Where several files are compiled and linted as one, each may profit from what the others include.
  find src cache tests -name '*.cpp' ! -path tests/lint/violations.cpp |
    xargs python3 tests/lint/includes.py || failed_lint=1
  if ((failed_lint)); then
    failure "lint: see the warnings above"
  else
    passed "lint ($count files changed)"
  fi
}

# run_ctest LABEL: CTest's own words, the output of what fails, and its closing lines. Tests that are
# labelled with a tier of their own are in that tier alone ("wide": in the full one too).
run_ctest() {
  local log=$build/ctest-$1.log others=quick
  [[ $tier != quick ]] || others=wide
  if ctest --test-dir "$build" -L "^$1\$" -LE "^$others\$" -j "$jobs" --output-on-failure \
    --no-tests=error 2>&1 | tee "$log"; then
    passed "$1 tests: $(grep -E 'tests passed' "$log")"
  else
    failure "$1 tests: $(grep -E 'tests passed' "$log" || echo 'ctest could not run them')"
  fi
  forget_failed "$KILN_TEST_MEMORY"
  # CTest shows what a test printed only if it failed.
  awk '/^[0-9]+\/[0-9]+ Testing: / { test = $3 }
    match($0, /[0-9]+ of [0-9]+ results remembered$/) {
      split(substr($0, RSTART), words, " ")
      print test ": " words[1] " of " words[3] " results remembered from earlier runs"
      remembered += words[1]; all += words[3] }
    END { if (all) print "in all: " remembered " of " all }' "$build/Testing/Temporary/LastTest.log"
}

# Results (tests/support/memory.hpp) have a folder for each state of what makes them.
remember_results() {
  KILN_TEST_MEMORY=$memory_of_tests/results/$(state_of_results)
  export KILN_TEST_MEMORY
  mkdir -p "$KILN_TEST_MEMORY"
  forget_failed "$KILN_TEST_MEMORY"  # of a run that was ended
}

check_gpu() {
  local reason
  if reason=$(no_gpu); then
    ctest --test-dir "$build" -L '^gpu$' -N |
      awk -v reason="$reason" '/^ *Test +#/ { print $NF ": skipped: no GPU (" reason ")" }'
    skipped "gpu tests: no GPU ($reason)"
  else
    run_ctest gpu
  fi
}

# The same kernels with every access checked: they are compiled with the sanitizers as well.
check_sanitized() {
  local folder=$sanitized runner=$sanitized/tests/ops/problem_runner
  # Both of these take one processor.
  "$folder/tests/unit/test_unit" --log_level=warning >"$folder/unit.log" 2>&1 &
  local target replayed=1 unit=$!
  for target in descriptors operations problem_line; do
    "$folder/tests/fuzz/replay_$target" "tests/fuzz/corpus/$target" 20000 || replayed=0
  done
  if ((replayed)); then passed "sanitized fuzz replays"; else failure "sanitized fuzz replays"; fi
  if wait "$unit"; then
    passed "sanitized unit tests"
  else
    cat "$folder/unit.log"
    failure "sanitized unit tests"
  fi
  local -x ASAN_OPTIONS=$without_leaks  # the unit tests and the replays look for leaks
  local log=$folder/small_problems.log lists=tests/problems/quick
  [[ $tier != full ]] || lists=tests/problems
  if bash tests/ops/problem_list.sh "$runner" host $lists/small.txt 1 2>&1 | tee "$log"; then
    passed "sanitized small problems"
  else
    failure "sanitized small problems: see $log"
  fi
  log=$folder/line_lists.log
  if bash tests/ops/line_list.sh "$runner" host conv:$lists/backward.txt local:$lists/local.txt matmul:$lists/matmul.txt \
    pool:$lists/pooling.txt act:$lists/activation.txt softmax:$lists/softmax.txt \
    norm:$lists/normalization.txt tensor:$lists/tensor.txt tensor:$lists/reduction.txt 2>&1 | tee "$log"; then
    passed "sanitized problems of every operation"
  else
    failure "sanitized problems of every operation: see $log"
  fi
}

# PyTorch's own tests of convolutions, with the package as users install it.
check_torch() {
  if bash tests/torch/full.sh "$build"; then passed "kiln.torch"; else failure "kiln.torch: see above"; fi
}

if ((cold)); then
  memory_of_tests=$build/cold
  rm -rf "$memory_of_tests"
  export CCACHE_DISABLE=1
fi
if ! mkdir -p -m 700 "$memory_of_tests" 2>/dev/null; then  # a home that cannot be written to
  memory_of_tests=$build/memory
  mkdir -p "$memory_of_tests"
fi
# Kernels that a run before this one compiled need no compilation, and the user's own stay as they are.
export KILN_CACHE_DIR=$memory_of_tests/kernels KILN_CACHE_MAX_SIZE=1G
mkdir -p "$memory_of_tests"/{lint,results}

started=$SECONDS
build_all() {
  local targets=(all)
  [[ $tier == quick ]] || targets+=(wide_tests)
  configure "$build" -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=ON
  compile "$build" "${targets[@]}"
}

install_packages $(missing_build_packages) $(missing_test_packages)
stage "Building" build_all
stage "Format" check_format
[[ $tier == quick ]] || stage "Lint" check_lint
remember_results
stage "Tests that need no GPU" run_ctest cpu
stage "Tests that need a GPU" check_gpu
[[ $tier == quick ]] || stage "Building with AddressSanitizer and UBSan" compile_sanitized \
  problem_runner test_unit replay_descriptors replay_operations replay_problem_line
[[ $tier == quick ]] || stage "Tests with AddressSanitizer and UBSan" check_sanitized
[[ $tier != full ]] || stage "PyTorch, installed for this" check_torch

prune_memory "$memory_of_tests/results"
prune_memory "$memory_of_tests/lint"
say "$( ((failed)) && echo FAILED || echo PASSED) in $((SECONDS - started)) s"
printf '  %s\n' "${results[@]}"
exit "$failed"
