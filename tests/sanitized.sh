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
(($# >= 2)) || die "usage: bash tests/sanitized.sh COMMAND ARGUMENT...    (conv, local, matmul, pool, act, softmax, norm, tensor)"

compile_sanitized problem_runner
export ASAN_OPTIONS=$without_leaks${ASAN_OPTIONS:+:$ASAN_OPTIONS}
exec "$sanitized/tests/ops/problem_runner" "$@"
