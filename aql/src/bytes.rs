//! Little-endian fields at fixed offsets. Offsets are constants within the array, so indexing cannot fail.

pub(crate) fn get<const W: usize, const N: usize>(bytes: &[u8; N], offset: usize) -> [u8; W] {
    let mut field = [0; W];
    field.copy_from_slice(&bytes[offset..offset + W]);
    field
}

pub(crate) fn put<const W: usize, const N: usize>(bytes: &mut [u8; N], offset: usize, field: [u8; W]) {
    bytes[offset..offset + W].copy_from_slice(&field);
}
