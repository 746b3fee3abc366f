//! The operations.

use super::beside::{beside, shell};
use super::files::{self, File, Files, Output, Stream, c_string};
use super::input::Input;
use super::port::{LARGEST, Port};
use super::{DeviceMemory, End};
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
pub mod op {
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
        op::PRINTF_TO_STDOUT..=op::PRINTF_TO_STREAM_PACKED => super::printf::printf(port, &shared, number).await,
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

/// `fwrite`; returns the bytes written. A pipe among the program's files that takes nothing keeps this call waiting and no
/// other; standard output is the caller's, and its wait everybody's.
pub async fn put(shared: &Rc<RefCell<Shared>>, stream: Stream, bytes: Vec<u8>) -> u64 {
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

/// Writes what the streams have kept: 0, or what `fflush` answers. A pipe keeps none of the others waiting.
pub async fn flush(files: Vec<Arc<File>>) -> i64 {
    let (regular, others): (Vec<_>, Vec<_>) = files.into_iter().partition(|file| file.is_regular());
    let mut answer = regular.iter().map(|file| file.flush()).fold(0, i32::min);
    drop(regular);
    let begun: Vec<_> = others.into_iter().map(|file| beside(move || file.flush())).collect();
    for flush in begun {
        answer = answer.min(flush.await.unwrap_or(-1));
    }
    answer.into()
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
