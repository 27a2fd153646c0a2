#!/usr/bin/env bash
# Runs a problem, or a list, on the host device under AddressSanitizer and UBSan: the library, built
# with both, compiles its kernels with both.
#
#   bash tests/sanitized.sh conv --dt f16 mb1_ic6ih14oc8kh3ph1     as `kiln conv --check` takes it
#   bash tests/sanitized.sh conv --batch tests/problems/quick/backward.txt
#
# tests/ops/problem_runner.cpp says which options there are beside a problem's own flags.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"
(($# >= 2)) || die "usage: bash tests/sanitized.sh COMMAND ARGUMENT...    (conv, local, pool, act, softmax, norm, tensor)"

# The build of tests/run.sh, so that neither makes the other build again.
folder=$build/sanitize
configure "$folder" -DKILN_SANITIZE=ON -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=OFF -DKILN_UNITY=OFF \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -g1"
compile "$folder" problem_runner

# The tracer of gcc 12's LeakSanitizer crashes at the end of a program that has unloaded hundreds of
# sanitized kernels.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
exec "$folder/tests/ops/problem_runner" "$@"
