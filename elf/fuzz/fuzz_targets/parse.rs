//! Whole files. Good seeds are small linked images: `cargo fuzz run parse corpus/parse ../../tests/programs`.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| match elf::CodeObject::parse(bytes) {
    Ok(object) => {
        let span = object.span();
        assert!(span.end - span.start <= elf::MAX_SPAN);
        for kernel in object.kernels() {
            assert!(object.file_bytes(kernel.descriptor_vaddr, elf::DESCRIPTOR_BYTES).is_some());
            assert_eq!(kernel.entry_vaddr % elf::ENTRY_ALIGN, 0);
        }
        for relocation in object.relocations() {
            assert!(object.segments().iter().any(|s| s.contains(relocation.vaddr, relocation.kind.bytes())));
        }
    }
    Err(error) => assert!(!error.to_string().contains('\n')),
});
