#!/usr/bin/env bash
# kiln.torch against PyTorch itself: builds the wheel, installs it and PyTorch in an environment of its
# own below the build folder, and passes the whole of tests/torch/python there, without a GPU.
# Usage: tests/torch/full.sh [BUILD-FOLDER]
#
# Environment:
#   KILN_TEST_PYTHON  a Python that has PyTorch 2.10 or later, expecttest and scikit-build-core: nothing
#                     is installed then but Kiln's wheel, in an environment that sees that Python's packages
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=${1:-$root/build}/torch
mkdir -p "$folder"

# environment: prints the Python of an environment in which PyTorch can be imported.
environment() {
  local python=$folder/environment/bin/python packages
  if [[ ! -x $python ]]; then
    "${KILN_TEST_PYTHON:-python3}" -m venv "$folder/environment"
    if [[ -n ${KILN_TEST_PYTHON:-} ]]; then
      packages=$("$KILN_TEST_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
      echo "$packages" >"$("$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/others.pth"
    fi
  fi
  [[ -n ${KILN_TEST_PYTHON:-} ]] ||
    "$python" -m pip install --quiet --disable-pip-version-check 'torch>=2.10' expecttest numpy scikit-build-core
  echo "$python"
}

python=$(environment)
launcher=()
if command -v ccache >/dev/null; then
  launcher=(--config-settings=cmake.define.CMAKE_C_COMPILER_LAUNCHER=ccache
    --config-settings=cmake.define.CMAKE_CXX_COMPILER_LAUNCHER=ccache)
fi
[[ -z ${KILN_CUDA_ROOT:-} ]] || launcher+=("--config-settings=cmake.define.KILN_CUDA_ROOT=$KILN_CUDA_ROOT")
rm -rf "$folder/wheels"
# The flags of the build folder, whose objects ccache then has.
"$python" -m pip wheel --quiet --no-deps --no-build-isolation "$root/src/python" -w "$folder/wheels" \
  "--config-settings=build-dir=$root/build_wheel" --config-settings=cmake.build-type=RelWithDebInfo \
  "--config-settings=cmake.define.CMAKE_CXX_FLAGS_RELWITHDEBINFO=-O2 -g1 -DNDEBUG" \
  "--config-settings=cmake.define.KILN_WERROR=${KILN_WERROR:-OFF}" "${launcher[@]}"
"$python" -m pip install --quiet --no-index --no-deps --force-reinstall "$folder"/wheels/*.whl
unset KILN_LIBRARY_DIR PYTHONPATH
cd "$folder"
export KILN_CACHE_DIR=${KILN_CACHE_DIR:-$folder/kernel-cache}
"$python" "$root/tests/torch/python/test_package.py" "$folder"/wheels/*.whl
export KILN_TEST_INSTALLED=1 KILN_TEST_FULL=1
"$python" "$root/tests/arrays/test_arrays.py"
"$python" "$root/tests/torch/python/main.py"
