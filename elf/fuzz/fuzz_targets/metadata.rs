//! The MessagePack of a metadata note.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut metadata = elf::Metadata::default();
    match metadata.add_note(bytes) {
        Ok(()) => {
            for kernel in &metadata.kernels {
                let segment = u64::from(kernel.kernarg_segment_size);
                assert!(kernel.args.iter().all(|arg| u64::from(arg.offset) + u64::from(arg.size) <= segment));
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
});
