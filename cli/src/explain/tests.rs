//! What people read.

use super::{readings, text};
use crate::style::Style;
use proptest::prelude::*;

fn words(text: &str) -> Vec<String> {
    text.split(' ').map(str::to_owned).collect()
}

/// The text of `kfdrun explain`, or the refusal.
fn explain(input: &str) -> String {
    match readings(&words(input)) {
        Ok(readings) => text::readings(input, &readings, Style::plain()),
        Err(problem) => format!("{problem}\n"),
    }
}

fn all(inputs: &[&str]) -> String {
    inputs.iter().map(|input| format!("$ kfdrun explain {input}\n{}\n", explain(input))).collect()
}

/// The kind that is likeliest meant.
fn likeliest(input: &str) -> &'static str {
    readings(&words(input)).map_or("nothing", |readings| readings[0].kind)
}

#[test]
fn what_is_likeliest_meant() {
    for (input, kind) in [
        ("EINVAL", "errno"),
        ("-22", "errno"),
        ("12", "errno"),
        ("524", "errno"),
        ("CREATE_QUEUE EINVAL", "errno"),
        ("einval create_queue", "errno"),
        ("0x1009", "hsa"),
        ("4105", "hsa"),
        ("0x100f", "hsa"),
        ("OUT_OF_RESOURCES", "hsa"),
        ("0xc0604b02", "ioctl"),
        ("0xc0584b02", "ioctl"),
        ("3227536130", "ioctl"),
        ("amdkfd_ioc_svm", "ioctl"),
        ("0x40000000", "inactive"),
        ("EC_QUEUE_NEW", "exception"),
        ("0x53f", "e_flags"),
        ("0x1000054", "e_flags"),
        ("90402", "target"),
        ("gfx1151", "target"),
        ("gfx90a:xnack+", "target"),
        ("0xd6000002", "flags"),
        ("VRAM|WRITABLE", "flags"),
        ("0x1502", "header"),
        ("0xb02", "header"),
        ("0xf710c00000000008", "mmap"),
        ("0x8000000000000000", "mmap"),
        ("-643803640481447928", "mmap"),
        ("0x2807a280", "capability"),
        ("671588992", "capability"),
        ("KFD_IOC_QUEUE_TYPE_COMPUTE_AQL", "constant"),
    ] {
        assert_eq!(likeliest(input), kind, "{input}");
    }
}

#[test]
fn errors() {
    insta::assert_snapshot!(all(&["ENOMEM", "CREATE_QUEUE EINVAL", "DESTROY_QUEUE -62", "SVM E2BIG", "0x16"]));
}

#[test]
fn requests() {
    insta::assert_snapshot!(all(&["0xc0604b02", "0xc0584b02", "0x4b7f", "DBG_REGISTER"]));
}

#[test]
fn queue_errors() {
    insta::assert_snapshot!(all(&[
        "0x1008",
        "0x1009",
        "0x100f",
        "inactive 0x80000002",
        "exception 22",
        "exception 0x20008",
        "queue_inactive_signal 0x20",
        "exceptions 0x10"
    ]));
}

#[test]
fn packets_that_are_not_64_bytes() {
    let first = |input: &str| explain(input).lines().next().unwrap_or_default().to_owned();
    assert_eq!(first("packet 02"), "1 bytes: a packet or signal has 64");
    assert_eq!(first("packet 02 zz"), "'02 zz': 64 bytes in hexadecimal were expected");
}

#[test]
fn targets() {
    insta::assert_snapshot!(all(&[
        "0x53f",
        "e_flags 0x32f V3",
        "e_flags 0x241",
        "90402",
        "gfx11-generic",
        "gfx90a:xnack+"
    ]));
}

#[test]
fn words_of_bits() {
    insta::assert_snapshot!(all(&[
        "0xd6000002",
        "GTT|VRAM",
        "0xf710c00000000008",
        "0x8000000000000000",
        "0x2807a280",
        "0x1502",
        "QUEUE_TYPE_SDMA_XGMI"
    ]));
}

/// A good dispatch: 256 work-items in groups of 64.
fn dispatch() -> [u8; 64] {
    aql::KernelDispatch {
        fences: aql::Fences::SYSTEM,
        workgroup_size: [64, 1, 1],
        grid_size: [250, 1, 1],
        kernel_object: 0x7f00_0000_1000,
        kernarg_address: 0x7f00_0000_2000,
        completion_signal: 0x7f00_0000_3000,
        ..Default::default()
    }
    .to_bytes()
}

fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn packets_and_signals() {
    let mut bad = dispatch();
    bad[2] = 0;
    bad[4..8].copy_from_slice(&[0, 8, 2, 0]);
    bad[32..40].fill(0);
    bad[48] = 7;
    bad[40] = 4;
    let barrier = aql::BarrierAnd { dep_signals: [0x1000, 0, 0, 0, 0], ..Default::default() }.to_bytes();
    let unknown = [9; 64];
    let signal = aql::AmdSignal {
        kind: aql::signal::SignalKind::User,
        value: 1,
        event_mailbox_ptr: 0x7f00_0000_0008,
        event_id: 1,
        start_ts: 100,
        end_ts: 350,
        ..Default::default()
    };
    let inputs = [dispatch(), bad, barrier, unknown, signal.to_bytes()].map(|bytes| spaced(&bytes));
    insta::assert_snapshot!(all(&inputs.each_ref().map(String::as_str)));
}

#[test]
fn bytes_however_they_are_written() {
    let bytes = dispatch();
    let together: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let dwords = bytes.chunks(4).map(|b| format!("{:#010x}", u32::from_le_bytes(b.try_into().unwrap())));
    let qwords = bytes.chunks(8).map(|b| format!("{:#018x}", u64::from_le_bytes(b.try_into().unwrap())));
    let commas = spaced(&bytes).replace(' ', ",");
    let prefixed = bytes.iter().map(|byte| format!("{byte:#04x}")).collect::<Vec<_>>().join(" ");
    let expected = readings(&words(&spaced(&bytes))).unwrap();
    assert_eq!(expected[0].kind, "packet");
    for form in [
        together,
        dwords.collect::<Vec<_>>().join(" "),
        qwords.collect::<Vec<_>>().join(" "),
        commas,
        prefixed,
        format!("packet {}", spaced(&bytes)),
    ] {
        assert_eq!(readings(&words(&form)).unwrap()[0], expected[0], "{form}");
    }
}

#[test]
fn refusals() {
    insta::assert_snapshot!(all(&[
        "HELLO",
        "0xffffffffffffffffff",
        "99999999999999999999",
        "02 15 01",
        "header 0xe002",
        "errno 4000",
        "1 2",
        "ioctl 0x1234"
    ]));
    insta::assert_snapshot!("kinds", text::kinds(Style::plain()));
}

#[test]
fn json() {
    let readings = readings(&words("0x1502")).unwrap();
    insta::assert_snapshot!(text::json("0x1502", &readings[..1]).to_string());
}

proptest! {
    #[test]
    fn any_words_are_handled(words: Vec<String>) {
        let _ = readings(&words);
    }

    #[test]
    fn any_number_is_handled(value: u64, bits in 0u32..64) {
        let value = value >> bits;
        for input in [format!("{value}"), format!("{value:#x}"), format!("-{value}")] {
            if let Ok(found) = readings(&words(&input)) {
                prop_assert!(found.is_sorted_by_key(|reading| std::cmp::Reverse(reading.likely)));
                prop_assert!(!text::readings(&input, &found, Style::plain()).is_empty());
            }
        }
    }

    #[test]
    fn any_64_bytes_are_handled(bytes in proptest::array::uniform32(any::<u8>()), other in proptest::array::uniform32(any::<u8>())) {
        let found = readings(&words(&spaced(&[bytes, other].concat()))).unwrap();
        prop_assert_eq!(found.len(), 2);
    }
}
