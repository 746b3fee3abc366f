#!/usr/bin/env bash
# Builds the test programs' images. The images are checked in, so only a change of the sources needs this.
# Link-time optimisation is a must where a kernel calls into another file: registers are allocated for what the compiler sees.
# Needs clang-22 and ld.lld-22. `build.sh --check` rebuilds into a temporary folder and compares.
set -euo pipefail
cd "$(dirname "$0")"
out=images
if [ "${1:-}" = --check ]; then
  out=$(mktemp -d)
  trap 'rm -rf "$out"' EXIT
fi
mkdir -p "$out"
flags=(--target=amdgcn-amd-amdhsa -nogpulib -nostdlib -ffreestanding -O2 -flto -fuse-ld=lld-22 -Wl,--build-id=none -ffile-compilation-dir=. -Wno-unused-parameter)
build() { # name target sources... [-- flags]
  local name=$1 target=$2
  shift 2
  clang-22 "${flags[@]}" -mcpu="$target" "$@" -o "$out/$name.$target"
}
every=(gfx900 gfx906 gfx90a gfx942 gfx1030 gfx1100 gfx1201)
for target in "${every[@]}"; do
  build hello "$target" hello.c start.c rpc.c
  build sum "$target" sum.c start.c
  build data "$target" data.c start.c
  build stack "$target" stack.c start.c
  build groups "$target" groups.c start.c
  build fault "$target" fault.c start.c -g
  build kernels "$target" kernels.c
done
for target in gfx90a gfx1100; do
  build trap "$target" trap.c start.c -g
  build spin "$target" spin.c start.c
  build illegal "$target" illegal.c start.c -g
  build big_return "$target" big_return.c start.c
  build faults "$target" faults.c -g
  build noargs "$target" noargs.c -O0 -fno-lto
done
for target in gfx90a gfx1100; do
  build env "$target" env.c start.c rpc.c
  build prices "$target" prices.c start.c rpc.c
  build latency "$target" latency.c start.c rpc.c
  build hello-rpc19 "$target" -DRPC=19 hello.c start.c rpc.c
  build hello-rpc23 "$target" -DRPC=23 hello.c start.c rpc.c
  build latency-rpc23 "$target" -DRPC=23 latency.c start.c rpc.c
done
for target in gfx90a gfx1100; do
  build bench "$target" bench.c -ffp-contract=off
done
for version in 4 5; do
  clang-22 "${flags[@]}" -mcpu=gfx90a -mcode-object-version=$version kernels.c -o "$out/kernels-v$version.gfx90a"
done
build kernels gfx11-generic kernels.c
clang-22 "${flags[@]}" -mcpu=gfx90a:xnack+ kernels.c -o "$out/kernels-xnack.gfx90a"
clang-22 "${flags[@]}" -mcpu=gfx90a:xnack- kernels.c -o "$out/kernels-noxnack.gfx90a"
clang-22 "${flags[@]}" -mcpu=gfx1100 -mwavefrontsize64 groups.c start.c -o "$out/groups-wave64.gfx1100"
# OpenCL C and HIP, without their libraries. Formats of printf are taken out of the code before link-time optimisation.
opencl=(-fno-lto -fhosted -x cl -cl-std=CL2.0 -Xclang -finclude-default-header)
hip=(-x hip --cuda-device-only -fuse-cuid=none -nogpuinc -mprintf-kind=buffered --no-gpu-bundle-output -Wno-unused-command-line-argument)
for target in "${every[@]}"; do
  build arguments "$target" "${opencl[@]}" arguments.cl
  build prints "$target" "${opencl[@]}" prints.cl
  build hostcall "$target" hostcall.c
done
for target in gfx90a gfx1100; do
  build prints-libclc "$target" -DLIBCLC "${opencl[@]}" prints.cl
  build hidden "$target" hidden.c
  build variables "$target" -Wl,-z,undefs variables.c
  clang-22 "${hip[@]}" --offload-arch="$target" -nogpulib -O2 buffered.hip -o "$out/buffered.$target"
  clang-22 "${hip[@]}" --offload-arch="$target" -nogpulib -O2 names.hip -o "$out/names.$target"
done
build prints-v4 gfx1030 -DV4 -mcode-object-version=4 "${opencl[@]}" prints.cl
# The address sanitizer: only clang's front end lets it be chosen here, and the runtime itself is not instrumented.
sanitize=(-Xclang -fsanitize=address -g)
objects=$(mktemp -d)
for isa in gfx90a:xnack+ gfx1100; do
  clang-22 "${flags[@]}" -Wno-unused-command-line-argument -mcpu=$isa "${sanitize[@]}" -c asan.c -o "$objects/asan.o"
  clang-22 "${flags[@]}" -Wno-unused-command-line-argument -mcpu=$isa -c asan_runtime.c -o "$objects/runtime.o"
  build asan "${isa%:*}" -mcpu=$isa -Wno-unused-command-line-argument "$objects"/*.o
done
rm -r "$objects"
build asan-unlinked gfx90a "${sanitize[@]}" -Wl,-z,undefs asan.c
build hostcall-phases gfx90a -DPHASES hostcall.c
build hostcall-phases gfx1100 -DPHASES hostcall.c
build hostcall-v4 gfx90a -DV4 -mcode-object-version=4 hostcall.c
for target in gfx900 gfx906 gfx90a; do
  build gcn "$target" gcn.c
done
build gcn gfx1100 -mwavefrontsize64 gcn.c
build gcn13 gfx90a -DGCC13 gcn.c
build gcn13 gfx1100 -DGCC13 -mwavefrontsize64 gcn.c
chmod -x "$out"/*
if [ "$out" != images ]; then
  diff -r "$out" images && echo "images match their sources"
fi
