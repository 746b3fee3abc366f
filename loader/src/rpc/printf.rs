//! The operations of the `printf` family: the host parses the format, asks for as many bytes of arguments as it takes, and for
//! its strings one by one.

use super::calls::{Shared, op, put};
use super::files::Stream;
use super::port::Port;
use crate::format::{self, Piece, Value, specs};
use std::cell::RefCell;
use std::rc::Rc;

/// The arguments of one lane's `printf`, cut out of its block.
struct Arguments {
    values: Vec<(Vec<i32>, Value)>,
    /// Index into `values` and device address of strings still to be fetched.
    strings: Vec<(usize, u64)>,
}

/// Offset of each argument, and their total size. Packed arguments follow one another; others are aligned to their size.
fn argument_layout(pieces: &[Piece], packed: bool) -> (Vec<(usize, usize)>, usize) {
    let mut at = 0usize;
    let mut slots = Vec::new();
    let mut place = |size: usize| {
        if !packed {
            at = at.next_multiple_of(size);
        }
        slots.push((at, size));
        at += size;
    };
    for spec in specs(pieces) {
        for _ in 0..spec.stars() {
            place(4);
        }
        place(spec.packed_size());
    }
    (slots, at)
}

fn arguments(pieces: &[Piece], packed: bool, block: &[u8]) -> Arguments {
    let (slots, _) = argument_layout(pieces, packed);
    let mut slots = slots.into_iter();
    let mut next = || {
        let (at, size) = slots.next().unwrap_or((0, 0));
        let mut bytes = [0; 8];
        let have = block.get(at..).unwrap_or(&[]);
        let size = size.min(have.len());
        bytes[..size].copy_from_slice(&have[..size]);
        u64::from_le_bytes(bytes)
    };
    let mut values = Vec::new();
    let mut strings = Vec::new();
    for spec in specs(pieces) {
        let star: Vec<i32> = (0..spec.stars()).map(|_| next() as i32).collect();
        let bits = next();
        let value = if spec.is_string() {
            if bits != 0 {
                strings.push((values.len(), bits));
            }
            Value::Text(None)
        } else if spec.is_float() {
            Value::Float(f64::from_bits(bits))
        } else {
            Value::Bits(bits)
        };
        values.push((star, value));
    }
    Arguments { values, strings }
}

pub async fn printf(port: &Port, shared: &Rc<RefCell<Shared>>, number: u32) {
    let packed = number >= 24;
    let mut streams = [Stream::Stdout; 64];
    match (number - op::PRINTF_TO_STDOUT) % 3 {
        0 => {}
        1 => streams = [Stream::Stderr; 64],
        _ => {
            port.receive().await;
            for lane in port.lanes() {
                streams[lane as usize] = Stream::decode(port.packet(lane)[0]);
            }
        }
    }
    let formats = port.receive_blocks().await;
    let pieces: Vec<Vec<Piece>> =
        formats.iter().map(|format| format::parse(format.split(|byte| *byte == 0).next().unwrap_or(&[]))).collect();
    port.reply(|lane| argument_layout(&pieces[lane as usize], packed).1 as u64).await;
    let blocks = port.receive_blocks().await;
    let mut lanes: Vec<Arguments> =
        pieces.iter().zip(&blocks).map(|(pieces, block)| arguments(pieces, packed, block)).collect();
    loop {
        // Strings are asked for last first, a lane at a time; lanes that need none send nothing.
        let pending: Vec<Option<(usize, u64)>> = lanes.iter_mut().map(|lane| lane.strings.pop()).collect();
        if pending.iter().all(Option::is_none) {
            break;
        }
        port.send(|lane| {
            let address = pending[lane as usize].map_or(0, |(_, address)| address);
            [0u64.to_le_bytes(), address.to_le_bytes()].concat()
        })
        .await;
        let texts = port.receive_blocks().await;
        for ((lane, mut text), pending) in lanes.iter_mut().zip(texts).zip(pending) {
            if let Some((value, _)) = pending {
                text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(text.len()));
                lane.values[value].1 = Value::Text(Some(text));
            }
        }
    }
    let mut results = [0i64; 64];
    for lane in port.lanes() {
        let mut out = Vec::new();
        let mut values = lanes[lane as usize].values.iter();
        for piece in &pieces[lane as usize] {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Spec(spec) => {
                    match values.next() {
                        // LLVM's libc prints a null pointer as it prints a string.
                        Some((star, Value::Bits(0))) if spec.conversion == b'p' => {
                            let null = Value::Text(Some(b"(nullptr)".to_vec()));
                            format::render(spec, star, &null, &mut out);
                        }
                        Some((star, value)) => format::render(spec, star, value, &mut out),
                        None => {}
                    }
                }
            }
        }
        let size = out.len() as i64;
        let written = put(shared, streams[lane as usize], out).await as i64;
        results[lane as usize] = if written == size { written } else { -1 };
    }
    port.send(|lane| [results[lane as usize].to_le_bytes(), 0i64.to_le_bytes()].concat()).await;
}
