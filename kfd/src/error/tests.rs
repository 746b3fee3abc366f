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
    insta::assert_snapshot!(open(absent()), @"");
    let wsl = absent().file("/proc/version", "Linux version 6.6.87.2-microsoft-standard-WSL2");
    insta::assert_snapshot!(open(wsl), @"");
    let container = || absent().file("/.dockerenv", "");
    insta::assert_snapshot!(open(container()), @"");
    insta::assert_snapshot!(open(container().file("/sys/module/amdgpu/version", "")), @"");
    let module = || absent().file("/sys/module/amdgpu/version", "");
    insta::assert_snapshot!(open(module()), @"");
    insta::assert_snapshot!(open(module().file("/sys/class/kfd/kfd/dev", "")), @"");
}

#[test]
fn not_allowed() {
    insta::assert_snapshot!(refused(permissions()), @"");
    insta::assert_snapshot!(refused(Permissions { caller_gids: vec![1000, 109], ..permissions() }), @"");
    insta::assert_snapshot!(refused(Permissions { gid: 65534, group: Some("nogroup".into()), ..permissions() }), @"");
    insta::assert_snapshot!(refused(Permissions { mode: 0o600, ..permissions() }), @"");
    insta::assert_snapshot!(refused(Permissions { group: None, ..permissions() }), @"");
    insta::assert_snapshot!(open(Script::default().refuse_open("/dev/kfd", Errno::EACCES)), @"");
    let cgroup = Script::default().refuse_open("/dev/kfd", Errno::EPERM).permissions(permissions());
    insta::assert_snapshot!(open(cgroup), @"");
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
    insta::assert_snapshot!(open(script), @"");
    insta::assert_snapshot!(open(Script::default().fail("GET_VERSION", Errno::EBADF)), @"");
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
    insta::assert_snapshot!(device(Script::machine().refuse_open(render, Errno::ENOENT)), @"");
    insta::assert_snapshot!(device(Script::machine().refuse_open(render, Errno::EACCES).permissions(permissions())), @"");
    insta::assert_snapshot!(device(Script::machine().fail("ACQUIRE_VM", Errno::EBUSY)), @"");
    insta::assert_snapshot!(device(Script::machine().fail("ACQUIRE_VM", Errno::EINVAL)), @"");
    insta::assert_snapshot!(device(node("gfx_target_version 80003\n")), @"");
    insta::assert_snapshot!(device(node("simd_count 4\n")), @"");
    insta::assert_snapshot!(device(node("gfx_target_version 110000\n")), @"");
    insta::assert_snapshot!(device(node(&format!("{gpu}capability 4096\n"))), @"");
    let hidden = Script::machine().on_ioctl(|name, arg| {
        (name == "GET_PROCESS_APERTURES_NEW").then(|| {
            crate::testing::edit(arg, |args: &mut crate::uapi::GetProcessAperturesNewArgs| args.num_of_nodes = 0);
            Ok(0)
        })
    });
    insta::assert_snapshot!(device(hidden), @"");
}
