//! The operations.

use super::beside::{beside, shell};
use super::files::{self, File, Files, Output, Stream, c_string};
use super::input::Input;
use super::port::{LARGEST, Port};
use super::{DeviceMemory, End};
use crate::format::{self, Amount, Piece, Spec, Value};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

/// State that all calls of a program share.
pub struct Shared {
    output: Box<dyn Output>,
    memory: Box<dyn DeviceMemory>,
    /// Its streams.
    pub files: Files,
    /// How the program ended, once it did.
    pub end: Option<End>,
    /// What went wrong, one line each.
    pub complaints: Vec<String>,
}

impl Shared {
    /// Nothing open yet.
    pub fn new(output: Box<dyn Output>, memory: Box<dyn DeviceMemory>) -> Shared {
        Shared { output, memory, files: Files::default(), end: None, complaints: Vec::new() }
    }
}

/// Numbers of the operations, `0x63000000 |` this. Releases before 20 send the bare number.
mod op {
    pub const NOOP: u32 = 0;
    pub const EXIT: u32 = 1;
    pub const WRITE_TO_STDOUT: u32 = 2;
    pub const WRITE_TO_STDERR: u32 = 3;
    pub const WRITE_TO_STREAM: u32 = 4;
    pub const WRITE_TO_STDOUT_NEWLINE: u32 = 5;
    pub const READ_FROM_STREAM: u32 = 6;
    pub const READ_FGETS: u32 = 7;
    pub const OPEN_FILE: u32 = 8;
    pub const CLOSE_FILE: u32 = 9;
    pub const MALLOC: u32 = 10;
    pub const FREE: u32 = 11;
    pub const HOST_CALL: u32 = 12;
    pub const ABORT: u32 = 13;
    pub const FEOF: u32 = 14;
    pub const FERROR: u32 = 15;
    pub const CLEARERR: u32 = 16;
    pub const FSEEK: u32 = 17;
    pub const FTELL: u32 = 18;
    pub const FFLUSH: u32 = 19;
    pub const UNGETC: u32 = 20;
    pub const PRINTF_TO_STDOUT: u32 = 21;
    pub const PRINTF_TO_STREAM_PACKED: u32 = 26;
    pub const REMOVE: u32 = 27;
    pub const RENAME: u32 = 28;
    pub const SYSTEM: u32 = 29;
    pub const TEST_INCREMENT: u32 = 0x8000;
    pub const TEST_INTERFACE: u32 = 0x8001;
    pub const TEST_STREAM: u32 = 0x8002;
}

/// Serves one call from its opening to its close.
pub async fn serve(port: &Port, shared: Rc<RefCell<Shared>>) {
    let number = match port.opcode >> 24 {
        0x63 => port.opcode & 0xff_ffff,
        0 => port.opcode,
        _ => u32::MAX,
    };
    match number {
        op::NOOP => port.receive().await,
        op::EXIT => {
            port.receive().await;
            port.send(|_| Vec::new()).await;
            port.receive().await;
            let status = port.lanes().next().map_or(0, |lane| port.packet(lane)[0] as i32);
            shared.borrow_mut().end.get_or_insert(End::Exit(status));
        }
        op::ABORT => {
            port.receive().await;
            port.send(|_| Vec::new()).await;
            port.receive().await;
            shared.borrow_mut().end.get_or_insert(End::Abort);
        }
        op::WRITE_TO_STDOUT | op::WRITE_TO_STDERR | op::WRITE_TO_STREAM | op::WRITE_TO_STDOUT_NEWLINE => {
            write(port, &shared, number).await;
        }
        op::READ_FROM_STREAM | op::READ_FGETS => read(port, &shared, number == op::READ_FGETS).await,
        op::OPEN_FILE => {
            let paths = port.receive_blocks().await;
            port.receive().await;
            let mut handles = [0; 64];
            for lane in port.lanes() {
                let mode: Vec<u8> = port.packet(lane).iter().flat_map(|word| word.to_le_bytes()).collect();
                let (Some(path), Some(mode)) = (c_string(&paths[lane as usize]), c_string(&mode)) else { continue };
                let file = if files::opening_waits(&path) {
                    beside(move || File::open(&path, &mode)).await.flatten()
                } else {
                    File::open(&path, &mode)
                };
                handles[lane as usize] = file.map_or(0, |file| shared.borrow_mut().files.add(file));
            }
            port.reply(|lane| handles[lane as usize]).await;
        }
        op::MALLOC => {
            // LLVM 22 asks for 0 bytes where the size that the program wants does not fit 32 bits.
            let some = |size: u64| Some(size).filter(|size| *size > 0);
            unary(port, |[size, ..]| {
                some(size).and_then(|size| shared.borrow_mut().memory.allocate(size)).unwrap_or(0)
            })
            .await;
        }
        op::FREE => {
            port.receive().await;
            for lane in port.lanes() {
                shared.borrow_mut().memory.free(port.packet(lane)[0]);
            }
        }
        op::HOST_CALL => {
            // The device names a function of the host by its address: never followed.
            port.receive_blocks().await;
            port.receive().await;
            let function = port.lanes().next().map_or(0, |lane| port.packet(lane)[0]);
            shared.borrow_mut().complaints.push(format!(
                "the program asked to call a host function at {function:#x}: refused, the call returns -1"
            ));
            port.reply(|_| u64::MAX).await;
        }
        op::CLOSE_FILE..=op::UNGETC => file_operation(port, &shared, number).await,
        op::PRINTF_TO_STDOUT..=op::PRINTF_TO_STREAM_PACKED => printf(port, &shared, number).await,
        op::REMOVE => {
            let paths = port.receive_blocks().await;
            port.reply(|lane| {
                // SAFETY: a NUL-terminated string.
                let remove = |path: std::ffi::CString| unsafe { libc::remove(path.as_ptr()) };
                c_string(&paths[lane as usize]).map_or(-1, remove) as i64 as u64
            })
            .await;
        }
        op::RENAME => {
            let from = port.receive_blocks().await;
            let to = port.receive_blocks().await;
            port.reply(|lane| {
                let (Some(from), Some(to)) = (c_string(&from[lane as usize]), c_string(&to[lane as usize])) else {
                    return u64::MAX;
                };
                // SAFETY: NUL-terminated strings.
                unsafe { libc::rename(from.as_ptr(), to.as_ptr()) as i64 as u64 }
            })
            .await;
        }
        op::SYSTEM => {
            let commands = port.receive_blocks().await;
            let mut results = [-1i64; 64];
            for lane in port.lanes() {
                if let Some(command) = c_string(&commands[lane as usize]) {
                    results[lane as usize] = shell(&command).await.into();
                }
            }
            port.reply(|lane| results[lane as usize] as u64).await;
        }
        op::TEST_INCREMENT => unary(port, |[value, ..]| value.wrapping_add(1)).await,
        op::TEST_INTERFACE => test_interface(port).await,
        op::TEST_STREAM => {
            let blocks = port.receive_blocks().await;
            port.send_blocks(&blocks).await;
        }
        _ => {
            // No reply can be right for an unknown exchange; the lanes that wait for one are named instead.
            shared.borrow_mut().complaints.push(format!(
                "the program made an unknown remote call (opcode {:#x}, lanes {:#x}); it gets no answer",
                port.opcode, port.mask
            ));
            port.receive().await;
        }
    }
}

/// A call that takes one packet and returns one word.
async fn unary(port: &Port, mut run: impl FnMut([u64; 8]) -> u64) {
    port.receive().await;
    port.reply(|lane| run(port.packet(lane))).await;
}

async fn write(port: &Port, shared: &Rc<RefCell<Shared>>, number: u32) {
    let mut handles = [0; 64];
    if number == op::WRITE_TO_STREAM {
        port.receive().await;
        for lane in port.lanes() {
            handles[lane as usize] = port.packet(lane)[0];
        }
    }
    let mut blocks = port.receive_blocks().await;
    let mut written = [0; 64];
    for lane in port.lanes() {
        let mut block = std::mem::take(&mut blocks[lane as usize]);
        if number == op::WRITE_TO_STDOUT_NEWLINE {
            block.push(b'\n');
        }
        let stream = match number {
            op::WRITE_TO_STDERR => Stream::Stderr,
            op::WRITE_TO_STREAM => Stream::Handle(handles[lane as usize]),
            _ => Stream::Stdout,
        };
        written[lane as usize] = put(shared, stream, block).await;
    }
    port.reply(|lane| written[lane as usize]).await;
}

/// `fwrite`; returns the bytes written. A pipe that takes nothing keeps this call waiting and no other.
async fn put(shared: &Rc<RefCell<Shared>>, stream: Stream, bytes: Vec<u8>) -> u64 {
    match stream {
        Stream::Stdout => return shared.borrow_mut().output.stdout(&bytes) as u64,
        Stream::Stderr => return shared.borrow_mut().output.stderr(&bytes) as u64,
        _ => {}
    }
    let file = shared.borrow().files.get(stream).cloned();
    match file {
        None => 0,
        Some(file) if file.is_regular() => file.write(&bytes),
        Some(file) => beside(move || file.write(&bytes)).await.unwrap_or(0),
    }
}

/// What may write what a stream has kept, done beside the other calls where that may wait.
async fn on_streams(files: Vec<Arc<File>>, run: impl FnOnce(Vec<Arc<File>>) -> i64 + Send + 'static) -> i64 {
    match files.iter().all(|file| file.is_regular()) {
        true => run(files),
        false => beside(move || run(files)).await.unwrap_or(-1),
    }
}

/// Writes what the streams have kept.
pub async fn flush(files: Vec<Arc<File>>) -> i64 {
    on_streams(files, |files| files.iter().map(|file| file.flush()).fold(0, i32::min).into()).await
}

async fn read(port: &Port, shared: &Rc<RefCell<Shared>>, line: bool) {
    port.receive().await;
    let mut blocks = vec![Vec::new(); 64];
    for lane in port.lanes() {
        let [size, stream, ..] = port.packet(lane);
        let (size, stream) = (size.min(LARGEST) as usize, Stream::decode(stream));
        blocks[lane as usize] = match stream {
            Stream::Stdin => read_stdin(shared, size, line).await,
            _ => {
                let file = shared.borrow().files.get(stream).cloned();
                match file {
                    None => Vec::new(),
                    Some(file) if file.is_regular() => file.read(size, line),
                    Some(file) => beside(move || file.read(size, line)).await.unwrap_or_default(),
                }
            }
        };
    }
    port.send_blocks(&blocks).await;
    if !line {
        port.reply(|lane| blocks[lane as usize].len() as u64).await;
    }
}

/// Waits for standard input while other calls go on. A line gets a NUL behind it.
async fn read_stdin(shared: &Rc<RefCell<Shared>>, size: usize, line: bool) -> Vec<u8> {
    poll_fn(|_| {
        let mut shared = shared.borrow_mut();
        let Some(input) = shared.files.stdin() else { return Poll::Ready(Vec::new()) };
        let got = match (line, size) {
            (false, _) => input.take(size),
            (true, 0) => Some(Vec::new()),
            (true, _) => input.line(size - 1),
        };
        got.map_or(Poll::Pending, |mut bytes| {
            if line && (!bytes.is_empty() || size == 1) {
                bytes.push(0);
            }
            Poll::Ready(bytes)
        })
    })
    .await
}

async fn file_operation(port: &Port, shared: &Rc<RefCell<Shared>>, number: u32) {
    port.receive().await;
    let mut answers = [0; 64];
    for lane in port.lanes() {
        let words = port.packet(lane);
        let stream = Stream::decode(if number == op::UNGETC { words[1] } else { words[0] });
        let named = || shared.borrow().files.get(stream).cloned().into_iter().collect::<Vec<_>>();
        answers[lane as usize] = match (number, stream) {
            (op::CLOSE_FILE, _) => {
                let file = shared.borrow_mut().files.remove(words[0]);
                match file {
                    None => -1,
                    // Who has it last closes it.
                    Some(file) => flush(vec![file]).await,
                }
            }
            (_, Stream::Stdin) => shared.borrow_mut().files.stdin().map_or(-1, |input| on_stdin(input, number, &words)),
            // Of no stream means of all.
            (op::FFLUSH, Stream::Handle(0)) => {
                let files = shared.borrow().files.all();
                flush(files).await
            }
            (op::FFLUSH, _) => flush(named()).await,
            _ => {
                on_streams(named(), move |files| {
                    files.first().map_or(nothing(number), |file| on_file(file, number, &words))
                })
                .await
            }
        };
    }
    if number != op::CLEARERR {
        port.reply(|lane| answers[lane as usize] as u64).await;
    }
}

/// The answer for a stream that is not open, or that has no positions.
fn nothing(number: u32) -> i64 {
    if matches!(number, op::FEOF | op::FERROR | op::CLEARERR) { 0 } else { -1 }
}

/// An operation on standard input.
fn on_stdin(input: &mut Input, number: u32, words: &[u64; 8]) -> i64 {
    match number {
        op::FEOF => input.has_ended().into(),
        op::FERROR => input.has_failed().into(),
        op::FSEEK => whence(words[2]).map_or(-1, |whence| input.seek(words[1] as i64, whence)),
        op::FTELL => input.tell(),
        op::FFLUSH => 0,
        op::CLEARERR => {
            input.clear();
            0
        }
        op::UNGETC => input.unget(words[0] as i32),
        _ => -1,
    }
}

/// An operation on a stream that the program opened.
fn on_file(file: &File, number: u32, words: &[u64; 8]) -> i64 {
    let stream = file.stream();
    // SAFETY (all calls): `file` keeps the stream open.
    match number {
        // SAFETY: see above.
        op::FEOF => unsafe { libc::feof(stream).into() },
        // SAFETY: see above.
        op::FERROR => unsafe { libc::ferror(stream).into() },
        op::CLEARERR => {
            // SAFETY: see above.
            unsafe { libc::clearerr(stream) };
            0
        }
        op::FSEEK => match whence(words[2]) {
            // SAFETY: see above.
            Some(whence) => unsafe { libc::fseek(stream, words[1] as i64, whence).into() },
            None => -1,
        },
        // SAFETY: see above.
        op::FTELL => unsafe { libc::ftell(stream) },
        // SAFETY: see above.
        op::UNGETC => unsafe { libc::ungetc(words[0] as i32, stream).into() },
        _ => -1,
    }
}

/// From where `fseek` counts; C has three of them, with the same numbers on the device.
fn whence(word: u64) -> Option<i32> {
    i32::try_from(word).ok().filter(|whence| (0..=2).contains(whence))
}

/// The arguments of one lane's `printf`, cut out of its block.
struct Arguments {
    values: Vec<(Vec<i32>, Value)>,
    /// Index into `values` and device address of strings still to be fetched.
    strings: Vec<(usize, u64)>,
}

fn specs(pieces: &[Piece]) -> impl Iterator<Item = &Spec> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Spec(spec) => Some(spec),
        Piece::Text(_) => None,
    })
}

fn stars(spec: &Spec) -> usize {
    [spec.width, spec.precision].iter().filter(|amount| **amount == Some(Amount::Argument)).count()
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
        for _ in 0..stars(spec) {
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
        let star: Vec<i32> = (0..stars(spec)).map(|_| next() as i32).collect();
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

async fn printf(port: &Port, shared: &Rc<RefCell<Shared>>, number: u32) {
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
                    if let Some((star, value)) = values.next() {
                        // LLVM's libc prints a null pointer as it prints a string.
                        let null = Value::Text(Some(b"(nullptr)".to_vec()));
                        let is_null = spec.conversion == b'p' && *value == Value::Bits(0);
                        let spec = &if is_null { Spec { precision: None, ..spec.clone() } } else { spec.clone() };
                        format::render(spec, star, if is_null { &null } else { value }, &mut out);
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

/// A fixed mix of sends and receives that LLVM libc's own integration test walks through.
async fn test_interface(port: &Port) {
    port.receive().await;
    let ends_with_receive = port.lanes().next().is_some_and(|lane| port.packet(lane)[0] != 0);
    let mut counts = [0u64; 64];
    let take = |counts: &mut [u64; 64]| {
        for lane in port.lanes() {
            counts[lane as usize] = port.packet(lane)[0];
        }
    };
    async fn add(port: &Port, counts: &mut [u64; 64]) {
        port.reply(|lane| {
            counts[lane as usize] = counts[lane as usize].wrapping_add(1);
            counts[lane as usize]
        })
        .await;
    }
    port.receive().await;
    take(&mut counts);
    add(port, &mut counts).await;
    port.receive().await;
    take(&mut counts);
    add(port, &mut counts).await;
    port.receive().await;
    take(&mut counts);
    port.receive().await;
    take(&mut counts);
    add(port, &mut counts).await;
    add(port, &mut counts).await;
    if ends_with_receive {
        port.receive().await;
        take(&mut counts);
    } else {
        add(port, &mut counts).await;
    }
}
