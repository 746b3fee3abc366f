#!/usr/bin/env bash
# Boots Debian's kernel with its amdgpu module in a virtual machine without a GPU, and runs a program
# there, with the shared libraries it names.
#
#     vm.sh WORK OUTPUT PROGRAM [ARG...]
#
# WORK keeps the kernel between runs; OUTPUT gets what the program printed, in between the console's other lines. The
# status is the program's, or 90 and more when it did not come to run: 90 no kernel package, 91 a module is missing, 92
# the machine did not start or took too long.
#
# Needs qemu-system-x86 and busybox-static (installed, apt), dpkg, kmod, xz. Variables: KFDRUN_VM_TIMEOUT in
# seconds (300), KFDRUN_VM_KERNEL for a kernel version such as 6.12.117+deb12-amd64 (the newest 6.12 of the archive).
set -euo pipefail

say() { printf 'vm.sh: %s\n' "$*" >&2; }
fail() { local status=$1; shift; say "$*"; exit "$status"; }

work=$1 output=$2 program=$3
shift 3
mkdir -p "$work"
work=$(cd "$work" && pwd)
limit=${KFDRUN_VM_TIMEOUT:-300}

# The kernel: downloaded and unpacked, never installed.
kernel=${KFDRUN_VM_KERNEL:-$(apt-cache search --names-only '^linux-image-6\.12\.[0-9.]*\+deb[0-9]*-amd64$' |
    cut -d' ' -f1 | sort -V | tail -n 1 | sed 's/^linux-image-//')}
[ -n "$kernel" ] || fail 90 'the package archive has no 6.12 kernel (apt-cache search linux-image-6.12)'
tree=$work/$kernel
if [ ! -e "$tree/ready" ]; then
    rm -rf "$tree"
    mkdir -p "$tree"
    say "downloading linux-image-$kernel"
    (cd "$tree" && apt-get download -qq "linux-image-$kernel" && dpkg -x ./*.deb . && rm ./*.deb) ||
        fail 90 "linux-image-$kernel could not be downloaded"
    # Since the merger of /usr modules lie below it.
    [ -e "$tree/lib/modules" ] || { mkdir -p "$tree/lib" && ln -s ../usr/lib/modules "$tree/lib/modules"; }
    PATH=$PATH:/sbin:/usr/sbin depmod -b "$tree" "$kernel"
    touch "$tree/ready"
fi
modules=$tree/lib/modules/$kernel

# The modules amdgpu needs, in the order in which they are loaded: modules.dep lists them last first.
line=$(grep -E '/amdgpu\.ko(\.xz)?:' "$modules/modules.dep") || fail 91 'the kernel package has no amdgpu module'
order=$(printf '%s\n' "${line#*:}" | tr ' ' '\n' | grep . | tac; printf '%s\n' "${line%%:*}")

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mkdir -p "$root"/{bin,dev,proc,sys,tmp,modules}
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$program" "$root/bin/program"
# Nothing for a static program, of which ldd says so with an error.
(ldd "$program" 2>/dev/null || true) | grep -o '/[^ ]*' | while read -r library; do
    mkdir -p "$root$(dirname "$library")"
    cp -L "$library" "$root$library"
done
loads=
for module in $order; do
    name=$(basename "$module" .xz)
    case $module in
        *.xz) xz -dc "$modules/$module" > "$root/modules/$name" ;;
        *) cp "$modules/$module" "$root/modules/$name" ;;
    esac
    loads+="insmod /modules/$name || echo \"vm: $name does not load\""$'\n'
done
arguments=$(printf ' %q' "$@")
cat > "$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
ip link set lo up
$loads
echo "vm: kernel \$(uname -r)"
[ -e /dev/kfd ] || echo 'vm: there is no /dev/kfd'
# Kernel messages would come in between the program's lines.
echo 1 > /proc/sys/kernel/printk
/bin/program$arguments < /dev/null
echo "vm: program ended with status \$?"
dmesg | grep -E 'BUG|WARNING|Oops|amdkfd|kfd:' | tail -n 20
echo 'vm: end'
poweroff -f
INIT
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null | gzip -1 > "$work/initramfs.gz")

say "booting $kernel (limit $limit s)"
status=0
# Under TCG: it needs no rights and behaves the same everywhere.
timeout "$limit" qemu-system-x86_64 -accel tcg -cpu max -m 1024 -nographic -no-reboot -nodefaults -serial stdio \
    -kernel "$tree/boot/vmlinuz-$kernel" -initrd "$work/initramfs.gz" \
    -append 'console=ttyS0 quiet panic=-1 nokaslr' < /dev/null > "$output" 2> "$work/qemu.log" || status=$?
tr -d '\r' < "$output" > "$output.text" && mv "$output.text" "$output"
if ! grep -q '^vm: end' "$output"; then
    tail -n 30 "$output" "$work/qemu.log" >&2
    fail 92 "the machine did not come to its end (qemu status $status; 124 is the time limit)"
fi
grep -a '^vm: ' "$output" >&2
ended=$(sed -n 's/^vm: program ended with status //p' "$output" | tail -n 1)
exit "${ended:-92}"
