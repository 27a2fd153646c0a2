# shellcheck shell=bash
# What every script here shares: packages, the CUDA toolkit, configuring. Sourced, never run.
#
# Environment:
#   KILN_CUDA_ROOT  the CUDA toolkit to build against; "wheels" ignores any that is installed and
#                   takes NVRTC and the headers from the Python package index

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=$root/build
jobs=$(nproc)

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
note() { printf '%s\n' "$*"; }
die() {
  printf '\n%s\n' "$*" >&2
  exit 1
}
[[ -t 1 ]] || say() { printf '\n%s\n' "$*"; }

# Seconds of processor time that this script and the programs it waited for have taken.
cpu_seconds() {
  local fields
  fields=$(<"/proc/$$/stat")
  # shellcheck disable=SC2086 # The fields behind the program's name: state first, times from the 12th on.
  set -- ${fields##*) }
  echo $(((${12} + ${13} + ${14} + ${15}) / $(getconf CLK_TCK)))
}

# stage NAME COMMAND [ARGUMENT...]: runs a stage of a script, and says what it took.
stage() {
  local from=$SECONDS cpu
  cpu=$(cpu_seconds)
  say "$1"
  "${@:2}"
  note "($((SECONDS - from)) s, $(($(cpu_seconds) - cpu)) CPU-s)"
}

have() { command -v "$1" >/dev/null; }
exists() { compgen -G "$1" >/dev/null; }

# ---- packages ---------------------------------------------------------------------------------

# Each need is told by what it is used for, so that a compiler or a CMake from elsewhere counts.
missing_build_packages() {
  have g++ || have clang++ || echo g++
  have cmake || echo cmake
  have ninja || echo ninja-build
  exists '/usr/include/spdlog/spdlog.h' || echo libspdlog-dev
  exists '/usr/include/fmt/core.h' || echo libfmt-dev
  exists '/usr/include/boost/version.hpp' || echo libboost-dev
  exists '/usr/lib/*/libboost_context.a' || echo libboost-context-dev
  exists '/usr/include/CLI/CLI.hpp' || echo libcli11-dev
  exists '/usr/include/nlohmann/json.hpp' || echo nlohmann-json3-dev
  exists '/usr/include/xxhash.h' || echo libxxhash-dev
  have pkg-config || echo pkg-config
  exists '/usr/include/cairo/cairo.h' || echo libcairo2-dev
  have help2man || echo help2man
  if [[ -z $(find_cuda) ]] && ! have_wheels && ! can_download_wheels; then echo python3-pip; fi
}

missing_test_packages() {
  have python3 || echo python3
  exists '/usr/lib/*/libboost_unit_test_framework.a' || echo libboost-test-dev
  exists '/usr/include/dnnl.h' || exists '/usr/include/*/dnnl.h' || echo libdnnl-dev
  # Another version of these two formats and warns differently, so it is not worth installing.
  case $(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME:-}") in
    bookworm | jammy)
      [[ -n $(clang_tool clang-format) ]] || echo clang-format
      [[ -n $(clang_tool clang-tidy) ]] || echo clang-tidy
      ;;
  esac
}

# install_packages PACKAGE...: nothing at all when nothing is missing.
install_packages() {
  (($#)) || return 0
  have apt-get || die "Missing: $* (Debian's names). Install them, then start again."
  local as=()
  if ((EUID != 0)); then
    have sudo && sudo -n true 2>/dev/null ||
      die "Packages are missing. Run this line, then start again:
    sudo apt-get update && sudo apt-get install -y --no-install-recommends $*"
    as=(sudo -n)
  fi
  say "Installing $*"
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -qq update
  "${as[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

# The formatter and the linter are of one version, because their verdicts change between versions.
clang_version=14
clang_tool() {
  local tool
  for tool in "$1-$clang_version" "$1"; do
    if have "$tool" && "$tool" --version | grep -q "version $clang_version\."; then
      echo "$tool"
      return
    fi
  done
}

# ---- the CUDA toolkit -------------------------------------------------------------------------

# cuda.h and nvrtc.h to compile against, libnvrtc to open at run time; older than 12.8 it does not
# know the newest architectures.
oldest_cuda=12080

usable_cuda() {
  [[ -f $1/include/cuda.h && -f $1/include/nvrtc.h ]] || return 1
  local version
  version=$(awk '$2 == "CUDA_VERSION" { print $3; exit }' "$1/include/cuda.h")
  ((version >= oldest_cuda))
}

# Prints the root of an installed toolkit, or nothing.
find_cuda() {
  [[ ${KILN_CUDA_ROOT:-} == wheels ]] && return
  local place
  for place in "${KILN_CUDA_ROOT:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" \
    /usr/local/cuda /usr/lib/cuda /opt/cuda /usr; do
    if [[ -n $place ]] && usable_cuda "$place"; then
      echo "$place"
      return
    fi
  done
}

wheel_root=$build/cuda/nvidia/cu13
have_wheels() { usable_cuda "$wheel_root" && exists "$wheel_root/lib/libnvrtc.so.*"; }
can_download_wheels() {
  have python3 && { python3 -m pip --version || python3 -c 'import ensurepip, venv'; } &>/dev/null
}

# Unpacks NVRTC and the headers below the build folder; nothing is installed.
download_wheels() {
  local python=python3 folder=$build/cuda-wheels wheel
  say "No CUDA toolkit found: taking NVRTC and the headers from the Python package index"
  rm -rf "$folder" "$build/cuda"
  mkdir -p "$folder"
  if ! python3 -m pip --version &>/dev/null; then
    python3 -m venv "$folder/venv"
    python=$folder/venv/bin/python
  fi
  "$python" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
    --dest "$folder" 'nvidia-cuda-nvrtc==13.0.*' 'nvidia-cuda-runtime==13.0.*'
  for wheel in "$folder"/*.whl; do python3 -m zipfile -e "$wheel" "$build/cuda"; done
  rm -rf "$folder"
  have_wheels || die "The wheels of nvidia-cuda-nvrtc and nvidia-cuda-runtime lack cuda.h, nvrtc.h or libnvrtc."
}

# ---- building ---------------------------------------------------------------------------------

# What ccache asks for before it stores objects that use a precompiled header.
export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros}
# Checkouts of one commit share what ccache stores: to it paths are relative to the checkout. The
# lines of a debugger may then name the file of another checkout, of the same content.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$root} CCACHE_NOHASHDIR=1

# configure FOLDER [CMAKE-ARGUMENT...]: with KILN_WERROR=ON in the environment, warnings are errors;
# a user's compiler may warn of what those seen so far do not. With KILN_UNITY=OFF files are compiled
# one by one, which is quicker for one edit after another of the same file.
configure() {
  local folder=$1 cuda arguments=()
  shift
  cuda=$(find_cuda)
  if [[ -z $cuda ]]; then
    have_wheels || download_wheels
    cuda=$wheel_root
  fi
  [[ -f $folder/CMakeCache.txt ]] || arguments+=(-G Ninja)
  if have ccache; then
    arguments+=(-DCMAKE_C_COMPILER_LAUNCHER=ccache -DCMAKE_CXX_COMPILER_LAUNCHER=ccache)
  fi
  # -U: CMake keeps what it once found, and the toolkit may have changed since.
  # -g1: lines alone; where variables are would take the compiler a fifth more.
  cmake -S "$root" -B "$folder" --log-level=WARNING "${arguments[@]}" -U KILN_CUDA_INCLUDE \
    -U KILN_NVRTC_INCLUDE -U KILN_NVRTC_FOLDER "-DKILN_CUDA_ROOT=$cuda" "-DKILN_WERROR=${KILN_WERROR:-OFF}" \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -g1 -DNDEBUG" \
    "-DKILN_UNITY=${KILN_UNITY:-ON}" "$@" >/dev/null
  complete_commands "$folder"
}

# complete_commands FOLDER: for lint and editors, CMake leaves out the files of groups (src/unity.cmake).
complete_commands() { ! have python3 || python3 "$root/.ci/sources.py" commands "$1"; }

# compile FOLDER [TARGET...]: everything if no target is named.
compile() {
  local folder=$1 targets=() tries=0
  shift
  (($# == 0)) || targets=(--target "$@")
  until cmake --build "$folder" "${targets[@]}"; do
    # What fails may be two files of a group that do not fit together, and not one of them; a fault of a
    # header, which no group is the cause of, is not asked about for ever.
    ((tries++ < 3)) && take_apart "$folder" "${targets[@]}" || die "FAILED: it does not build"
  done
}

# take_apart FOLDER [ARGUMENT...]: has the files of the groups that do not compile compiled one by one, from
# now on in this folder. Fails if no group is what does not compile.
take_apart() {
  local folder=$1 group groups
  groups=$(cmake --build "$@" 2>&1 | sed -n 's:^FAILED\: \(.*/Unity/unity_.*_cxx\.cxx\)\.o.*:\1:p') || true
  [[ -n $groups ]] || return 1
  while read -r group; do
    note "Once more, file by file: ${group##*/}"
    sed -n 's:^#include "\(.*\)"$:\1:p' "$folder/$group" >>"$folder/groups/apart"
  done <<<"$groups"
  cmake --log-level=WARNING "$folder" >/dev/null
  complete_commands "$folder"
}

# compile_sanitized TARGET...: with AddressSanitizer and UBSan, the library and the kernels that it compiles,
# in a folder of its own. -O0, because with -O1 both sanitizers together take the compiler twice as long.
sanitized=$build/sanitize
compile_sanitized() {
  configure "$sanitized" -DKILN_SANITIZE=ON -DKILN_BUILD_TESTS=ON -DKILN_BUILD_SAMPLES=OFF \
    -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O0 -g1"
  compile "$sanitized" "$@"
}
# ASAN_OPTIONS of programs that run kernels: the tracer of gcc 12's LeakSanitizer crashes at the end of one
# that has unloaded hundreds of sanitized kernels.
without_leaks=detect_leaks=0

# ---- testing ----------------------------------------------------------------------------------

# What tests remember of earlier runs, of this checkout or another, for it is named by its content:
# kernels that were compiled, results of the host device, what NVRTC said, what lint found nothing in.
# A folder of the user's, so that a fresh clone of nearly the same sources tests what is new alone.
memory_of_tests=$build/memory
[[ -z ${HOME:-} ]] || memory_of_tests=${XDG_CACHE_HOME:-$HOME/.cache}/kiln-tests

# state_of_results: a name for the state of what turns a question of the tests (operation_case.cpp,
# kernel_compile_test.cpp) into its answer. What is remembered of one state says nothing of another.
#
# A question has the kernel's text, in which the headers of kernel_sources/ are expanded, the
# compiler's options and version, each launch with its parameters, and the bytes of every operand. So
# what makes those may change: engines, the generator of text, problems, tuning. The reference may,
# for it computes in every run, and results are compared with it. The state has the rest of the way
# to an answer, with all of the project's headers that are compiled into it: compiling,
# the kernel cache, loading, filling parameters, the host device, and what every part of the library
# uses (src/core). Of src/plan that is the plan itself and finding its kernel; it records, tunes and
# compiles in the background beside that. Kernels call the C library, whose functions round
# differently with instructions of other processors.
state_of_results() {
  {
    (cd "$root" && find src/core src/compile src/device/host src/plan/plan.cpp src/plan/parameters.cpp \
      src/plan/kernel_*.cpp cache tests/ops/operation_case.cpp -name '*.cpp' |
      xargs python3 .ci/sources.py inputs | cut -f 2 | tr ' ' '\n' | sort -u | xargs sha1sum)
    ldd --version 2>&1 | head -1
    grep -m 1 -E '^(flags|Features)' /proc/cpuinfo || true
  } | sha1sum | cut -c 1-16
}

# prune_memory FOLDER: of what is remembered there, what was used last stays, up to 1 GiB.
prune_memory() {
  find "$1" -type f -printf '%T@ %s %p\n' | sort -rn |
    awk '{ bytes += $2 } bytes > 2 ^ 30 { sub(/^[^ ]+ [^ ]+ /, ""); print }' | xargs -r -d '\n' rm -f
  find "$1" -mindepth 1 -type d -empty -delete
}

# forget_failed FOLDER: removes the answers that a process touched which ended without having passed.
forget_failed() {
  local list
  for list in "$1"/touched/*; do
    [[ -f $list && ! -d /proc/${list##*/} ]] || continue
    sed "s:^\(..\):$1/\1/\1:" "$list" | xargs -r -d '\n' rm -f
    rm -f "$list"
  done
}

# Succeeds where Kiln finds no GPU, and prints why.
no_gpu() { "$build/src/kiln" info | sed -n 's/^ *cuda  *none: //p' | grep .; }
