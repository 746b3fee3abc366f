//! `kfdrun doctor` on recorded machines: files in a folder and what a folder cannot hold in `kfdrun-host`.

#![allow(clippy::unwrap_used)]

use std::fs;
#[path = "limit.rs"]
mod limit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A recorded machine.
struct Tree(PathBuf);

impl Tree {
    /// One with a kernel and the right limits, and nothing else.
    fn new(name: &str) -> Tree {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("doctor").join(name);
        let _ = fs::remove_dir_all(&root);
        let tree = Tree(root);
        tree.host("uid 1000\ngids 1000 4 24\npage_size 4096\nlimit_as unlimited\nlimit_nofile 1024\n")
            .file("/proc/version", "Linux version 6.12.9 (builder@host) #1 SMP\n")
            .file("/proc/sys/vm/max_map_count", "65530\n")
            .file("/proc/self/gid_map", "         0          0 4294967295\n")
    }

    fn file(self, path: &str, contents: impl AsRef<[u8]>) -> Tree {
        let path = self.0.join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
        self
    }

    fn folder(self, path: &str) -> Tree {
        fs::create_dir_all(self.0.join(path.trim_start_matches('/'))).unwrap();
        self
    }

    /// Lines of `kfdrun-host`, instead of those there are.
    fn host(self, lines: &str) -> Tree {
        self.file("kfdrun-host", format!("kfdrun-host 1\n{lines}"))
    }

    /// More lines of `kfdrun-host`.
    fn also(self, lines: &str) -> Tree {
        let text = fs::read_to_string(self.0.join("kfdrun-host")).unwrap();
        self.file("kfdrun-host", text + lines)
    }

    fn module(self) -> Tree {
        self.folder("/sys/module/amdgpu/parameters").file("/sys/module/amdgpu/parameters/sched_policy", "0\n")
    }

    /// A topology of one node of host cores.
    fn cpu(self) -> Tree {
        let node = "/sys/class/kfd/kfd/topology/nodes/0";
        self.file("/sys/class/kfd/kfd/topology/generation_id", "2\n")
            .file(&format!("{node}/gpu_id"), "0\n")
            .file(&format!("{node}/properties"), "cpu_cores_count 32\nsimd_count 0\n")
    }

    /// A GPU as node `index`, some of its properties replaced; an empty value takes the line out.
    fn gpu(self, index: u32, changes: &[(&str, &str)]) -> Tree {
        let node = format!("/sys/class/kfd/kfd/topology/nodes/{index}");
        let mut properties = String::new();
        for line in GPU.lines() {
            let (key, value) = line.split_once(' ').unwrap();
            match changes.iter().find(|(changed, _)| *changed == key) {
                Some((_, "")) => {}
                Some((_, value)) => properties += &format!("{key} {value}\n"),
                None => properties += &format!("{key} {value}\n"),
            }
        }
        self.file(&format!("{node}/gpu_id"), format!("{}\n", 56386 + index))
            .file(&format!("{node}/properties"), properties)
            .file(&format!("{node}/mem_banks/0/properties"), "heap_type 1\nsize_in_bytes 25753026560\n")
            .file(&format!("{node}/io_links/0/properties"), "type 2\nnode_from 1\nnode_to 0\nflags 1\n")
    }

    /// A PCI device: class, and for a bridge its port type, Device Capabilities 2 and Device Control 2.
    fn pci(self, path: &str, class: &str, express: Option<(u16, u32, u32)>) -> Tree {
        let folder = format!("/sys/devices/pci0000:00/{path}");
        let mut config = vec![0u8; 256];
        if let Some((port, cap2, control2)) = express {
            (config[6], config[0x34], config[0x40]) = (0x10, 0x40, 0x10);
            config[0x42..0x44].copy_from_slice(&(port << 4 | 2).to_le_bytes());
            config[0x64..0x68].copy_from_slice(&cap2.to_le_bytes());
            config[0x68..0x6c].copy_from_slice(&control2.to_le_bytes());
        }
        let tree =
            self.file(&format!("{folder}/config"), config).file(&format!("{folder}/class"), format!("{class}\n"));
        tree.file(&format!("{folder}/vendor"), "0x1002\n").file(&format!("{folder}/device"), "0x744c\n")
    }

    fn doctor(&self, options: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kfdrun"));
        limit::output(command.arg("doctor").arg("--root").arg(&self.0).args(options))
    }

    /// The report of a run that ends with this status.
    #[track_caller]
    fn report(&self, status: i32) -> String {
        let output = self.doctor(&[]);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}{}", String::from_utf8_lossy(&output.stderr));
        let json = String::from_utf8(self.doctor(&["--json"]).stdout).unwrap();
        assert!(json.starts_with("{\n  \"schema\": \"kfdrun-doctor\",\n  \"schema_version\": 1,\n"), "{json}");
        said
    }
}

const GPU: &str = "cpu_cores_count 0
simd_count 192
array_count 12
simd_arrays_per_engine 2
cu_per_simd_array 8
simd_per_cu 2
max_waves_per_simd 16
gfx_target_version 110000
location_id 768
domain 0
drm_render_minor 128
num_sdma_engines 2
num_sdma_xgmi_engines 0
cwsr_size 46047232
ctl_stack_size 40960
capability 671326848
";

const ROOT_PORT: u16 = 4;
const UPSTREAM: u16 = 5;
const DOWNSTREAM: u16 = 6;
const ROUTING: u32 = 1 << 6;
const COMPLETER: u32 = 1 << 7 | 1 << 8;
const EGRESS_BLOCK: u32 = 1 << 7;
const BRIDGE: &str = "0x060400";

const RENDER_NODES: &str = "node /dev/kfd 0 110 660 render\nnode /dev/dri/renderD128 0 110 660 render\n";

/// A machine where everything is in order.
fn good(name: &str) -> Tree {
    let path = "0000:00:01.1/0000:01:00.0/0000:02:00.0";
    Tree::new(name)
        .module()
        .cpu()
        .gpu(1, &[])
        .folder("/sys/class/kfd")
        .also("gids 1000 110\nversion 1 17\nopen /dev/kfd 0\nopen /dev/dri/renderD128 0\n")
        .also(RENDER_NODES)
        .pci("0000:00:01.1", BRIDGE, Some((ROOT_PORT, COMPLETER, 0)))
        .pci("0000:00:01.1/0000:01:00.0", BRIDGE, Some((UPSTREAM, ROUTING, 0)))
        .pci(path, BRIDGE, Some((DOWNSTREAM, ROUTING, 0)))
        .pci(&format!("{path}/0000:03:00.0"), "0x030000", Some((0, 0, 0)))
}

#[test]
fn a_machine_in_order() {
    insta::assert_snapshot!(good("good").report(0));
}

#[test]
fn a_user_outside_the_group() {
    let tree = good("no-group").also("gids 1000 4 24\nopen /dev/kfd 13\nopen /dev/dri/renderD128 13\n");
    let report = tree.report(1);
    assert!(
        report.contains("EACCES") && report.contains("group render (gid 110)") && report.contains("--group-add 110")
    );
    assert!(!report.to_lowercase().contains("resources"), "the number is never relabelled");
    insta::assert_snapshot!(report);
}

#[test]
fn a_group_that_the_user_namespace_does_not_map() {
    let tree = good("rootless")
        .host("uid 0\ngids 0\nopen /dev/kfd 13\nopen /dev/dri/renderD128 13\nnode /dev/kfd 65534 65534 660 nogroup\n")
        .file("/proc/self/gid_map", "         0       1000          1\n         1     100000      65536\n")
        .file("/run/.containerenv", "");
    insta::assert_snapshot!(tree.report(1));
}

#[test]
fn windows() {
    let tree = Tree::new("wsl")
        .file("/proc/version", "Linux version 5.15.153.1-microsoft-standard-WSL2 (root@host) #1 SMP\n")
        .file("/dev/dxg", "");
    insta::assert_snapshot!(tree.report(1));
}

#[test]
fn a_sandbox() {
    let version = "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n";
    assert!(Tree::new("gvisor").file("/proc/version", version).report(1).contains("gVisor, which has no support"));
}

#[test]
fn no_topology() {
    let tree = Tree::new("no-topology").module().folder("/sys/class/kfd").also("open /dev/kfd 12\n");
    insta::assert_snapshot!(tree.report(1));
}

#[test]
fn a_bridge_that_passes_no_atomics_on() {
    let path = "0000:00:01.1/0000:01:00.0";
    let tree = Tree::new("atomics")
        .module()
        .cpu()
        .also("open /dev/kfd 12\n")
        .pci("0000:00:01.1", BRIDGE, Some((ROOT_PORT, COMPLETER & !(1 << 8), 0)))
        .pci(path, BRIDGE, Some((UPSTREAM, ROUTING, EGRESS_BLOCK)))
        .pci(&format!("{path}/0000:02:00.0"), BRIDGE, Some((DOWNSTREAM, 0, 0)))
        .pci(&format!("{path}/0000:02:00.0/0000:03:00.0"), "0x030000", Some((0, 0, 0)))
        .pci("0000:00:03.1", BRIDGE, Some((ROOT_PORT, COMPLETER, 0)));
    let report = tree.report(1);
    for part in
        ["0000:00:01.1 lacks 64-bit", "0000:01:00.0 lacks AtomicOps let out", "0000:02:00.0 lacks AtomicOp routing"]
    {
        assert!(report.replace("\n           ", " ").contains(part), "{part}: {report}");
    }
    insta::assert_snapshot!(report);
}

#[test]
fn config_space_that_only_root_may_read() {
    let tree = good("user");
    for path in ["0000:00:01.1", "0000:00:01.1/0000:01:00.0", "0000:00:01.1/0000:01:00.0/0000:02:00.0"] {
        let file = tree.0.join("sys/devices/pci0000:00").join(path).join("config");
        fs::write(&file, &fs::read(&file).unwrap()[..64]).unwrap();
    }
    let links = "/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties";
    let report = tree.file(links, "type 2\nflags 13\n").report(0);
    assert!(report.contains("can be checked by root only"), "{report}");
    assert!(report.contains("link to the host has no 32- and 64-bit atomics"), "{report}");
}

#[test]
fn a_damaged_topology() {
    let node = |index: u32, file: &str| format!("/sys/class/kfd/kfd/topology/nodes/{index}/{file}");
    let tree = good("damaged")
        // More compute units than there are; no copy engine; no context save sizes.
        .gpu(1, &[("simd_count", "216"), ("num_sdma_engines", "0"), ("cwsr_size", ""), ("ctl_stack_size", "")])
        .file(&node(2, "gpu_id"), "7\n")
        .gpu(3, &[("simd_count", "99999999999999999999")])
        .gpu(4, &[("simd_per_cu", "0"), ("gfx_target_version", ""), ("drm_render_minor", "0")])
        .gpu(5, &[("array_count", "4294967295"), ("cu_per_simd_array", "4294967295"), ("gfx_target_version", "80003")])
        .gpu(6, &[])
        .file(&node(6, "mem_banks/0/properties"), "heap_type 1\nsize_in_bytes 18446744073709551615\n")
        .file(&node(6, "mem_banks/1/properties"), "heap_type 1\nsize_in_bytes 18446744073709551615\n")
        .folder(&node(7, ""))
        .also("error /sys/class/kfd/kfd/topology/nodes/7/gpu_id 1\n")
        .also("env HSA_OVERRIDE_GFX_VERSION=\n");
    // Two of the GPUs work, so what is wrong with the others is a warning.
    insta::assert_snapshot!(tree.report(0));
}

#[test]
fn limits_and_variables() {
    let tree = good("limits")
        .also("limit_as 8589934592\nlimit_nofile 64\nversion 1 9\n")
        .also("env HSA_OVERRIDE_GFX_VERSION=10.3.0\nenv HSA_OVERRIDE_GFX_VERSION_1=eleven\nenv HSA_XNACK=1\nenv HSA_CU_MASK=\n")
        .file("/proc/sys/vm/max_map_count", "1024\n")
        .file("/sys/module/amdgpu/version", "6.10.5\n")
        .file("/sys/module/amdgpu/parameters/sched_policy", "2\n");
    insta::assert_snapshot!(tree.report(0));
}

/// Entries of a tar archive: path and contents, none for a folder.
fn unpack(mut archive: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let mut entries = Vec::new();
    while archive[0] != 0 {
        let (header, rest) = archive.split_at(512);
        let text = |from: usize, to: usize| {
            let field = &header[from..to];
            let end = field.iter().position(|byte| *byte == 0).unwrap_or(field.len());
            String::from_utf8(field[..end].to_vec()).unwrap()
        };
        let sum: u32 =
            header.iter().enumerate().map(|(i, b)| if (148..156).contains(&i) { 32 } else { u32::from(*b) }).sum();
        assert_eq!(u32::from_str_radix(text(148, 156).trim(), 8), Ok(sum), "checksum of {}", text(0, 100));
        let size = usize::from_str_radix(&text(124, 136), 8).unwrap();
        let path = match text(345, 500) {
            prefix if prefix.is_empty() => text(0, 100),
            prefix => format!("{prefix}/{}", text(0, 100)),
        };
        entries.push((path, (header[156] == b'0').then(|| rest[..size].to_vec())));
        archive = &rest[size.next_multiple_of(512)..];
    }
    assert!(archive.len() == 1024 && archive.iter().all(|byte| *byte == 0), "two blocks of zeros end it");
    entries
}

#[test]
fn a_bundle_gives_the_same_report() {
    for (tree, status) in [
        (good("bundled"), 0),
        (
            Tree::new("bundled-wsl")
                .file("/proc/version", "Linux version 5.15 Microsoft\n")
                .also("env HSA_XNACK=a b\n"),
            1,
        ),
    ] {
        let report = tree.report(status);
        let path = tree.0.join("bundle.tar");
        let output = tree.doctor(&["--bundle", path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(status));
        let mut copy = Tree(tree.0.with_extension("unpacked"));
        let _ = fs::remove_dir_all(&copy.0);
        for (path, contents) in unpack(&fs::read(&path).unwrap()) {
            copy = match contents {
                Some(contents) => copy.file(&path, contents),
                None => copy.folder(&path),
            };
        }
        assert_eq!(copy.report(status), report);
        assert_eq!(fs::read_to_string(copy.0.join("report.txt")).unwrap(), report);
    }
}

#[test]
fn what_cannot_be_done_is_another_status() {
    let tree = good("errors");
    let output = tree.doctor(&["--bundle", "/nonexistent/folder/bundle.tar"]);
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/nonexistent/folder/bundle.tar: No such file"));
    let output = tree.file("kfdrun-host", "something else\n").doctor(&[]);
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("does not start with 'kfdrun-host 1'"));
}
