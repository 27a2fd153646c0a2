#!/usr/bin/env bash
# Installs what is missing, builds, and runs one real layer: on the GPU if there is one, else on the
# host device. Twice, in two processes: the second finds on disk what the first compiled.
# Safe to run again, and quick the second time.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

install_packages $(missing_build_packages)
if [[ -f $build/CMakeCache.txt ]]; then
  configure "$build" -DKILN_BUILD_SAMPLES=ON
else
  configure "$build" -DKILN_BUILD_SAMPLES=ON -DKILN_BUILD_TESTS=OFF
fi
compile "$build" sample_quickstart

# A cache of its own, emptied, so that the first run shows a compilation.
export KILN_CACHE_DIR=$build/quickstart-cache
rm -rf "$KILN_CACHE_DIR"
"$build/samples/quickstart"
"$build/samples/quickstart" --again
