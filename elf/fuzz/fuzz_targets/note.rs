//! The records of a PT_NOTE segment, and those of the same bytes as two segments.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (one, two) = bytes.split_at(bytes.len() / 2);
    for segments in [&[bytes][..], &[one, two]] {
        let mut items = elf::metadata_notes(segments);
        let last = items.by_ref().last();
        assert!(last.is_some(), "no note and no error");
        assert!(items.next().is_none());
    }
});
