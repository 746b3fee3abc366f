use super::*;
use crate::kfd::Kfd;
use crate::testing::Script;
use crate::{Device, Topology};

fn open(script: Script) -> String {
    Kfd::open_on(&script.system().0).unwrap_err().report()
}

fn absent() -> Script {
    Script::default().refuse_open("/dev/kfd", Errno::ENOENT)
}

fn permissions() -> Permissions {
    Permissions {
        mode: 0o660,
        uid: 0,
        gid: 109,
        group: Some("render".into()),
        caller_uid: 1000,
        caller_gids: vec![1000, 27, 100],
    }
}

fn refused(permissions: Permissions) -> String {
    open(Script::default().refuse_open("/dev/kfd", Errno::EACCES).permissions(permissions))
}

#[test]
fn no_node() {
    insta::assert_snapshot!(open(absent()), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: the amdgpu module makes the node, and /sys/module/amdgpu does not exist
      do: sudo modprobe amdgpu; then look at dmesg | grep -iE 'kfd|amdgpu'
    ");
    let wsl = absent().file("/proc/version", "Linux version 6.6.87.2-microsoft-standard-WSL2");
    insta::assert_snapshot!(open(wsl), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: WSL passes GPUs through /dev/dxg; its kernel has no AMDKFD
      do: use a real Linux host, or an emulated GPU
    ");
    let container = || absent().file("/.dockerenv", "");
    insta::assert_snapshot!(open(container()), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: this is a container, and the host has no amdgpu module loaded
      do: on the host: sudo modprobe amdgpu; then look at dmesg | grep -iE 'kfd|amdgpu'
    ");
    insta::assert_snapshot!(open(container().file("/sys/module/amdgpu/version", "")), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: this is a container, and the host has the amdgpu module loaded
      do: start the container with --device /dev/kfd --device /dev/dri (Apptainer: --bind)
    ");
    let module = || absent().file("/sys/module/amdgpu/version", "");
    insta::assert_snapshot!(open(module()), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: amdgpu is loaded, and /sys/class/kfd does not exist
      do: the kernel needs CONFIG_HSA_AMD=y; then look at dmesg | grep -i kfd
    ");
    insta::assert_snapshot!(open(module().file("/sys/class/kfd/kfd/dev", "")), @"
    /dev/kfd: ENOENT (2): there is no AMDKFD device node here
      rule: amdgpu is loaded and /sys/class/kfd exists
      do: devtmpfs or udev did not make the node: is /dev a full one?
    ");
}

#[test]
fn not_allowed() {
    insta::assert_snapshot!(refused(permissions()), @"
    /dev/kfd: EACCES (13): this process may not open it
      rule: owner uid 0, group render (gid 109), mode 0660; this process is uid 1000 in gids 1000 27 100
      do: sudo usermod -aG render $USER, then log in again; in a container: --group-add 109 (the host's number)
    ");
    insta::assert_snapshot!(refused(Permissions { caller_gids: vec![1000, 109], ..permissions() }), @"
    /dev/kfd: EACCES (13): this process may not open it
      rule: owner uid 0, group render (gid 109), mode 0660; this process is uid 1000 in gids 1000 109
      do: you are in group render (gid 109), so this is not a group problem: look at security modules and at dmesg | grep -i kfd
    ");
    insta::assert_snapshot!(refused(Permissions { gid: 65534, group: Some("nogroup".into()), ..permissions() }), @"
    /dev/kfd: EACCES (13): this process may not open it
      rule: owner uid 0, group nogroup (gid 65534), mode 0660; this process is uid 1000 in gids 1000 27 100
      do: the node's group is not mapped into this user namespace: map it (/etc/subgid), or run the container with the host's groups (podman: --group-add keep-groups)
    ");
    insta::assert_snapshot!(refused(Permissions { mode: 0o600, ..permissions() }), @"
    /dev/kfd: EACCES (13): this process may not open it
      rule: owner uid 0, group render (gid 109), mode 0600; this process is uid 1000 in gids 1000 27 100
      do: the group may not read and write /dev/kfd: a udev rule has to give it mode 0660
    ");
    insta::assert_snapshot!(refused(Permissions { group: None, ..permissions() }), @"
    /dev/kfd: EACCES (13): this process may not open it
      rule: owner uid 0, group gid 109, mode 0660; this process is uid 1000 in gids 1000 27 100
      do: no group here has gid 109: make one and join it; in a container: --group-add 109 (the host's number)
    ");
    insta::assert_snapshot!(open(Script::default().refuse_open("/dev/kfd", Errno::EACCES)), @"
    /dev/kfd: EACCES (13): this process may not open it
      do: look at ls -l /dev/kfd and at id: one of your groups must own the node
    ");
    let cgroup = Script::default().refuse_open("/dev/kfd", Errno::EPERM).permissions(permissions());
    insta::assert_snapshot!(open(cgroup), @"
    /dev/kfd: EPERM (1): this process may not open it
      rule: owner uid 0, group render (gid 109), mode 0660; this process is uid 1000 in gids 1000 27 100
      do: EPERM comes from a device cgroup or a security module, not from the file's mode: start the container with --device /dev/kfd
    ");
}

#[test]
fn the_driver_refuses() {
    for errno in [Errno::ENOMEM, Errno::EINVAL, Errno::ENOSPC, Errno::EMFILE, Errno::EIO] {
        insta::assert_snapshot!(
            format!("open-{}", errno.name()),
            open(Script::default().refuse_open("/dev/kfd", errno))
        );
    }
}

#[test]
fn another_interface() {
    let script = Script::default().on_ioctl(|name, arg| {
        assert_eq!(name, "GET_VERSION");
        crate::testing::edit(arg, |args: &mut crate::uapi::GetVersionArgs| args.major_version = 2);
        Some(Ok(0))
    });
    insta::assert_snapshot!(open(script), @"
    /dev/kfd has interface 2.0
      rule: major version must be 1
      do: this program is too old for the kernel
    ");
    insta::assert_snapshot!(open(Script::default().fail("GET_VERSION", Errno::EBADF)), @"
    GET_VERSION: EBADF (9)
      rule: only the process that opened /dev/kfd may use it
      do: a forked child has to open /dev/kfd itself
    ");
}

fn device(script: Script) -> String {
    let (system, _) = script.system();
    let kfd = Kfd::open_on(&system).unwrap();
    let topology = Topology::read(&system).unwrap();
    Device::open(&kfd, topology.first_gpu().unwrap(), topology.node_count()).unwrap_err().report()
}

#[test]
fn a_gpu_that_cannot_be_had() {
    let render = "/dev/dri/renderD128";
    let node = |lines: &str| Script::machine().file("/sys/class/kfd/kfd/topology/nodes/1/properties", lines);
    let gpu = "gfx_target_version 110000\ndrm_render_minor 128\n";
    insta::assert_snapshot!(device(Script::machine().refuse_open(render, Errno::ENOENT)), @"
    /dev/dri/renderD128: ENOENT (2): cannot be opened
      rule: the render node that the topology names does not exist here
      do: in a container, pass it: --device /dev/dri/renderD<minor>
    ");
    insta::assert_snapshot!(device(Script::machine().refuse_open(render, Errno::EACCES).permissions(permissions())), @"
    /dev/dri/renderD128: EACCES (13): this process may not open it
      rule: owner uid 0, group render (gid 109), mode 0660; this process is uid 1000 in gids 1000 27 100
      do: sudo usermod -aG render $USER, then log in again; in a container: --group-add 109 (the host's number)
    ");
    insta::assert_snapshot!(device(Script::machine().fail("ACQUIRE_VM", Errno::EBUSY)), @"
    ACQUIRE_VM: EBUSY (16)
      rule: this process has acquired the GPU through another open of its render node
      do: keep one open of /dev/kfd and its devices for the life of the process
    ");
    insta::assert_snapshot!(device(Script::machine().fail("ACQUIRE_VM", Errno::EINVAL)), @"
    ACQUIRE_VM: EINVAL (22)
      rule: drm_fd must be a render node of amdgpu whose VM no one else has acquired
      do: this is a defect of the program that called, and not of the machine
    ");
    insta::assert_snapshot!(device(node("gfx_target_version 80003\n")), @"
    gfx803 cannot be driven
      rule: gfx9 to gfx12 have the doorbells, rings and save areas this runtime knows
      do: use another GPU, or an emulated one
    ");
    insta::assert_snapshot!(device(node("simd_count 4\n")), @"
    topology node 1: gfx_target_version is absent
      rule: major * 10000 + minor * 100 + stepping, minor and stepping below 16
      do: the kernel's topology is damaged or of an unknown form: please report it with the file
    ");
    insta::assert_snapshot!(device(node("gfx_target_version 110000\n")), @"
    topology node 1: drm_render_minor is absent
      rule: a GPU node names the render node /dev/dri/renderD<minor>
      do: the kernel's topology is damaged or of an unknown form: please report it with the file
    ");
    insta::assert_snapshot!(device(node(&format!("{gpu}capability 4096\n"))), @"
    gfx1100 cannot be driven
      rule: its capability bits 12-13 say its doorbells have not 64 bits
      do: use another GPU, or an emulated one
    ");
    let hidden = Script::machine().on_ioctl(|name, arg| {
        (name == "GET_PROCESS_APERTURES_NEW").then(|| {
            crate::testing::edit(arg, |args: &mut crate::uapi::GetProcessAperturesNewArgs| args.num_of_nodes = 0);
            Ok(0)
        })
    });
    insta::assert_snapshot!(device(hidden), @"
    the kernel has no apertures for gpu_id 56387
      rule: it has them for every GPU that this process may use, and that is none
      do: the device cgroup of a container hides a GPU whose render node it does not allow: pass --device /dev/dri/renderD<minor>
    ");
}
