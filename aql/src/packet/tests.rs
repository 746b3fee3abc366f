use super::*;
use crate::vendor::Condition;
use proptest::array::uniform32;
use proptest::prelude::*;

fn dispatch() -> KernelDispatch {
    KernelDispatch {
        fences: Fences::SYSTEM,
        dims: 3,
        workgroup_size: [0x0102, 0x0304, 0x0506],
        grid_size: [0x1122_3344, 0x5566_7788, 0x99aa_bbcc],
        private_segment_size: 0x4004,
        group_segment_size: 0x2002,
        kernel_object: 0x1111_2222_3333_4440,
        kernarg_address: 0x5555_6666_7777_8880,
        completion_signal: 0x9999_aaaa_bbbb_ccc0,
    }
}

/// The offsets of HSA PSA 1.2 §2.9.6, one by one.
#[test]
fn kernel_dispatch_offsets() {
    let b = dispatch().to_bytes();
    assert_eq!(b[0..4], [0x02, 0x15, 3, 0]);
    assert_eq!(b[4..12], [0x02, 0x01, 0x04, 0x03, 0x06, 0x05, 0, 0]);
    assert_eq!(b[12..16], 0x1122_3344u32.to_le_bytes());
    assert_eq!(b[16..20], 0x5566_7788u32.to_le_bytes());
    assert_eq!(b[20..24], 0x99aa_bbccu32.to_le_bytes());
    assert_eq!(b[24..28], 0x4004u32.to_le_bytes());
    assert_eq!(b[28..32], 0x2002u32.to_le_bytes());
    assert_eq!(b[32..40], 0x1111_2222_3333_4440u64.to_le_bytes());
    assert_eq!(b[40..48], 0x5555_6666_7777_8880u64.to_le_bytes());
    assert_eq!(b[48..56], [0; 8]);
    assert_eq!(b[56..64], 0x9999_aaaa_bbbb_ccc0u64.to_le_bytes());
    assert_eq!(Packet::from_bytes(&b), Ok(Packet::KernelDispatch(dispatch())));
}

#[test]
fn barrier_offsets() {
    let and = BarrierAnd { fences: Fences::default(), dep_signals: [1, 2, 3, 4, 5], completion_signal: 6 };
    let b = and.to_bytes();
    assert_eq!(b[0..8], [3, 0, 0, 0, 0, 0, 0, 0]);
    for (i, value) in [1u64, 2, 3, 4, 5, 0, 6].into_iter().enumerate() {
        assert_eq!(b[8 + 8 * i..16 + 8 * i], value.to_le_bytes());
    }
    assert_eq!(BarrierOr::default().to_bytes()[0], 5);
    let wrong = PacketError::WrongType { raw: 3, expected: PacketType::BarrierOr };
    assert_eq!(BarrierOr::from_bytes(&b), Err(wrong.clone()));
    assert_eq!(wrong.to_string(), "packet type 3 where a barrier-OR packet (type 5) was expected");
}

#[test]
fn vendor_offsets() {
    let ib = Pm4Ib::jump_to(Fences::SYSTEM, 0x7fff_1234_5678, 0x30, 0xabc0).unwrap();
    let b = ib.to_bytes();
    assert_eq!(b[0..4], [0, 0x15, 1, 0]);
    assert_eq!(b[4..8], 0xc002_3f00u32.to_le_bytes());
    assert_eq!(b[20..24], 0xau32.to_le_bytes());
    assert_eq!((ib.address(), ib.dwords()), (0x7fff_1234_5678, 0x30));
    assert_eq!(Packet::from_bytes_strict(&b), Ok(Packet::Pm4Ib(ib)));
    assert_eq!(Pm4Ib::jump_to(Fences::default(), 2, 1, 0), None);
    assert_eq!(Pm4Ib::jump_to(Fences::default(), 1 << 48, 1, 0), None);
    assert_eq!(Pm4Ib::jump_to(Fences::default(), 4, 1 << 20, 0), None);

    let wait = BarrierValue {
        fences: Fences::default(),
        signal: 0x40,
        value: -2,
        mask: -1,
        condition: Condition::Gte,
        completion_signal: 0x80,
    };
    let b = wait.to_bytes();
    assert_eq!(b[2], 2);
    assert_eq!(b[32..36], [3, 0, 0, 0]);
    assert_eq!(Packet::from_bytes_strict(&b), Ok(Packet::BarrierValue(wait)));
    assert!(Condition::Gte.holds(-2, -2) && !Condition::Lt.holds(3, -2) && Condition::Ne.holds(0, 1));
}

#[test]
fn unknown_is_refused() {
    let mut b = [0u8; 64];
    for raw in 6..=255u8 {
        b[0] = raw;
        assert_eq!(Packet::from_bytes(&b), Err(PacketError::UnknownType { raw, header: u16::from(raw) }));
    }
    b[0] = 0;
    for format in [0u8, 3, 4, 255] {
        b[2] = format;
        assert_eq!(Packet::from_bytes(&b), Err(PacketError::UnknownVendorFormat { format }));
    }
    b[2] = 2;
    b[32] = 4;
    assert_eq!(Packet::from_bytes(&b), Err(PacketError::UnknownCondition { raw: 4 }));
    let text = PacketError::UnknownType { raw: 9, header: 0x1509 }.to_string();
    assert_eq!(text, "packet type 9 in header 0x1509 is not defined: 0 to 5 are");
}

#[test]
fn an_invalid_slot_reads_as_invalid_whatever_follows() {
    let mut b = [0xffu8; 64];
    b[0..2].copy_from_slice(&1u16.to_le_bytes());
    assert_eq!(Packet::from_bytes(&b), Ok(Packet::Invalid));
    assert_eq!(Packet::from_bytes_strict(&b), Ok(Packet::Invalid));
}

#[test]
fn strict_names_the_reserved_byte() {
    let good = dispatch().to_bytes();
    assert!(Packet::from_bytes_strict(&good).is_ok());
    let reserved = [(1usize, 0x20u8), (1, 0x80), (2, 4), (3, 1), (10, 1), (11, 1), (48, 1), (55, 0x80)];
    for (offset, bit) in reserved {
        let mut b = good;
        b[offset] |= bit;
        assert!(Packet::from_bytes(&b).is_ok());
        let packet_type = PacketType::KernelDispatch;
        let error = PacketError::ReservedField { packet_type, offset, value: bit };
        assert_eq!(Packet::from_bytes_strict(&b), Err(error));
    }
    let mut b = good;
    b[1] |= 0x06;
    let error = Packet::from_bytes_strict(&b).unwrap_err();
    assert_eq!(
        error.to_string(),
        "acquire fence scope is 3 in header 0x1702: 0 (none), 1 (agent) and 2 (system) are defined"
    );
}

proptest! {
    /// Whatever is read from any bytes says the same after writing and reading again, and strictly so.
    #[test]
    fn reading_then_writing_is_stable(
        mut bytes in uniform32(any::<u8>()),
        tail in uniform32(any::<u8>()),
        kind in 0u8..6,
    ) {
        bytes[0] = kind;
        if kind == 0 { bytes[2] = 1 + (bytes[2] & 1); }
        let mut b = [0u8; 64];
        b[..32].copy_from_slice(&bytes);
        b[32..].copy_from_slice(&tail);
        if kind == 0 && b[2] == 2 { b[32..36].copy_from_slice(&u32::from(tail[0] & 3).to_le_bytes()); }
        let packet = Packet::from_bytes(&b).unwrap();
        let again = packet.to_bytes();
        prop_assert_eq!(Packet::from_bytes(&again).unwrap(), packet);
        prop_assert_eq!(packet.packet_type() as u8, kind);
        let scopes = [header(&again).acquire(), header(&again).release()];
        let strict = kind == 1 || !scopes.contains(&FenceScope::Reserved);
        prop_assert_eq!(Packet::from_bytes_strict(&again).is_ok(), strict);
    }
}
