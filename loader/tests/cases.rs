//! Kernels of other people's sources, with right answers, when a folder of them and clang-22 are at hand (`KFDRUN_CASES`,
//! or `../shared/cases` beside the repository). Without either every test here prints that it skips.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "../../tests/limit.rs"]
mod limit;

use common::{Setup, address, read};
use loader::{Error, Shape, Value};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Targets each source is compiled for.
const TARGETS: [&str; 7] = common::TARGETS;

/// Compiles a source of the cases for a target; none, with a message, when that cannot be done here.
fn compile(source: &str, target: &str, flags: &[&str]) -> Option<Vec<u8>> {
    let folder = std::env::var_os("KFDRUN_CASES")
        .map(PathBuf::from)
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/cases"));
    let file = folder.join("src").join(source);
    if !file.exists() {
        eprintln!("skipped: no {}; set KFDRUN_CASES", file.display());
        return None;
    }
    let output = std::env::temp_dir().join(format!("kfdrun-case-{}-{source}-{target}", std::process::id()));
    let run = limit::try_output(
        Command::new("clang-22")
            .args([
                "--target=amdgcn-amd-amdhsa",
                &format!("-mcpu={target}"),
                "-nogpulib",
                "-nostdlib",
                "-ffreestanding",
                "-O2",
            ])
            .args(["-fuse-ld=lld", "-w"])
            .args(flags)
            .arg(&file)
            .arg("-o")
            .arg(&output),
    );
    match run {
        Err(error) => {
            eprintln!("skipped: clang-22: {error}");
            None
        }
        Ok(run) => {
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            let bytes = std::fs::read(&output).unwrap();
            let _ = std::fs::remove_file(&output);
            Some(bytes)
        }
    }
}

/// A block of argv as a program gets it, in a buffer.
fn argv(setup: &Setup, strings: &[&str]) -> kfd::Buffer {
    let buffer = setup.buffer(&[0; 256]);
    let mut at = buffer.va().0 + 8 * (strings.len() as u64 + 1);
    let mut block = Vec::new();
    let mut text = Vec::new();
    for string in strings {
        block.extend(at.to_le_bytes());
        text.extend(string.bytes());
        text.push(0);
        at += string.len() as u64 + 1;
    }
    block.extend(0u64.to_le_bytes());
    block.extend(text);
    buffer.write_bytes(0, &block).unwrap();
    buffer
}

#[test]
fn argv_ret_and_argv_echo() {
    for target in TARGETS {
        let Some(bytes) = compile("argv_ret.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let strings = argv(&setup, &["prog", "ab", "c"]);
        let ret = setup.buffer(&[0]);
        let envp = argv(&setup, &[]);
        let values = [Value::from(3u32), address(&strings), address(&envp), address(&ret)];
        setup.launch(&image, "_start", 64, 64, &values).unwrap();
        assert_eq!(read(&ret, 1), [37], "{target}");

        let Some(bytes) = compile("argv_echo.c", target, &[]) else { return };
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 64]);
        let values = [&values[..], &[address(&out), Value::from(256u32)]].concat();
        setup.launch(&image, "_start", 1, 1, &values).unwrap();
        assert_eq!(read(&ret, 1), [5], "{target}");
        let mut text = [0; 6];
        out.read_bytes(0, &mut text).unwrap();
        assert_eq!(&text, b"ab c\n\0", "{target}");
    }
}

#[test]
fn vecadd_and_reduce() {
    for target in TARGETS {
        let Some(bytes) = compile("vecadd.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let a = setup.buffer(&(0..500).map(|i| (i as f32).to_bits()).collect::<Vec<_>>());
        let b = setup.buffer(&(0..500).map(|i| (0.25 * i as f32).to_bits()).collect::<Vec<_>>());
        let c = setup.buffer(&[0; 500]);
        setup
            .launch(&image, "vecadd", 128, 512, &[address(&a), address(&b), address(&c), Value::from(500u32)])
            .unwrap();
        let sum: Vec<f32> = read(&c, 500).into_iter().map(f32::from_bits).collect();
        assert_eq!(sum, (0..500).map(|i| 1.25 * i as f32).collect::<Vec<_>>(), "{target}");

        let Some(bytes) = compile("reduce.c", target, &[]) else { return };
        let image = setup.image(&bytes);
        let input = setup.buffer(&(0..1024).collect::<Vec<_>>());
        let output = setup.buffer(&[0; 4]);
        setup.launch(&image, "reduce", 256, 1024, &[address(&input), address(&output), Value::from(1024u32)]).unwrap();
        assert_eq!(read(&output, 4), [32640, 98176, 163712, 229248], "{target}");
    }
}

#[test]
fn globals_and_external_symbols() {
    for target in TARGETS {
        let Some(bytes) = compile("globals.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        for launch in 0..3 {
            let out = setup.buffer(&[0, 0, 0, 0, 0, 2]);
            setup.launch(&image, "k_globals", 1, 1, &[address(&out)]).unwrap();
            assert_eq!(read(&out, 5), [7 + launch, 0, 100, 6, 8], "{target}");
        }

        let Some(bytes) = compile("extern.c", target, &["-Wl,-z,undefs"]) else { return };
        let error = setup.bound(&bytes, &HashMap::new()).unwrap_err();
        assert!(
            matches!(&error, Error::UndefinedSymbols { symbols } if matches!(&symbols[..], [(name, _)] if name == "host_symbol")),
            "{error}"
        );
        let symbol = setup.buffer(&[0x1234]);
        let image = setup.bound(&bytes, &HashMap::from([("host_symbol".to_owned(), symbol.va().0)])).unwrap();
        let out = setup.buffer(&[0]);
        setup.launch(&image, "k_extern", 1, 1, &[address(&out)]).unwrap();
        assert_eq!((read(&out, 1), read(&symbol, 1)), (vec![0x1234], vec![0x77]), "{target}");
    }
}

#[test]
fn three_kernels_with_small_arguments() {
    for target in TARGETS {
        let Some(bytes) = compile("three.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 300]);
        let n = Value::from(300u32);
        setup.launch(&image, "k_fill", 256, 512, &[address(&out), Value::from(9u32), n.clone()]).unwrap();
        assert_eq!(read(&out, 300), [9; 300], "{target}");
        setup.launch(&image, "k_iota", 256, 512, &[address(&out), n.clone()]).unwrap();
        let values = [
            address(&out),
            Value::Bytes(vec![3]),
            Value::Bytes(vec![0xe8, 3]),
            Value::from((5u64 << 32) | 1),
            n.clone(),
        ];
        setup.launch(&image, "k_scale", 256, 512, &values).unwrap();
        assert_eq!(read(&out, 300), (0..300).map(|i| i * 3 + 1000 + 5).collect::<Vec<_>>(), "{target}");
    }
}

#[test]
fn dynamic_lds() {
    for target in TARGETS {
        let Some(bytes) = compile("lds_dyn.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 66]);
        let shape = Shape::of_items([64, 1, 1], [64, 1, 1]).unwrap();
        setup.launch_shaped(&image, "k_lds", shape, &[address(&out)], 256).unwrap();
        let expected: Vec<u32> = (0..64).map(|l| (63 - l) + 1000 + 2 * (63 - l)).chain([256, 256]).collect();
        assert_eq!(read(&out, 66), expected, "{target}");
        setup.launch_shaped(&image, "k_lds2", shape, &[address(&out)], 256).unwrap();
        assert_eq!(read(&out, 64), (0..64).map(|l| (63 - l) * (63 - l)).collect::<Vec<u32>>(), "{target}");
    }
}

#[test]
fn traps_and_preloaded_arguments() {
    for target in TARGETS {
        let Some(bytes) = compile("trap.c", target, &[]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 128]);
        setup.launch(&image, "k_trap", 64, 64, &[address(&out)]).unwrap();
        assert_eq!(read(&out, 64), [2; 64], "{target}");
        setup.launch(&image, "k_debugtrap", 64, 64, &[address(&out)]).unwrap();
        assert_eq!(read(&out, 1), [3], "{target}: no debugger, no stop");
        out.write_bytes(400, &42u32.to_le_bytes()).unwrap();
        let error = setup.launch(&image, "k_trap", 64, 64, &[address(&out)]).unwrap_err();
        assert!(matches!(&error, Error::Stopped(stop) if stop.is_trap()), "{target}: {error}");
    }
    for target in ["gfx90a", "gfx942"] {
        let Some(bytes) = compile("preload.c", target, &["-mllvm", "-amdgpu-kernarg-preload-count=14"]) else { return };
        let mut setup = Setup::new(target);
        let image = setup.image(&bytes);
        let out = setup.buffer(&[0; 64]);
        let values = [address(&out), Value::from(5u32), Value::from(7u32), Value::from(0x9_0000_000bu64)];
        setup.launch(&image, "k_preload", 64, 64, &values).unwrap();
        assert_eq!(read(&out, 64), [5 + 21 + 11; 64], "{target}");
    }
}
