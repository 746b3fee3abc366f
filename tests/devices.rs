//! `kfdrun devices`: what people and scripts read.

#![allow(clippy::unwrap_used)]

use std::fs;
#[path = "limit.rs"]
mod limit;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn kfdrun(words: &[&str]) -> Output {
    limit::output(Command::new(env!("CARGO_BIN_EXE_kfdrun")).args(words))
}

/// Standard output of a run that ends with this status.
#[track_caller]
fn devices(options: &[&str], status: i32) -> String {
    let output = kfdrun(&[&["devices"], options].concat());
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(status), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

#[test]
fn names_only() {
    let names = "gfx900\ngfx906\ngfx90a\ngfx942\ngfx1030\ngfx1100\ngfx1201\n";
    assert_eq!(devices(&["--device", "emu", "--arch"], 0), names);
    assert_eq!(devices(&["--device", "emu:gfx1030", "--arch"], 0), "gfx1030\n");
    let before = kfdrun(&["--device", "emu:gfx1030", "devices", "--arch"]);
    assert_eq!(String::from_utf8_lossy(&before.stdout), "gfx1030\n", "the option before the command does as well");
}

#[test]
fn labels() {
    insta::assert_snapshot!(devices(&["--device", "emu:gfx90a"], 0));
    // Of several machines only the GPUs.
    let all = devices(&["--device", "emu"], 0);
    assert_eq!(all.matches("  Device Type:             GPU\n").count(), 7);
    assert_eq!(all.matches("CPU").count(), 0);
}

#[test]
fn trees() {
    insta::assert_snapshot!(devices(&["--device", "emu", "--tree"], 0));
}

#[test]
fn json() {
    insta::assert_snapshot!(devices(&["--device", "emu:gfx942", "--json"], 0));
}

/// A recorded machine with these files in its topology.
fn recorded(name: &str, files: &[(&str, &str)]) -> PathBuf {
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("devices").join(name);
    let _ = fs::remove_dir_all(&root);
    fs::create_dir_all(&root).unwrap();
    fs::write(root.join("kfdrun-host"), "kfdrun-host 1\nopen /dev/kfd 13\n").unwrap();
    for (path, contents) in files {
        let path = root.join("sys/class/kfd/kfd/topology").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }
    root
}

#[test]
fn a_machine_without_topology() {
    let root = recorded("none", &[]);
    let options = ["--root", root.to_str().unwrap()];
    assert_eq!(devices(&options, 125), "");
    let json = devices(&[&options[..], &["--json"]].concat(), 125);
    assert!(json.contains("\"agents\": []") && json.contains("generation_id: ENOENT (2)"), "{json}");
    let output = kfdrun(&["devices", "--root", root.to_str().unwrap()]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("no GPU is listed: kfdrun doctor"), "{said}");
}

/// What is absent is left out and `null`, never 0; nodes that cannot be read do not hide the others.
#[test]
fn damaged_machines() {
    let root = recorded(
        "damaged",
        &[
            ("generation_id", "1\n"),
            ("nodes/0/gpu_id", "0\n"),
            ("nodes/0/properties", "cpu_cores_count 4\n"),
            ("nodes/1/gpu_id", "9\n"),
            ("nodes/1/properties", "gfx_target_version 90010\nsimd_count 416\nsimd_per_cu 0\ncapability 67108864\n"),
            ("nodes/2/gpu_id", "x\n"),
            ("nodes/3/gpu_id", "7\n"),
            (
                "nodes/3/properties",
                "simd_count 4294967295\nsimd_per_cu 1\narray_count 4294967295\nsimd_arrays_per_engine 1\ncu_per_simd_array \
                 4294967295\nnum_xcc 4294967295\nmax_waves_per_simd 4294967295\ngfx_target_version 130000\nlocation_id \
                 4294967295\n",
            ),
            ("nodes/3/mem_banks/0/properties", "size_in_bytes 18446744073709551615\n"),
        ],
    );
    let options = ["--root", root.to_str().unwrap()];
    let text = devices(&options, 0);
    // /dev/kfd does not open, so nobody told the XNACK mode.
    assert!(text.contains("amdgcn-amd-amdhsa--gfx90a:sramecc+\n"), "{text}");
    let tree = devices(&[&options[..], &["--tree"]].concat(), 0);
    let json = devices(&[&options[..], &["--json"]].concat(), 0);
    let output = kfdrun(&["devices", "--root", root.to_str().unwrap()]);
    let problems = String::from_utf8_lossy(&output.stderr).into_owned();
    insta::assert_snapshot!(format!("{text}\n{tree}\n{problems}\n{json}"));
}

#[test]
fn forms_exclude_one_another() {
    for options in [["--arch", "--json"], ["--arch", "--tree"], ["--tree", "--json"]] {
        devices(&options, 2);
    }
    devices(&["--device", "emu:gfx803"], 2);
}
