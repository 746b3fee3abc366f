//! Which entry a device gets.

use elf::container::{Limits, Method, SelectError, matching, open, select};
use elf::{Processor, TargetId};

use crate::build::{Image, bundle, ccob, code, code_with, fat, image, offload_binary};
use crate::open::opened;

fn device(id: &str) -> TargetId {
    let id: TargetId = id.parse().unwrap();
    TargetId::of_device(id.processor, id.sramecc == elf::Feature::On, id.xnack == elf::Feature::On)
}

fn choice(file: &[u8], on: &str, wanted: Option<&str>) -> String {
    let contents = opened(file);
    match select(&contents, &device(on), wanted) {
        Ok(entry) => {
            assert!(entry.code_target().unwrap().matches(&device(on)).is_ok());
            entry.id.rsplit("--").next().unwrap().to_owned()
        }
        Err(error) => {
            assert!(!error.to_string().contains('\n'));
            error.to_string()
        }
    }
}

#[test]
fn the_best_of_a_bundle() {
    let all =
        ["gfx9-4-generic", "gfx942", "gfx942:xnack+", "gfx942:sramecc+", "gfx942:sramecc+:xnack-", "gfx11-generic"];
    let best = |targets: &[&str], on: &str| choice(&fat(targets), on, None);
    assert_eq!(best(&all, "gfx942:sramecc+:xnack-"), "gfx942:sramecc+:xnack-");
    assert_eq!(best(&all[..4], "gfx942:sramecc+:xnack-"), "gfx942:sramecc+");
    assert_eq!(best(&all[..3], "gfx942:sramecc+:xnack-"), "gfx942");
    assert_eq!(best(&all[..3], "gfx942:sramecc-:xnack+"), "gfx942:xnack+");
    assert_eq!(best(&all[..2], "gfx942:sramecc-:xnack+"), "gfx942");
    assert_eq!(best(&all[..1], "gfx942:sramecc-:xnack+"), "gfx9-4-generic");
    assert_eq!(best(&all, "gfx950:sramecc+:xnack+"), "gfx9-4-generic");
    assert_eq!(best(&all, "gfx1151"), "gfx11-generic");
    assert_eq!(best(&["gfx9-4-generic", "gfx9-4-generic:xnack+"], "gfx950:xnack+"), "gfx9-4-generic:xnack+");
    // The order of the file does not matter.
    assert_eq!(best(&["gfx1100", "gfx11-generic"], "gfx1100"), "gfx1100");
    assert_eq!(best(&["gfx11-generic", "gfx1100"], "gfx1100"), "gfx1100");
}

#[test]
fn nothing_for_the_device() {
    assert_eq!(
        choice(&fat(&["gfx900", "gfx90a:xnack+", "gfx900"]), "gfx90a:sramecc+", None),
        "the device is gfx90a:sramecc+:xnack-, the file has no code object for it; it has host (empty), gfx900, \
         gfx90a:xnack+"
    );
    // With one code object there is one reason.
    let why = "the image is for gfx1100, the device is gfx1151: they are of one family and not the same; compile with \
               -mcpu=gfx1151, or with -mcpu=gfx11-generic for both";
    assert_eq!(choice(&fat(&["gfx1100"]), "gfx1151", None), why);
    assert_eq!(choice(&code("gfx1100"), "gfx1151", None), why);
    assert_eq!(
        choice(&code("gfx90a:xnack+"), "gfx90a:sramecc+:xnack-", None),
        "the image is for gfx90a:xnack+, with xnack on; the device, gfx90a:sramecc+:xnack-, has it off: compile with \
         -mcpu=gfx90a to run with either setting"
    );
    // What is there for the device, but not as a code object.
    let other = code("gfx900");
    let file = bundle(
        1,
        &[
            ("hip-amdgcn-amd-amdhsa--gfx900", &other),
            ("hip-amdgcn-amd-amdhsa--gfx906", b"BC\xc0\xde\x35\x14"),
            ("hip-amdgcn-amd-amdhsa--gfx1100", &code_with(0x41, 0)),
        ],
    );
    assert_eq!(
        choice(&file, "gfx906", None),
        "entry 1 (hip-amdgcn-amd-amdhsa--gfx906) is not a code object to load but LLVM bitcode, which has to be \
         linked first"
    );
    assert_eq!(
        choice(&file, "gfx1100", None),
        "entry 2 (hip-amdgcn-amd-amdhsa--gfx1100) is not a code object to load but AMDGPU ELF file that cannot be \
         loaded: EI_ABIVERSION is 0 (code object V2), must be 1 to 4 (V3 to V6): compile with \
         -mcode-object-version=4 or later"
    );
    let empty = bundle(1, &[]);
    assert_eq!(
        choice(&empty, "gfx906", None),
        "the device is gfx906:sramecc-:xnack-, the file has no code object for it; it has nothing"
    );
}

#[test]
fn a_list_that_is_long_is_cut() {
    let targets: Vec<_> = elf::PROCESSORS.iter().map(|p| p.name).filter(|name| *name != "gfx1201").collect();
    let error = choice(&fat(&targets), "gfx1201", Some("0x"));
    assert!(error.ends_with("gfx940, gfx941, 31 more") || error.ends_with(" more"), "{error}");
    assert!(
        error.starts_with("the file has no entry `0x`: name one by its number (0 to 54), its bundle id"),
        "{error}"
    );
    assert!(error.len() < 600);
}

#[test]
fn by_name() {
    let file = fat(&["gfx900", "gfx90a", "gfx90a:xnack+", "gfx11-generic"]);
    let on = "gfx90a:sramecc+:xnack+";
    // Number 0 is the host's.
    for (wanted, want) in [
        ("2", "gfx90a"),
        ("gfx90a", "gfx90a"),
        ("hipv4-amdgcn-amd-amdhsa--gfx90a", "gfx90a"),
        ("gfx90a:xnack+", "gfx90a:xnack+"),
        ("3", "gfx90a:xnack+"),
        ("0", "entry 0 (host-x86_64-unknown-linux-gnu-) is not a code object to load but empty"),
        ("gfx900", "the image is for gfx900, the device is gfx90a:sramecc+:xnack+: compile with -mcpu=gfx90a"),
        (
            "gfx11-generic",
            "the image is for gfx11-generic, which does not include the device, gfx90a:sramecc+:xnack+: compile with \
             -mcpu=gfx90a",
        ),
        (
            "gfx90a:xnack-",
            "the file has no entry `gfx90a:xnack-`: name one by its number (0 to 4), its bundle id or its target id; \
             it has host (empty), gfx900, gfx90a, gfx90a:xnack+, gfx11-generic",
        ),
        (
            "5",
            "the file has no entry `5`: name one by its number (0 to 4), its bundle id or its target id; it has host \
             (empty), gfx900, gfx90a, gfx90a:xnack+, gfx11-generic",
        ),
    ] {
        assert_eq!(choice(&file, on, Some(wanted)), want, "{wanted}");
    }
}

#[test]
fn programs_of_several_files() {
    let (a, b) = (fat(&["gfx1100", "gfx11-generic"]), fat(&["gfx11-generic", "gfx900"]));
    let file = [a, b].concat();
    assert_eq!(choice(&file, "gfx900", None), "gfx900");
    let contents = opened(&file);
    let found: Vec<_> = matching(&contents, &device("gfx1100")).iter().map(|e| e.arch.as_str()).collect();
    assert_eq!(found, ["gfx1100", "gfx11-generic"]);
    assert_eq!(
        select(&contents, &device("gfx1100"), None).unwrap_err(),
        SelectError::Ambiguous { device: device("gfx1100"), entries: vec![1, 4] }
    );
    assert_eq!(
        choice(&file, "gfx1100", None),
        "entries 1, 4 are equally good for the device, gfx1100: they belong to different programs; name one by its \
         number"
    );
    // A name that fits several is no choice either.
    assert!(choice(&file, "gfx1102", Some("gfx11-generic")).starts_with("entries 2, 4 are equally good"));
    assert_eq!(choice(&file, "gfx1102", Some("4")), "gfx11-generic");

    // Compressed bundles side by side are as many programs; offload binaries side by side are one.
    let file = [ccob(2, Method::Zstd, &fat(&["gfx1100"])), ccob(2, Method::Zlib, &fat(&["gfx1100"]))].concat();
    assert!(choice(&file, "gfx1100", None).starts_with("entries 1, 3 are equally good"));
    let records = ["gfx11-generic", "gfx1100"].map(|t| offload_binary(1, &[image(t, &code(t))], None));
    assert_eq!(choice(&records.concat(), "gfx1100", None), "gfx1100");
    assert_eq!(choice(&records.concat(), "gfx1102", None), "gfx11-generic");
}

#[test]
fn ids_and_flags_that_disagree() {
    for (id, target) in
        [("hip-amdgcn-amd-amdhsa--gfx900", "gfx1100"), ("hip-amdgcn-amd-amdhsa--gfx1100", "gfx11-generic")]
    {
        let image = code(target);
        let file = bundle(1, &[(id, &image)]);
        assert_eq!(
            choice(&file, "gfx1100", None),
            format!("entry 0 is called {id}, its e_flags say {target}: they must agree")
        );
    }
    let fixed = code("gfx90a:xnack+");
    let file = bundle(1, &[("hip-amdgcn-amd-amdhsa--gfx90a:xnack-", &fixed)]);
    assert!(choice(&file, "gfx90a:xnack+", None).ends_with("its e_flags say gfx90a:xnack+: they must agree"));

    // Before V4 nothing is open in the flags, and an id names what is on.
    let v3 = code_with(0x330, 1);
    let file = bundle(1, &[("hip-amdgcn-amd-amdhsa-gfx908+xnack", &v3)]);
    let contents = opened(&file);
    let entry = select(&contents, &device("gfx908:sramecc+:xnack+"), None).unwrap();
    assert_eq!(entry.code_target().unwrap().to_string(), "gfx908:sramecc+:xnack+");
    assert_eq!(entry.target.unwrap().to_string(), "gfx908:xnack+");
    assert!(select(&contents, &device("gfx908:sramecc+"), None).is_err());
    assert!(select(&contents, &device("gfx908:sramecc+:xnack+"), Some("gfx908:xnack+")).is_ok());
    assert!(select(&contents, &device("gfx908:sramecc+:xnack+"), Some("gfx908+xnack")).is_ok());
}

#[test]
fn a_generic_version_is_in_the_flags() {
    // No member was added after version 1 so far; a later version has the earlier members.
    for version in [1, 2, 255_u32] {
        let image = code_with(0x54 | version << 24, 4);
        let file = bundle(1, &[("hip-amdgcn-amd-amdhsa--gfx11-generic", &image)]);
        let contents = opened(&file);
        let entry = select(&contents, &device("gfx1151"), None).unwrap();
        assert_eq!(u32::from(entry.code_target().unwrap().generic_version), version);
    }
    let file = bundle(1, &[("hip-amdgcn-amd-amdhsa--gfx11-generic", &code_with(0x54, 4))]);
    assert!(choice(&file, "gfx1151", None).contains("generic version (bits 24-31) is 0"));
}

#[test]
fn openmp_and_hip_of_one_target_are_two_programs() {
    let images = [image("gfx1100", &code("gfx1100")), Image { offload_kind: 1, ..image("gfx1100", &code("gfx1100")) }];
    let file = offload_binary(2, &images, None);
    assert!(choice(&file, "gfx1100", None).starts_with("entries 0, 1 are equally good"));
    let contents = open(&file, &Limits::default()).unwrap();
    let openmp = select(&contents, &device("gfx1100"), Some("openmp-amdgcn-amd-amdhsa--gfx1100")).unwrap();
    assert_eq!(openmp.id, "openmp-amdgcn-amd-amdhsa--gfx1100");
    assert_eq!(Processor::by_name("gfx1100"), Some(openmp.target.unwrap().processor));
}
