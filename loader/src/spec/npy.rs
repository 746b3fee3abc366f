//! NumPy's array files (NumPy documentation, "A simple file format for NumPy arrays").

use super::Element;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Most bytes in front of the elements: magic, version, a length of 16 bits and as much as that can say. Version 2 allows
/// for more and needs it for structures of very many fields only.
pub(super) const LONGEST_HEADER: u64 = 10 + 0xffff;

/// Whether bytes are such a file.
pub fn is_npy(file: &[u8]) -> bool {
    file.starts_with(MAGIC)
}

/// The elements of a file, which must be of this type, in C order, and `wanted` of them.
pub fn read(file: &[u8], element: Element, wanted: Option<u64>) -> Result<&[u8], String> {
    let rest = file.strip_prefix(MAGIC).ok_or("not a NumPy file")?;
    let (&[major, _], rest) = rest.split_first_chunk::<2>().ok_or("the file ends inside its header")?;
    let (length, rest) = match major {
        1 => rest.split_first_chunk::<2>().map(|(length, rest)| (u32::from(u16::from_le_bytes(*length)), rest)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(length, rest)| (u32::from_le_bytes(*length), rest)),
        _ => return Err(format!("format version {major}: 1 to 3 are known")),
    }
    .ok_or("the file ends inside its header")?;
    let (header, data) = rest.split_at_checked(length as usize).ok_or("the file ends inside its header")?;
    let header = String::from_utf8_lossy(header);
    let descr = value(&header, "descr").ok_or("the header has no 'descr'")?;
    let descr = descr.trim_start_matches('\'').split('\'').next().unwrap_or_default().to_owned();
    // Unsigned bytes stand for what NumPy has no type for.
    let raw = element == Element::Bf16 && descr == "<u2";
    if element.npy() != Some(&descr) && !raw {
        return Err(format!("its elements are '{descr}', {} is '{}'", element.name(), element.npy().unwrap_or("<u2")));
    }
    let order = value(&header, "fortran_order").ok_or("the header has no 'fortran_order'")?;
    match order.split([',', '}']).next().unwrap_or_default().trim_end() {
        "False" => {}
        "True" => return Err("its elements are in Fortran order, C order is needed".to_owned()),
        order => return Err(format!("its 'fortran_order' is {order}, False is needed")),
    }
    let shape = value(&header, "shape").and_then(|text| text.strip_prefix('(')).ok_or("the header has no 'shape'")?;
    let mut count = 1u64;
    let (shape, _) = shape.split_once(')').ok_or("its 'shape' has no end")?;
    for size in shape.split(',').map(str::trim).filter(|size| !size.is_empty()) {
        let size = size.parse::<u64>().map_err(|_| format!("'{size}' is not a dimension"))?;
        count = count.checked_mul(size).ok_or("its shape has more than 2^64 elements")?;
    }
    // What was read may have been cut behind what is needed.
    if let Some(wanted) = wanted.filter(|wanted| *wanted != count) {
        return Err(format!("it has {count} elements, {wanted} are needed"));
    }
    let bytes = count.checked_mul(element.size() as u64).and_then(|bytes| usize::try_from(bytes).ok());
    let data = bytes.and_then(|bytes| data.get(..bytes));
    data.ok_or_else(|| format!("the file ends before its {count} elements do"))
}

/// What follows a key of the header.
fn value<'h>(header: &'h str, key: &str) -> Option<&'h str> {
    let (_, rest) = header.split_once(&format!("'{key}'"))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

/// What stands in front of `count` elements of one dimension. Elements that NumPy does not have are written as unsigned
/// integers.
pub fn header(element: Element, count: u64) -> Vec<u8> {
    let descr = element.npy().unwrap_or("<u2");
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}");
    // The data start at a multiple of 64.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [MAGIC, &[1, 0], &length, header.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back() {
        for element in [Element::I8, Element::U16, Element::F16, Element::Bf16, Element::F64] {
            let bytes: Vec<u8> = (0..3 * element.size() as u8).collect();
            let file = [header(element, 3), bytes.clone()].concat();
            assert_eq!((file.len() - bytes.len()) % 64, 0);
            assert_eq!(read(&file, element, None), Ok(&bytes[..]));
        }
    }

    #[test]
    fn what_cannot_be_used_is_refused() {
        let file = [header(Element::F32, 3), vec![0; 12]].concat();
        assert!(read(&file, Element::I32, None).unwrap_err().contains("'<f4'"));
        for length in 0..file.len() {
            assert!(read(&file[..length], Element::F32, None).is_err(), "{length}");
        }
        for (from, to, words) in [
            (&b"False"[..], &b"True "[..], "Fortran order"),
            (b"False", b"Maybe", "'fortran_order' is Maybe"),
            (b"False", b"Falso", "'fortran_order' is Falso"),
            (b"fortran_order", b"fortran_ardor", "no 'fortran_order'"),
            (b"shape", b"shade", "no 'shape'"),
            (b"descr", b"descs", "no 'descr'"),
        ] {
            let mut changed = file.clone();
            let at = file.windows(from.len()).position(|window| window == from).unwrap();
            changed[at..at + to.len()].copy_from_slice(to);
            let error = read(&changed, Element::F32, None).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
