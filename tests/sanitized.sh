#!/usr/bin/env bash
# Runs problems on the host device under AddressSanitizer and UBSan: the program `kiln`, built with
# both, which compiles its kernels with both.
#
#   bash tests/sanitized.sh conv --check mb1_ic6ih14oc8kh3ph1     as `kiln conv --device host` takes it

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"
(($# >= 2)) || die "usage: bash tests/sanitized.sh COMMAND ARGUMENT...    (conv, local, pool, act, softmax, norm, tensor)"

# The build of tests/run.sh, so that neither makes the other build again.
folder=$build/sanitize
configure "$folder" -DKILN_SANITIZE=ON -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=OFF \
  -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O1 -g1"
compile "$folder" kiln_cli

# The tracer of gcc 12's LeakSanitizer crashes at the end of a program that has unloaded hundreds of
# sanitized kernels.
export ASAN_OPTIONS=detect_leaks=0${ASAN_OPTIONS:+:$ASAN_OPTIONS}
exec "$folder/src/kiln" "$1" --device host "${@:2}"
