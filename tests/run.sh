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

# lint_file TOOL STAMP FILE INPUTS: writes INPUTS into the stamp if clang-tidy finds nothing. Bodies of
# templates are read where they are used: without those that a file does not use, three files took 4, 8
# and 30% less time.
lint_file() {
  local report
  if report=$("$1" --quiet -p "$build/lint" --extra-arg=-fdelayed-template-parsing "$3" 2>&1); then
    printf '%s\n' "$4" >"$2"
  else
    grep -v 'warnings\? generated' <<<"$report"
    return 1
  fi
}

# What each source file was compiled from, one line a file: its path, a tab, and the checksums of
# itself, of the project's headers that it includes, and of .clang-tidy.
lint_inputs() {
  local pairs=$build/lint/pairs sums=$build/lint/sums
  # ninja -t deps prints "OBJECT: ... (VALID)" and then its files, indented, the source file first.
  ninja -C "$build" -t deps | awk -v root="$root/" -v build="$build/" '
    /^[^ ]/ { source = ""; valid = /\(VALID\)$/; next }
    valid && NF == 1 {
      file = $1
      if (file !~ /^\//) file = build file
      while (sub(/[^\/]+\/\.\.\//, "", file)) { }
      if (index(file, root) != 1) next
      file = substr(file, length(root) + 1)
      if (source == "") source = file
      if (source ~ /^(src|cache)\/.*\.cpp$/ && file ~ /^(include|src|cache|kernel_sources)\//)
        print source "\t" file
    }' | sort -u >"$pairs"
  { cut -f 2 "$pairs" | sort -u && echo .clang-tidy; } | xargs sha1sum >"$sums" 2>/dev/null ||
    true  # ninja may know of headers that are gone; what included them is compiled anew
  awk 'NR == FNR { sum[$2] = $1; next }
    $1 != source { if (source) print line; source = $1; line = $1 "\t" sum[".clang-tidy"] }
    { line = line " " sum[$2] }
    END { if (source) print line }' "$sums" "$pairs"
}

# A stamp is named by a file and the checksums of what it includes and of the configuration: a file is
# linted again when one of these has changed.
check_lint() {
  local tool file sums stamp stale=()
  tool=$(clang_tool clang-tidy)
  if [[ -z $tool ]]; then
    skipped "lint: clang-tidy $clang_version is not installed"
    return
  fi
  mkdir -p "$build/lint"
  # The commands that compiled the files, without gcc's precompiled headers, which clang cannot read,
  # so that every file is also seen to include what it uses, and without a warning of gcc's own.
  sed -E 's/ -Winvalid-pch -include [^ ]+//; s/ -Wno-stringop-overread//' \
    "$build/compile_commands.json" >"$build/lint/compile_commands.json"
  local -A inputs
  while IFS=$'\t' read -r file sums; do inputs[$file]=$sums; done < <(lint_inputs)
  for file in $(find src cache -name '*.cpp' | sort); do
    sums=${inputs[$file]:-}  # "": nothing here compiles it, so that it is always linted
    stamp=$(sha1sum <<<"$file $sums") stamp=$memory_of_tests/lint/${stamp:0:40}
    if [[ -z $sums || ! -f $stamp || $(<"$stamp") != "$sums" ]]; then
      stale+=("$stamp" "$file" "$sums")
    fi
  done
  export -f lint_file
  export build
  if ((${#stale[@]} == 0)) ||
    printf '%s\n' "${stale[@]}" | xargs -d '\n' -P "$jobs" -n 3 bash -c 'lint_file "$@"' - "$tool"; then
    passed "lint ($((${#stale[@]} / 3)) files changed)"
  else
    failure "lint: see the warnings above"
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
  KILN_TEST_MEMORY=$memory_of_tests/results/$(state_of_results "$build")
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
build_sanitized() {
  local folder=$build/sanitize
  configure "$folder" -DKILN_SANITIZE=ON -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=OFF \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -g1"
  compile "$folder" problem_runner test_unit replay_descriptors replay_operations replay_problem_line
}

check_sanitized() {
  local folder=$build/sanitize runner=$build/sanitize/tests/ops/problem_runner
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
  local log=$folder/small_problems.log lists=tests/problems/quick
  [[ $tier != full ]] || lists=tests/problems
  if bash tests/ops/problem_list.sh "$runner" host $lists/small.txt 1 2>&1 | tee "$log"; then
    passed "sanitized small problems"
  else
    failure "sanitized small problems: see $log"
  fi
  log=$folder/line_lists.log
  if bash tests/ops/line_list.sh "$runner" host conv:$lists/backward.txt local:$lists/local.txt \
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
[[ $tier == quick ]] || stage "Building with AddressSanitizer and UBSan" build_sanitized
[[ $tier == quick ]] || stage "Tests with AddressSanitizer and UBSan" check_sanitized
[[ $tier != full ]] || stage "PyTorch, installed for this" check_torch

prune_memory "$memory_of_tests/results"
prune_memory "$memory_of_tests/lint"
say "$( ((failed)) && echo FAILED || echo PASSED) in $((SECONDS - started)) s"
printf '  %s\n' "${results[@]}"
exit "$failed"
