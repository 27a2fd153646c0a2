#!/usr/bin/env bash
# Tries what .ci/release made, each product where nothing else of Kiln is: a folder, a root of Debian's package
# manager, environments of Python with the oldest PyTorch that Kiln serves and the newest.
# Usage: tests/install/release.sh FOLDER
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$(realpath "$1")
consumer=$root/tests/install/consumer
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset KILN_LIBRARY_DIR PYTHONPATH LD_LIBRARY_PATH
export KILN_CACHE_DIR=$work/cache KILN_HOST_OPTIMIZATION=g

fail() {
  printf '%s\n' "$*" >&2
  exit 1
}

(cd "$folder" && sha256sum --quiet -c SHA256SUMS)
version=$(basename "$folder"/kiln-*-linux-x86_64.tar.gz)
version=${version#kiln-} version=${version%-linux-x86_64.tar.gz}

# old_enough FILE...: whether binaries ask for no newer C library than 2.28, and for no C++ library.
old_enough() {
  local file newest
  for file in "$@"; do
    newest=$(objdump -T "$file" | grep -oE 'GLIBC_[0-9.]+' | sort -uV | tail -1)
    [[ $(printf '%s\n' "$newest" GLIBC_2.28 | sort -V | tail -1) == GLIBC_2.28 ]] || fail "$file needs $newest"
    ! objdump -p "$file" | grep -E 'NEEDED.*(libstdc|libc\+\+|libgcc)' || fail "$file needs a C++ library"
  done
}

# consumers PREFIX LIBDIR: programs of C and C++ through CMake, pkg-config and the compiler alone, and the samples.
consumers() {
  local prefix=$1 library=$2 flags each
  cmake -S "$consumer" -B "$work/consumer" --log-level=WARNING -G Ninja -DKILN_LANGUAGES='C;CXX' -DKILN_FROM=find_package \
    -DCMAKE_PREFIX_PATH="$prefix" -DKILN_EXPECTED_VERSION="$version" >/dev/null
  cmake --build "$work/consumer" >/dev/null
  "$work/consumer/consumer_c" && "$work/consumer/consumer_cpp"
  rm -rf "$work/consumer"
  flags=$(PKG_CONFIG_PATH=$library/pkgconfig pkg-config --cflags --libs "kiln = $version")
  # shellcheck disable=SC2086 # Flags are words.
  gcc -std=c99 "$consumer/consumer.c" -o "$work/c" $flags -Wl,-rpath,"$library" && "$work/c"
  for each in first_convolution.c first_plan.cpp; do  # README's program is the second
    g++ -x "$([[ $each == *.c ]] && echo c || echo c++)" $([[ $each == *.c ]] || echo -std=c++20) "$root/samples/$each" \
      -x none -I"$prefix/include" -L"$library" -lkiln -Wl,-rpath,"$library" -o "$work/sample"
    "$work/sample" >/dev/null
  done
  gcc -std=c99 "$consumer/cudnn.c" -o "$work/cudnn" -I"$prefix/share/kiln/cudnn/include" -L"$prefix/share/kiln/cudnn/lib" \
    -lcudnn -Wl,-rpath,"$prefix/share/kiln/cudnn/lib"
  KILN_CUDNN_DEVICE=host "$work/cudnn"
  "$prefix/bin/kiln" conv --device host --check mb1ic4ih6oc4kh3ph1 >/dev/null
}

echo "source archive and tarball"
mkdir "$work/source" "$work/tarball"
tar -C "$work/source" --strip-components=1 -xf "$folder/kiln-$version.tar.gz"
tar -C "$work/tarball" --strip-components=1 -xf "$folder/kiln-$version-linux-x86_64.tar.gz"
prefix=$work/tarball
old_enough "$prefix"/lib/libkiln.so.* "$prefix"/bin/kiln "$prefix"/share/kiln/cudnn/lib/libkiln_cudnn.so
commit=$(sed -n 's/^set(commit "\([0-9a-f]*\)")$/\1/p' "$work/source/src/cli/commit.cmake")
"$prefix/bin/kiln" --version | grep -q "kiln $version (commit ${commit:0:12}, " || fail "$("$prefix/bin/kiln" --version): $commit"
consumers "$prefix" "$prefix/lib"

echo "Debian package"
mkdir -p "$work/root/var/lib/dpkg"/{info,updates,triggers}
touch "$work/root/var/lib/dpkg/status"
package() { dpkg --root="$work/root" --force-not-root --force-depends --force-script-chrootless --log="$work/dpkg.log" "$@" >/dev/null; }
package -i "$folder"/kiln_*.deb
dpkg --root="$work/root" -s kiln | grep -q "^Version: $version\$" || fail "$(dpkg --root="$work/root" -s kiln)"
consumers "$work/root/usr" "$work/root/usr/lib"
package -r kiln
[[ -z $(find "$work/root/usr" -type f 2>/dev/null) ]] || fail "the package left $(find "$work/root/usr" -type f)"

# environment NAME TORCH: Python's, with that PyTorch without the CUDA libraries, and the wheel.
environment() {
  local python=$work/$1/bin/python
  python3 -m venv "$work/$1"
  "$python" -m pip install --quiet --disable-pip-version-check --no-deps "$2"
  "$python" -m pip install --quiet --disable-pip-version-check filelock typing_extensions sympy networkx jinja2 fsspec numpy \
    expecttest setuptools
  "$python" -m pip install --quiet --disable-pip-version-check --no-index --no-deps "$folder"/*.whl
  (
    cd "$work"
    "$python" -c 'import torch; print("PyTorch", torch.__version__)'
    "$python" "$root/tests/torch/python/test_package.py" "$folder"/*.whl
    KILN_TEST_INSTALLED=1 "$python" "$root/tests/torch/python/test_functions.py"
    KILN_TEST_INSTALLED=1 "$python" "$root/tests/arrays/test_arrays.py"
  )
  rm -rf "${work:?}/$1"
}

echo "wheel"
environment oldest 'torch==2.10.*'
environment newest 'torch'
echo "passed"
