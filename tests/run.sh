#!/usr/bin/env bash
# Installs what is missing, builds, and passes the tests: format, lint, the CPU tests (the GPU tests
# too where there is a GPU), and the host device under AddressSanitizer and UBSan.
# Safe to run again, and quick the second time. With --full it also installs PyTorch below the build
# folder, and runs kiln.torch's tests against it.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

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
  if [[ -z $tool ]]; then
    skipped "format: clang-format $clang_version is not installed"
  elif source_files include src cache kernel_sources samples tests |
    xargs -P "$jobs" -n 20 "$tool" --dry-run -Werror; then
    passed "format"
  else
    failure "format: run clang-format -i on the files named above"
  fi
}

# lint_file TOOL STAMP FILE: touches the stamp if clang-tidy finds nothing.
lint_file() {
  local report
  if report=$("$1" --quiet -p "$build" "$3" 2>&1); then
    touch "$2"
  else
    grep -v 'warnings\? generated' <<<"$report"
    return 1
  fi
}

# One stamp a file: a file is linted again when it, any header or the configuration has changed.
check_lint() {
  local tool newest file stamp stale=()
  tool=$(clang_tool clang-tidy)
  if [[ -z $tool ]]; then
    skipped "lint: clang-tidy $clang_version is not installed"
    return
  fi
  mkdir -p "$build/lint"
  newest=$(find include src cache kernel_sources .clang-tidy -name '*.h' -o -name '*.hpp' \
    -o -name .clang-tidy | xargs ls -t | sed -n 1p)
  for file in $(find src cache -name '*.cpp' | sort); do
    stamp=$build/lint/${file//\//-}
    [[ $stamp -nt $file && $stamp -nt $newest ]] || stale+=("$stamp" "$file")
  done
  export -f lint_file
  export build
  if ((${#stale[@]} == 0)) ||
    printf '%s\n' "${stale[@]}" | xargs -P "$jobs" -n 2 bash -c 'lint_file "$@"' - "$tool"; then
    passed "lint ($((${#stale[@]} / 2)) files changed)"
  else
    failure "lint: see the warnings above"
  fi
}

# run_ctest LABEL: CTest's own words, the output of what fails, and its closing lines.
run_ctest() {
  local log=$build/ctest-$1.log
  if ctest --test-dir "$build" -L "^$1\$" -j "$jobs" --output-on-failure --no-tests=error 2>&1 | tee "$log"; then
    passed "$1 tests: $(grep -E 'tests passed' "$log")"
  else
    failure "$1 tests: $(grep -E 'tests passed' "$log" || echo 'ctest could not run them')"
  fi
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
  local folder=$build/sanitize type log
  configure "$folder" -DKILN_SANITIZE=ON -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=OFF \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
  compile "$folder" kiln_cli test_unit replay_descriptors replay_operations replay_problem_line
  if "$folder/tests/unit/test_unit" --log_level=warning; then
    passed "sanitized unit tests"
  else
    failure "sanitized unit tests"
  fi
  local target replayed=1
  for target in descriptors operations problem_line; do
    "$folder/tests/fuzz/replay_$target" "tests/fuzz/corpus/$target" 20000 || replayed=0
  done
  if ((replayed)); then passed "sanitized fuzz replays"; else failure "sanitized fuzz replays"; fi
  # The tracer of gcc 12's LeakSanitizer crashes at the end of a program that has unloaded hundreds of
  # sanitized kernels; the unit tests and the replays look for leaks.
  local -x ASAN_OPTIONS=detect_leaks=0
  local log=$folder/small_problems.log
  if bash tests/ops/problem_list.sh "$folder/src/kiln" host tests/problems/small.txt 1 2>&1 | tee "$log"; then
    passed "sanitized small problems"
  else
    failure "sanitized small problems: see $log"
  fi
  local lists=tests/problems
  log=$folder/line_lists.log
  if bash tests/ops/line_list.sh "$folder/src/kiln" host conv:$lists/backward.txt \
    pool:$lists/pooling.txt act:$lists/activation.txt softmax:$lists/softmax.txt \
    tensor:$lists/tensor.txt tensor:$lists/reduction.txt 2>&1 | tee "$log"; then
    passed "sanitized problems of every operation"
  else
    failure "sanitized problems of every operation: see $log"
  fi
}

# PyTorch's own tests of convolutions, with the package as users install it.
check_torch() {
  if bash tests/torch/full.sh "$build"; then passed "kiln.torch"; else failure "kiln.torch: see above"; fi
}

# Kernels that a run before this one compiled need no compilation, and the user's own stay as they are.
export KILN_CACHE_DIR=$build/kernel-cache

started=$SECONDS
stage() {
  local from=$SECONDS
  say "$1"
  shift
  "$@"
  note "($((SECONDS - from)) s)"
}

build_all() {
  configure "$build" -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=ON
  compile "$build"
}

install_packages $(missing_build_packages) $(missing_test_packages)
stage "Building" build_all
stage "Format" check_format
stage "Lint" check_lint
stage "Tests that need no GPU" run_ctest cpu
stage "Tests that need a GPU" check_gpu
stage "AddressSanitizer and UBSan" check_sanitized
[[ ${1:-} != --full ]] || stage "PyTorch, installed for this" check_torch

say "$( ((failed)) && echo FAILED || echo PASSED) in $((SECONDS - started)) s"
printf '  %s\n' "${results[@]}"
exit "$failed"
