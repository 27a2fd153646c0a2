#!/usr/bin/env bash
# Installs what is missing, builds the library, the program and two samples, and runs one real layer:
# on the GPU if there is one, else on the host device. Twice, in two processes: the second finds on
# disk what the first compiled. `cmake --build build` makes the rest: the extension for PyTorch, the
# library of the cuDNN API, the other samples. With --verbose it also shows the kernel's constants,
# and what became of divisions by them in the PTX. Safe to run again, and quick the second time.

source "$(dirname "${BASH_SOURCE[0]}")/../.ci/setup.sh"
cd "$root"

verbose=
case "$*" in
  '') ;;
  --verbose) verbose=--verbose ;;
  *) die "usage: quickstart.sh [--verbose]" ;;
esac

install_packages $(missing_build_packages)
if [[ -f $build/CMakeCache.txt ]]; then
  configure "$build" -DKILN_BUILD_SAMPLES=ON
else
  configure "$build" -DKILN_BUILD_SAMPLES=ON -DKILN_BUILD_TESTS=OFF
fi

# What this script runs and what its last lines name.
targets=(kiln kiln_cli sample_quickstart train_digits)
if [[ ! -x $build/src/kiln ]]; then
  # Files are compiled in groups of up to eight, which take at most 8 seconds of one core on average, a
  # file alone 2.5; ninja counts them as it goes.
  groups=$(ninja -C "$build" -t commands "${targets[@]}" | grep -c -- ' -c .*/Unity/') || true
  files=$(ninja -C "$build" -t commands "${targets[@]}" | grep -c -- ' -c ')
  note "The library, the program and two samples: $files steps, at most" \
    "$(((((files - groups) * 5 / 2 + groups * 8) / jobs + 59) / 60)) minutes on $jobs idle cores without ccache"
fi
stage "Building" compile "$build" "${targets[@]}"

# A cache of its own, emptied, so that the first run shows a compilation.
export KILN_CACHE_DIR=$build/quickstart-cache
rm -rf "$KILN_CACHE_DIR"
say "$(build/src/kiln --version)"
"$build/samples/quickstart" $verbose
"$build/samples/quickstart" --again
if [[ -n $verbose ]]; then
  say "Divisions in the PTX for sm_90a: the high half of a product, and a shift"
  build/src/kiln inspect --arch sm_90a --emit ptx mb1_ic256ih13oc384kh3ph1 |
    grep -B 1 -A 1 'mul\.hi\.u' | grep -v '^--' | sed -n '1,15p'
  echo
fi

device=
! no_gpu >/dev/null || device=' --device host'
cat <<END
try next  build/src/kiln conv$device --check mb1_ic64ih28oc64kh3ph1          # another layer
          build/src/kiln inspect --emit source mb1_ic256ih13oc384kh3ph1  # the kernel, as CUDA C++
          build/samples/train_digits                                     # a network that learns
END
