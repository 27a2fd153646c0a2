#!/usr/bin/env bash
# Runs the tests that need a GPU, then the benchmark, beside cuDNN and cuBLAS where there are any.
# Exits with 77 where there is no GPU.
#
#   bash tests/gpu.sh              installs what is missing and builds first
#   bash tests/gpu.sh --pack       builds, here where no GPU is needed, and packs the test programs
#                                  into pieces of at most 15 MiB in build/gpu
#   bash tests/gpu.sh --no-build   needs nothing but the sources, the pieces in build/gpu (or a whole
#                                  build/), the driver and libnvrtc: what to run on a GPU's machine
#
#   --tests, --bench    the tests alone, the benchmark alone
#   --limit SECONDS     wall time, after which no test begins and those that run are ended; a half of
#                       it for the benchmark where both run
#   --kernels FOLDER    at the end, the kernels that were compiled go there, in pieces: in build/gpu
#                       they save the next run from compiling what has not changed
#   --only PATTERN      the tests whose names match the extended regular expression
#
# Nearly all of the time goes into compiling kernels, on every core.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

usage="usage: bash tests/gpu.sh [--pack | --no-build] [--tests | --bench] [--limit SECONDS]
       [--kernels FOLDER] [--only PATTERN]"
action=build parts="tests bench" limit=0 kernels_to='' only=.
while (($#)); do
  case $1 in
    --pack) action=pack ;;
    --no-build) action=run ;;
    --tests) parts=tests ;;
    --bench) parts=bench ;;
    --limit | --kernels | --only)
      (($# >= 2)) || die "$usage"
      case $1 in
        --limit) limit=$2 && [[ $limit =~ ^[1-9][0-9]*$ ]] || die "--limit is $2; expected seconds" ;;
        --kernels) kernels_to=$(realpath -m "$2") ;;
        --only) only=$2 ;;
      esac
      shift
      ;;
    *) die "$usage" ;;
  esac
  shift
done

gpu=$build/gpu
logs=$build/gpu-logs
cache=$gpu/kernel-cache

# pack NAME FOLDER FILE...: FILEs, relative to FOLDER, as $gpu/NAME.tar.xz.00, .01, ... of 15 MiB.
# xz where it is installed, for many programs hold the same library; gzip is everywhere.
pack() {
  local name=$1 folder=$2 compress='gzip -9' end=gz
  shift 2
  ! have xz || compress='xz -T0 -6' end=xz
  rm -f "$gpu/$name".tar.*
  tar -C "$folder" --owner=0 --group=0 -cf - "$@" | $compress |
    split -d -a 2 -b 15M - "$gpu/$name.tar.$end."
}

# unpack NAME FOLDER: the pieces of that name, into FOLDER.
unpack() {
  local pieces=("$gpu/$1".tar.*)
  [[ -e ${pieces[0]} ]] || return 0
  mkdir -p "$2"
  if [[ ${pieces[0]} == *.gz.* ]]; then
    cat "${pieces[@]}" | gzip -d | tar -C "$2" --no-same-owner -xf -
  elif have xz; then
    cat "${pieces[@]}" | xz -d | tar -C "$2" --no-same-owner -xf -
  else
    cat "${pieces[@]}" | python3 -c 'import lzma, shutil, sys
shutil.copyfileobj(lzma.open(sys.stdin.buffer), sys.stdout.buffer)' | tar -C "$2" --no-same-owner -xf -
  fi
}

build_all() {
  install_packages $(missing_build_packages) $(missing_test_packages)
  configure "$build" -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=ON
  compile "$build" kiln_cli gpu_test_list
}

# What the commands in gpu_tests.txt need of build/, without its symbols.
pack_programs() {
  local stage=$gpu/stage file
  rm -rf "$stage"
  (
    cd "$build"
    {
      echo src/kiln
      grep -oE "build/[^' ]+" gpu_tests.txt | sed 's:^build/::' | sort -u
      find src -name 'libkiln*.so*' ! -path 'src/torch/*' -o -path 'src/cudnn/lib/*' ! -type d
    } | sort -u | while read -r file; do
      [[ $file == *:* || -d $file ]] && continue  # folders, for the loader
      [[ -f $file ]] || die "build/gpu_tests.txt names $file, which gpu_test_list does not build"
      mkdir -p "$stage/$(dirname "$file")"
      if [[ -L $file ]]; then cp -P "$file" "$stage/$file"; else strip -o "$stage/$file" "$file"; fi
      # Libraries from elsewhere than where every machine has its own, such as the CUDA runtime's.
      ldd "$file" | awk -v own="$build/src/" \
        '$3 ~ /^\// && $3 !~ /^\/(usr\/)?lib/ && index($3, own) != 1 { print $3 }'
    done | sort -u | xargs -r cp -t "$stage/src"
    cp gpu_tests.txt "$stage"
  )
  pack programs "$stage" .
  rm -rf "$stage"
}

list_pieces() {
  note "$(cd "$root" && du -ch --apparent-size build/gpu/*.tar.* | sed 's/^/  /')"
  note "Carry build/gpu and the repository's files to a GPU's machine, and there:
  bash tests/gpu.sh --no-build --tests --limit 540 --kernels FOLDER"
}

# ---- on the GPU's machine ---------------------------------------------------------------------

# One line is a name, a tab and a command, as in gpu_tests.txt. No CTest: it may be missing here.
# Programs come first, for each is one process; then the suites of ops_tests, case by case, for one
# after the other they would take minutes while other cores wait.
list_tests() {
  local suites="/ops_tests' '--run_test=" name command suite each
  grep -v "$suites" "$build/gpu_tests.txt"
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
  grep "$suites" "$build/gpu_tests.txt" | while IFS=$'\t' read -r name command; do
    suite=${command##*--run_test=} suite=${suite%\'}
    if [[ $suite == wide_offsets ]]; then  # gigabytes in each case: one after the other
      printf '%s\t%s\n' "$name" "$command"
      continue
    fi
    for each in $(cases_of "$suite"); do
      printf '%s\t%s\n' "$name/$each" "${command%\'}/$each'"
    done
  done
}

# The test cases of a suite, by Boost's list of all: a case is indented by four blanks more than its suite.
cases_of() {
  awk -v suite="$1" '/^[^ ]/ { own = $1; sub(/\*.*/, "", own) }
    own == suite && /^    [^ ]/ { sub(/\*.*/, "", $1); print $1 }' "$logs/content"
}

# run_test NAME COMMAND: its output in logs/NAME.log, and a file logs/NAME.failed if it did.
run_test() {
  local status=0 start=$SECONDS log=$logs/${1//\//.} left=()
  ((limit == 0)) || left=(timeout -k 5 $((deadline > SECONDS ? deadline - SECONDS : 1)))
  "${left[@]}" bash -c "$2" </dev/null >"$log.log" 2>&1 || status=$?
  echo "$((SECONDS - start)) $1" >>"$logs/seconds"
  if ((status == 0)); then
    note "passed $1 ($((SECONDS - start)) s)"
  elif ((status == 77)); then
    echo "$1" >>"$logs/skipped"
    note "skipped $1: $(tail -1 "$log.log")"
  elif ((limit > 0 && SECONDS >= deadline)); then
    echo "ended at --limit" >"$log.failed"
    note "ended $1 ($((SECONDS - start)) s)"
  else
    echo "exit $status" >"$log.failed"
    printf '%s\n' "FAILED $1 (exit $status, $((SECONDS - start)) s)" "$(<"$log.log")"
  fi
}

failures=()
run_tests() {
  local name command count=0 begun=0 failed
  deadline=$((SECONDS + limit))
  rm -rf "$logs"
  mkdir -p "$logs"
  "$build/tests/ops/ops_tests" --list_content >"$logs/content" 2>&1
  while IFS=$'\t' read -r name command; do
    [[ $name =~ $only ]] || continue
    count=$((count + 1))
    while (($(jobs -rp | wc -l) >= jobs)); do wait -n || true; done
    ((limit == 0 || SECONDS < deadline)) || continue
    begun=$((begun + 1))
    run_test "$name" "$command" &
  done < <(list_tests)
  wait
  for failed in "$logs"/*.failed; do
    [[ -e $failed ]] && failures+=("$(basename "$failed" .failed) ($(<"$failed"))")
  done
  ((begun == count)) || failures+=("$((count - begun)) of $count tests were not begun before --limit")
  note "The longest, seconds:"
  sort -rn "$logs/seconds" | head -8 | sed 's/^/  /' || true
  touch "$logs/skipped"
  note "$count tests, $(wc -l <"$logs/skipped") skipped, ${#failures[@]} failures; each one's output is in $logs"
}

# It writes its results after each case, and begins none after --time-limit.
run_bench() {
  local time_limit=225
  ((limit == 0)) || time_limit=$limit
  timeout -k 5 $((time_limit + 60)) "$build/src/kiln" bench --device cuda --against cudnn,cublas \
    --time-limit "$time_limit" --csv "$build/bench.csv" --json "$build/bench.json" ||
    failures+=("kiln bench")
  note "tests/bench/plot.py $build/bench.csv --out FOLDER draws it"
}

keep_kernels() {
  mkdir -p "$cache"
  pack kernels "$gpu" kernel-cache
  mkdir -p "$kernels_to"
  mv "$gpu"/kernels.tar.* "$kernels_to"
  du -ch --apparent-size "$kernels_to"/kernels.tar.*
}

if [[ $action == pack ]]; then
  mkdir -p "$gpu"
  stage "Building" build_all
  stage "Packing" pack_programs
  list_pieces
  exit 0
fi
if [[ $action == build ]]; then
  stage "Building" build_all
else
  stage "Unpacking" unpack programs "$build"
  stage "Unpacking kernels of an earlier run" unpack kernels "$gpu"
  [[ -x $build/src/kiln && -f $build/gpu_tests.txt ]] ||
    die "build/ holds no finished build and build/gpu no pieces: make them with tests/gpu.sh --pack"
fi

if reason=$(no_gpu); then
  note "skipped: no GPU ($reason)"
  exit 77
fi

# A build from another machine names the library's old place.
export LD_LIBRARY_PATH=$build/src${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export KILN_CACHE_DIR=$cache
[[ $parts != "tests bench" || $limit == 0 ]] || limit=$(((limit + 1) / 2))
[[ $parts != *tests* ]] || stage "Tests" run_tests
[[ $parts != *bench* ]] || stage "The benchmark" run_bench
[[ -z $kernels_to ]] || stage "Packing kernels" keep_kernels

if ((${#failures[@]})); then
  say "FAILED"
  printf '  %s\n' "${failures[@]}"
  exit 1
fi
say "PASSED"
