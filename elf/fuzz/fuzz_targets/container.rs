//! Whole files of any container. Good seeds are small ones: a bundle, a compressed bundle of each version and method, an
//! offload binary, a host object.
#![no_main]

use elf::TargetId;
use elf::container::{Limits, matching, open, select};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits { max_uncompressed: 1 << 22, max_entries: 1 << 12 };
    match open(bytes, &limits) {
        Ok(contents) => {
            for entry in &contents.entries {
                assert!(entry.container < contents.containers.len());
                assert!(entry.data.len() <= bytes.len().max(1 << 22));
                assert!(!entry.content.to_string().contains('\n'));
            }
            for text in ["gfx906:sramecc-:xnack+", "gfx1100"] {
                let Ok(device) = text.parse::<TargetId>() else { unreachable!() };
                let matching = matching(&contents, &device);
                for wanted in [None, Some("1"), Some(text)] {
                    match select(&contents, &device, wanted) {
                        Ok(entry) => assert!(matching.iter().any(|m| std::ptr::eq(*m, entry)) || wanted.is_some()),
                        Err(error) => assert!(!error.to_string().contains('\n')),
                    }
                }
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
