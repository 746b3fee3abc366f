use super::*;

/// A descriptor with nothing in it but what each generation needs.
fn plain(generation: Generation) -> [u8; 64] {
    let mut bytes = [0; 64];
    if generation == Gfx1250 {
        bytes[57] = 0x04;
    }
    bytes
}

fn processor(name: &str) -> &'static Processor {
    Processor::by_name(name).unwrap()
}

/// Bits of a register that must be zero, said once more as numbers.
#[rustfmt::skip]
const ZERO: [(&str, usize, u32, &[&str]); 24] = [
    ("compute_pgm_rsrc1", 48, 0xff50_0c00, &["gfx600", "gfx701", "gfx803"]),
    ("compute_pgm_rsrc1", 48, 0xfb50_0c00, &["gfx900", "gfx908", "gfx90a", "gfx942", "gfx9-generic"]),
    ("compute_pgm_rsrc1", 48, 0x1b50_0c00, &["gfx1010", "gfx1030", "gfx1100", "gfx11-generic"]),
    ("compute_pgm_rsrc1", 48, 0x1bd0_0c00, &["gfx1200", "gfx12-generic"]),
    ("compute_pgm_rsrc1", 48, 0x13d0_0c00, &["gfx1250"]),
    ("compute_pgm_rsrc2", 52, 0x80ff_e040, &["gfx600", "gfx803", "gfx900", "gfx90a", "gfx950", "gfx1030", "gfx1151"]),
    ("compute_pgm_rsrc2", 52, 0x80ff_e000, &["gfx1201", "gfx1250"]),
    ("compute_pgm_rsrc3", 44, 0xffff_ffff, &["gfx600", "gfx803", "gfx900", "gfx908"]),
    ("compute_pgm_rsrc3", 44, 0xfffe_ffc0, &["gfx90a", "gfx942", "gfx9-4-generic"]),
    ("compute_pgm_rsrc3", 44, 0xffff_fff0, &["gfx1010", "gfx1036"]),
    ("compute_pgm_rsrc3", 44, 0xffff_fc00, &["gfx1100", "gfx1153"]),
    ("compute_pgm_rsrc3", 44, 0xffff_d00f, &["gfx1200"]),
    ("compute_pgm_rsrc3", 44, 0xffc0_100f, &["gfx1250"]),
    ("kernel_code_properties", 56, 0xf380, &["gfx700", "gfx900", "gfx90a", "gfx1030"]),
    ("kernel_code_properties", 56, 0xf3a1, &["gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"]),
    ("kernarg_preload", 58, 0xffff, &["gfx803", "gfx906", "gfx1030", "gfx1100", "gfx1200"]),
    ("kernarg_preload", 58, 0, &["gfx90a", "gfx942", "gfx1250"]),
    ("bytes 12", 12, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 24", 24, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 24", 28, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 24", 32, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 24", 36, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 24", 40, u32::MAX, &["gfx900", "gfx1201"]),
    ("bytes 60", 60, u32::MAX, &["gfx900", "gfx1201"]),
];

#[test]
fn each_reserved_bit_is_refused_and_no_other() {
    for (register, offset, zeros, names) in ZERO {
        let bits = if register == "kernel_code_properties" || register == "kernarg_preload" { 16 } else { 32 };
        for (name, bit) in names.iter().flat_map(|name| (0..bits).map(move |bit| (name, bit))) {
            let mut bytes = plain(processor(name).generation);
            bytes[offset + bit / 8] ^= 1 << (bit % 8);
            let refused = match Descriptor::parse(&bytes, processor(name)) {
                Err(error @ (DescriptorError::ReservedBits { .. } | DescriptorError::ReservedBytes { .. })) => {
                    assert!(error.to_string().starts_with(register), "{error}");
                    true
                }
                _ => false,
            };
            assert_eq!(refused, zeros >> bit & 1 != 0, "{name}: bit {bit} of {register}");
        }
    }
}

/// Registers as clang 22 writes them for small kernels.
#[test]
fn registers_taken_apart() {
    let words = |words: &[(usize, u32)]| {
        let mut bytes = [0; 64];
        for (offset, value) in words {
            bytes[*offset..*offset + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    };

    // gfx900: private segment buffer and kernarg pointer, work-group id x behind them.
    let bytes = words(&[(48, 0x00af_0040), (52, 0x8c), (56, 0x9)]);
    let d = Descriptor::parse(&bytes, processor("gfx900")).unwrap();
    assert_eq!((d.kernel_code_properties.sgprs(), d.user_sgprs(Gfx9)), (6, 6));
    assert_eq!((d.vgprs(Gfx9), d.sgprs(Gfx9), d.wavefront_size()), (4, 16, 64));
    assert_eq!((d.workgroup_ids(), d.workitem_id_vgprs(), d.uses_scratch()), ([true, false, false], 0, false));
    assert_eq!(d.accum_offset(Gfx9), None);

    // gfx900: everything that there is, with scratch.
    let bytes = words(&[(4, 16), (48, 0x00af_02c8), (52, 0x139d), (56, 0x83f)]);
    let d = Descriptor::parse(&bytes, processor("gfx900")).unwrap();
    assert_eq!((d.kernel_code_properties.sgprs(), d.user_sgprs(Gfx9)), (14, 14));
    assert_eq!((d.workgroup_ids(), d.workitem_id_vgprs(), d.uses_scratch()), ([true; 3], 2, true));
    assert!(d.kernel_code_properties.uses_dynamic_stack());

    // gfx942: the kernarg pointer and ten dwords of arguments.
    let bytes = words(&[(8, 280), (44, 1), (48, 0x00af_0001), (52, 0x98), (56, 0x000a_0008)]);
    let d = Descriptor::parse(&bytes, processor("gfx942")).unwrap();
    assert_eq!((d.kernarg_preload_length, d.kernarg_preload_offset, d.user_sgprs(Gfx940)), (10, 0, 12));
    assert_eq!((d.vgprs(Gfx940), d.accum_offset(Gfx940)), (16, Some(8)));

    // gfx1201, wave32: entry behind the descriptor.
    let bytes = words(&[(16, 0x1740), (48, 0xe00f_0001), (52, 0x84), (56, 0x408)]);
    let d = Descriptor::parse(&bytes, processor("gfx1201")).unwrap();
    assert_eq!((d.vgprs(Gfx12), d.sgprs(Gfx12), d.wavefront_size()), (16, 128, 32));
    assert_eq!((d.entry(0x8c0), d.entry(u64::MAX - 10)), (Some(0x2000), None));
}
