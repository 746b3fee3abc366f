//! What comes from a device, an image or a user ends in a result or an error, never in a panic.

use crate::format::{self, Piece};
use crate::hostcall::Calls;
use crate::printf::Formats;
use crate::printf::words::{self, Null};
use crate::rpc::{DeviceMemory, Output};
use crate::spec::{ArgSpec, Element, Init, npy};
use proptest::prelude::*;

struct Nothing;

impl Output for Nothing {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
    fn stderr(&mut self, bytes: &[u8]) -> usize {
        bytes.len()
    }
}

impl DeviceMemory for Nothing {
    fn allocate(&mut self, _size: u64) -> Option<u64> {
        None
    }
    fn free(&mut self, _va: u64) {}
}

proptest! {
    #[test]
    fn records_of_opencl(format in "[a-z%0-9.*vhlsdfcpx :\\\\]{0,24}", sizes in prop::collection::vec(0u32..6, 0..6), data in any::<Vec<u8>>()) {
        let sizes: Vec<String> = sizes.iter().map(|size| (4 * size).to_string()).collect();
        let entry = format!("1:{}:{}{}{format}", sizes.len(), sizes.join(":"), if sizes.is_empty() { "" } else { ":" });
        if let Ok(Formats::OpenCl(formats)) = Formats::parse(&[&entry]) {
            for format in formats.values() {
                format.render(&data, &mut Vec::new());
            }
        }
    }

    #[test]
    fn messages_in_words(format in "([a-z0-9.*vhl ]|%[sdfcpxn%]){0,24}", data in any::<Vec<u8>>()) {
        let pieces: Vec<Piece> = format::parse(format.as_bytes());
        for null in [Null::Word, Null::Nothing] {
            words::format(&pieces, &data, null, &mut Vec::new());
            words::message(&data, null, &mut Vec::new());
        }
    }

    #[test]
    fn entries_of_the_metadata(entries in prop::collection::vec("[0-9a-f:,%\\\\ns]{0,20}", 0..4)) {
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let _ = Formats::parse(&entries);
    }

    #[test]
    fn hostcalls(calls in prop::collection::vec((0u32..6, any::<[u64; 8]>(), 0u64..4), 0..20)) {
        let mut state = Calls::new(Box::new(Nothing));
        for (service, mut words, id) in calls {
            words[0] = words[0] & 0xff | id << 8;
            state.serve(service, &words, &mut Nothing);
        }
    }

    #[test]
    fn arguments(text in "(in:|out:|u8|f32|i64x4|hex|local|ptr|null|bf16)?[\\[\\]:=0-9a-fx,.@-]{0,16}") {
        let _ = text.parse::<ArgSpec>();
        let _ = Init::parse(&text, Element::F16);
    }

    #[test]
    fn numpy_files(mut file in any::<Vec<u8>>(), header in "[ '{}():,a-z_<0-9]{0,60}") {
        let _ = npy::read(&file, Element::F32, None);
        let mut whole = b"\x93NUMPY\x01\x00".to_vec();
        whole.extend((header.len() as u16).to_le_bytes());
        whole.extend(header.bytes());
        whole.append(&mut file);
        let _ = npy::read(&whole, Element::F32, None);
    }

    #[test]
    fn numbers_come_back(value in any::<i64>(), float in any::<f64>()) {
        for element in [Element::I64, Element::F64, Element::F32, Element::F16, Element::Bf16] {
            let bytes = if element.is_float() { element.float_bytes(float) } else { value.to_le_bytes().to_vec() };
            let shown = element.show(&bytes);
            prop_assert_eq!(element.show(&element.parse(&shown).unwrap()), shown);
        }
    }
}
