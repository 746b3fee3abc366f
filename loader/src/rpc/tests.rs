//! A client that plays the device's part, step by step.

use super::*;
use crate::gpu::Bell;
use std::sync::Arc;

struct Device {
    region: Region,
    memory: Arc<Vec<u64>>,
    server: Server,
    written: Rc<RefCell<(Vec<u8>, Vec<u8>)>>,
}

struct Kept(Rc<RefCell<(Vec<u8>, Vec<u8>)>>);

impl Output for Kept {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        self.0.borrow_mut().0.extend_from_slice(bytes);
        bytes.len()
    }
    fn stderr(&mut self, bytes: &[u8]) -> usize {
        self.0.borrow_mut().1.extend_from_slice(bytes);
        bytes.len()
    }
}

struct OnePage;

impl DeviceMemory for OnePage {
    fn allocate(&mut self, size: u64) -> Option<u64> {
        (size <= 4096).then_some(0x20_0000)
    }
    fn free(&mut self, _va: u64) {}
}

impl Device {
    fn new(abi: Abi, lanes: u32) -> Device {
        let region = Region { abi, ports: 8, lanes };
        let memory = Arc::new(vec![0u64; region.size() as usize / 8 + 8]);
        // The vector is 8-byte aligned; the area wants 16.
        let base = memory.as_ptr().cast::<u8>().cast_mut();
        let base = base.wrapping_add(base.align_offset(16));
        let written = Rc::default();
        // SAFETY: inside the vector, which `memory` keeps; only the accesses here and the server's touch it.
        let area = unsafe { Area::new(region, base, memory.clone()) };
        let server = Server::new(area, Box::new(Kept(Rc::clone(&written))), Box::new(OnePage));
        Device { region, memory, server, written }
    }

    fn at(&self, offset: u64) -> *mut u8 {
        let base = self.memory.as_ptr().cast::<u8>().cast_mut();
        base.wrapping_add(base.align_offset(16)).wrapping_add(offset as usize)
    }

    fn prefix(&self) -> u64 {
        if self.region.abi == Abi::Doorbell { 64 } else { 0 }
    }

    fn mailboxes(&self, port: u32) -> (*mut u32, *mut u32) {
        let at = self.prefix() + 4 * u64::from(port);
        (self.at(at).cast(), self.at(at + 4 * u64::from(self.region.ports)).cast())
    }

    fn open(&mut self, port: u32, mask: u64, opcode: u32) {
        let header = self.at(self.prefix() + 8 * u64::from(self.region.ports) + 16 * u64::from(port));
        // SAFETY: inside the area.
        unsafe {
            header.cast::<u64>().write_volatile(mask);
            header.add(8).cast::<u32>().write_volatile(opcode);
        }
    }

    fn packet(&self, port: u32, lane: u32) -> *mut [u64; 8] {
        let packets = self.prefix() + 24 * u64::from(self.region.ports);
        self.at(packets + 64 * u64::from(port * self.region.lanes + lane)).cast()
    }

    /// Fills the packets of the lanes of `mask` and passes the port to the server.
    fn send(&mut self, port: u32, mask: u64, fill: impl Fn(u32) -> [u64; 8]) {
        let (server, client) = self.mailboxes(port);
        // SAFETY: inside the area.
        unsafe {
            assert_eq!(server.read_volatile(), client.read_volatile(), "the client owns the port");
            for lane in (0..64).filter(|lane| mask >> lane & 1 == 1) {
                self.packet(port, lane).write_volatile(fill(lane));
            }
            client.write_volatile(1 - client.read_volatile());
        }
        self.server.poll();
    }

    /// The packet that the server left for a lane.
    fn receive(&mut self, port: u32, lane: u32) -> [u64; 8] {
        let (server, client) = self.mailboxes(port);
        // SAFETY: inside the area.
        unsafe {
            assert_eq!(server.read_volatile(), client.read_volatile(), "the server answered");
            self.packet(port, lane).read_volatile()
        }
    }

    /// Polls until the client owns the port again.
    fn wait_for(&mut self, port: u32) {
        until(|| {
            self.server.poll();
            self.answered(port)
        });
    }

    /// Whether the client owns the port again.
    fn answered(&self, port: u32) -> bool {
        let (server, client) = self.mailboxes(port);
        // SAFETY: inside the area.
        unsafe { server.read_volatile() == client.read_volatile() }
    }

    fn send_text(&mut self, port: u32, mask: u64, text: &[u8]) {
        let word = |at: usize| {
            let mut bytes = [0; 8];
            for (byte, from) in bytes.iter_mut().zip(text.iter().skip(at)) {
                *byte = *from;
            }
            u64::from_le_bytes(bytes)
        };
        self.send(port, mask, |_| {
            let mut packet = [text.len() as u64; 8];
            for (index, slot) in packet[1..].iter_mut().enumerate() {
                *slot = word(8 * index);
            }
            packet
        });
        let mut done = 56;
        while done < text.len() {
            self.send(port, mask, |_| std::array::from_fn(|index| word(done + 8 * index)));
            done += 64;
        }
    }
}

#[test]
fn every_lane_writes_its_text() {
    for abi in [Abi::Llvm19, Abi::Doorbell] {
        let mut device = Device::new(abi, 32);
        device.open(2, 0b101, 0x6300_0002);
        let text = [b'a'; 130];
        device.send_text(2, 0b101, &text);
        assert_eq!(device.receive(2, 0)[0], 130);
        assert_eq!(device.receive(2, 2)[0], 130);
        assert_eq!(device.written.borrow().0, [b'a'; 260]);
    }
}

/// Bytes 0 to 20 of the area are the doorbell's: where calls are counted, where and what to store for the interrupt.
#[test]
fn the_doorbell_counts_open_calls() {
    let mut device = Device::new(Abi::Doorbell, 32);
    assert!(!device.server.is_quiet(), "without a doorbell nobody wakes the host");
    let va = device.at(0) as u64;
    device.server.area.set_bell(va, &Bell { mailbox: 0x5000, event: 7 });
    // SAFETY: inside the area.
    let (value, mailbox, event) = unsafe {
        let value = device.at(0).cast::<*mut u64>().read_volatile();
        (value, device.at(8).cast::<u64>().read_volatile(), device.at(16).cast::<u32>().read_volatile())
    };
    assert_eq!((value as u64 - va, mailbox, event), (32, 0x5000, 7));
    assert!(device.server.is_quiet());
    device.open(2, 1, 0x6300_0002);
    // SAFETY: inside the area.
    unsafe { value.write_volatile(1) };
    device.server.poll();
    assert!(!device.server.is_quiet(), "a call is open");
    device.send_text(2, 1, b"text");
    // SAFETY: inside the area.
    assert_eq!(unsafe { value.read_volatile() }, 0, "the server closed it");
    assert!(device.server.is_quiet());

    let mut older = Device::new(Abi::Llvm19, 32);
    older.server.area.set_bell(va, &Bell { mailbox: 0x5000, event: 7 });
    assert_eq!(older.server.area.open_calls(), None, "there is no room for one");
}

#[test]
fn printf_fetches_strings_last_first() {
    let mut device = Device::new(Abi::Llvm19, 64);
    device.open(0, 1, 0x6300_0018);
    device.send_text(0, 1, b"%s=%d, %s=%.1f\n\0");
    assert_eq!(device.receive(0, 0)[0], 8 + 4 + 8 + 8);
    let mut block = 0x1000u64.to_le_bytes().to_vec();
    block.extend(42i32.to_le_bytes());
    block.extend(0x2000u64.to_le_bytes());
    block.extend(2.5f64.to_le_bytes());
    device.send_text(0, 1, &block);
    assert_eq!(device.receive(0, 0)[1], 0x2000);
    device.send_text(0, 1, b"two\0");
    assert_eq!(device.receive(0, 0)[1], 0x1000);
    device.send_text(0, 1, b"one\0");
    assert_eq!(device.receive(0, 0)[..2], [16, 0]);
    assert_eq!(device.written.borrow().0, b"one=42, two=2.5\n");
}

#[test]
fn exit_asks_whether_the_server_lives_first() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(5, 1, 0x6300_0001);
    device.send(5, 1, |_| [0; 8]);
    device.receive(5, 0);
    device.send(5, 1, |_| [7, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(device.server.poll(), Progress::Ended(End::Exit(7)));
}

#[test]
fn a_stuck_port_does_not_stop_the_others() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(0, 1, 0x6300_0002);
    device.send(0, 1, |_| [1000; 8]);
    device.open(1, 1, 0x6300_000a);
    device.send(1, 1, |_| [64; 8]);
    assert_eq!(device.receive(1, 0)[0], 0x20_0000);
}

#[test]
fn host_calls_and_unknown_calls_are_refused() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(0, 1, 0x6300_000c);
    device.send_text(0, 1, b"");
    device.send(0, 1, |_| [0x1234; 8]);
    assert_eq!(device.receive(0, 0)[0], u64::MAX);
    device.open(1, 1, 0x6300_7777);
    device.send(1, 1, |_| [0; 8]);
    assert_eq!(device.server.take_complaints().len(), 2);
}

impl Device {
    /// Passes the port back without filling it, between two packets of the server.
    fn acknowledge(&mut self, port: u32) {
        self.send(port, 0, |_| [0; 8]);
    }

    /// A call of one packet a lane and one word of answer.
    fn unary(&mut self, opcode: u32, words: [u64; 3]) -> u64 {
        self.open(0, 1, 0x6300_0000 | opcode);
        self.send(0, 1, |_| [words[0], words[1], words[2], 0, 0, 0, 0, 0]);
        self.receive(0, 0)[0]
    }

    /// The block of `READ_FROM_STREAM` or `READ_FGETS`, of at most 56 bytes.
    fn read(&mut self, opcode: u32, size: u64, stream: u64) -> Vec<u8> {
        self.open(0, 1, 0x6300_0000 | opcode);
        self.send(0, 1, |_| [size, stream, 0, 0, 0, 0, 0, 0]);
        let packet = self.receive(0, 0);
        let bytes: Vec<u8> = packet[1..].iter().flat_map(|word| word.to_le_bytes()).take(packet[0] as usize).collect();
        if opcode == 6 {
            self.acknowledge(0);
            assert_eq!(self.receive(0, 0)[0], bytes.len() as u64);
        }
        bytes
    }

    fn open_file(&mut self, path: &str, mode: &str) -> u64 {
        self.open(0, 1, 0x6300_0008);
        self.send_text(0, 1, format!("{path}\0").as_bytes());
        let mut word = [0; 8];
        word[..mode.len()].copy_from_slice(mode.as_bytes());
        self.send(0, 1, |_| [u64::from_le_bytes(word), 0, 0, 0, 0, 0, 0, 0]);
        // A pipe is opened beside other calls.
        self.wait_for(0);
        self.receive(0, 0)[0]
    }

    fn names(&mut self, opcode: u32, names: &[&str]) -> u64 {
        self.open(0, 1, 0x6300_0000 | opcode);
        for name in names {
            self.send_text(0, 1, format!("{name}\0").as_bytes());
        }
        self.receive(0, 0)[0]
    }

    /// `printf` of one lane with arguments that need no strings; the stream first where it takes one.
    fn printf(&mut self, opcode: u32, stream: Option<u64>, format: &[u8], block: &[u8]) -> (u64, u64) {
        self.open(0, 1, 0x6300_0000 | opcode);
        if let Some(stream) = stream {
            self.send(0, 1, |_| [stream, 0, 0, 0, 0, 0, 0, 0]);
        }
        self.send_text(0, 1, format);
        let size = self.receive(0, 0)[0];
        self.send_text(0, 1, block);
        (size, self.receive(0, 0)[0])
    }
}

const LOST: u64 = u64::MAX;

/// Waits for what must come, and not for ever.
fn until(mut done: impl FnMut() -> bool) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(120);
    while !done() {
        assert!(std::time::Instant::now() < end, "it has not come");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn calls_without_an_answer_give_the_port_back() {
    let mut device = Device::new(Abi::Llvm19, 32);
    for opcode in [0, 11] {
        device.open(0, 1, 0x6300_0000 | opcode);
        device.send(0, 1, |_| [0x1234; 8]);
        device.receive(0, 0);
    }
    assert!(device.server.take_complaints().is_empty());
}

#[test]
fn abort_ends_the_program() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(5, 1, 0x6300_000d);
    device.send(5, 1, |_| [0; 8]);
    device.receive(5, 0);
    device.send(5, 1, |_| [0; 8]);
    assert_eq!(device.server.poll(), Progress::Ended(End::Abort));
}

#[test]
fn release_19_sends_bare_numbers() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(0, 1, 3);
    device.send_text(0, 1, b"error\n");
    assert_eq!(device.receive(0, 0)[0], 6);
    assert_eq!(device.written.borrow().1, b"error\n");
    device.open(0, 1, 5);
    device.send_text(0, 1, b"line");
    assert_eq!(device.receive(0, 0)[0], 5, "puts counts its newline");
    assert_eq!(device.written.borrow().0, b"line\n");
}

#[test]
fn files_as_a_program_uses_them() {
    let path = std::env::temp_dir().join(format!("kfdrun-rpc-{}", std::process::id()));
    let (path, other) = (path.to_str().unwrap().to_owned(), format!("{}-other", path.to_str().unwrap()));
    let mut device = Device::new(Abi::Llvm19, 32);
    assert_eq!(device.open_file(&path, "r"), 0, "there is no such file");
    let file = device.open_file(&path, "w+");
    assert!(file != 0 && file & 3 == 0);
    device.open(0, 1, 0x6300_0004);
    device.send(0, 1, |_| [file; 8]);
    device.send_text(0, 1, b"one\ntwo\n");
    assert_eq!(device.receive(0, 0)[0], 8);
    assert_eq!(
        device.printf(23, Some(file), b"%d,%lld\n\0", &[5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0]),
        (16, 4)
    );
    assert_eq!(device.printf(26, Some(file), b"%d\n\0", &7u32.to_le_bytes()), (4, 2));
    let (seek, tell, end, error, clear, flush, unget) = (17, 18, 14, 15, 16, 19, 20);
    assert_eq!(device.unary(flush, [file, 0, 0]), 0);
    assert_eq!(device.unary(tell, [file, 0, 0]), 14);
    assert_eq!(device.unary(seek, [file, 0, 3]), LOST, "counted from nowhere that C knows");
    assert_eq!(device.unary(seek, [file, 0, 0]), 0);
    assert_eq!(device.read(7, 56, file), b"one\n\0");
    assert_eq!(device.unary(unget, [u64::from(b'e'), file, 0]), u64::from(b'e'));
    assert_eq!(device.read(6, 3, file), b"etw");
    assert_eq!(device.unary(end, [file, 0, 0]), 0);
    assert_eq!(device.read(6, 50, file), b"o\n5,6\n7\n");
    assert_ne!(device.unary(end, [file, 0, 0]), 0);
    device.open(0, 1, 0x6300_0000 | clear);
    device.send(0, 1, |_| [file; 8]);
    assert_eq!((device.unary(end, [file, 0, 0]), device.unary(error, [file, 0, 0])), (0, 0));
    assert_eq!(device.unary(9, [file, 0, 0]), 0);
    assert_eq!(device.unary(9, [file, 0, 0]) as i32, -1, "closed already");
    assert_eq!(device.names(28, &[&path, &other]), 0);
    assert_eq!(std::fs::read(&other).unwrap(), b"one\ntwo\n5,6\n7\n");
    assert_eq!((device.names(27, &[&other]), device.names(27, &[&other])), (0, LOST));
}

#[test]
fn printf_to_either_output_with_packed_and_aligned_arguments() {
    let mut device = Device::new(Abi::Llvm19, 64);
    let packed = [&7u32.to_le_bytes()[..], &2.5f64.to_le_bytes()].concat();
    let aligned = [&7u64.to_le_bytes()[..], &2.5f64.to_le_bytes()].concat();
    for (opcode, block) in [(21, &aligned), (22, &aligned), (24, &packed), (25, &packed)] {
        assert_eq!(device.printf(opcode, None, b"%d %.1f;\0", block), (block.len() as u64, 6), "{opcode}");
    }
    for (opcode, stream, block) in [(23, 2, &aligned), (23, 3, &aligned), (26, 2, &packed), (26, 3, &packed)] {
        assert_eq!(device.printf(opcode, Some(stream), b"%d %.1f;\0", block).1, 6, "{opcode}");
    }
    let expected = "7 2.5;".repeat(4).into_bytes();
    assert_eq!(*device.written.borrow(), (expected.clone(), expected));
}

/// As LLVM's libc prints it on the device, in `snprintf`.
#[test]
fn a_null_pointer_is_printed_as_llvm_does() {
    let mut device = Device::new(Abi::Llvm19, 64);
    let block = [0u64, 0xdead, 0].map(u64::to_le_bytes).concat();
    assert_eq!(device.printf(24, None, b"%p %p %11p\0", &block), (24, 9 + 1 + 6 + 1 + 11));
    assert_eq!(device.written.borrow().0, b"(nullptr) 0xdead   (nullptr)");
}

#[test]
fn a_read_that_waits_keeps_no_other_call_waiting() {
    use std::io::Write;
    let mut device = Device::new(Abi::Llvm19, 32);
    let (mut writer, reader) = std::os::unix::net::UnixStream::pair().unwrap();
    device.server.shared.borrow_mut().files.set_stdin(input::Input::new(reader.into()));
    device.open(3, 1, 0x6300_0007);
    device.send(3, 1, |_| [40, 1, 0, 0, 0, 0, 0, 0]);
    assert_eq!(device.unary(10, [64, 0, 0]), 0x20_0000, "another port is served");
    writer.write_all(b"a line\n").unwrap();
    device.server.poll();
    let packet = device.receive(3, 0);
    assert_eq!((packet[0], packet[1].to_le_bytes()), (8, *b"a line\n\0"));
    writer.write_all(b"xy").unwrap();
    assert_eq!(device.read(6, 1, 1), b"x");
    assert_eq!(device.unary(20, [u64::from(b'z'), 1, 0]), u64::from(b'z'));
    assert_eq!(device.read(6, 2, 1), b"zy");
    // Not only dropped: a child that another test has just forked may still have a copy.
    writer.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(device.unary(14, [1, 0, 0]), 0);
    assert_eq!(device.read(7, 40, 1), b"");
    assert_ne!(device.unary(14, [1, 0, 0]), 0);
    assert_eq!(
        (device.unary(15, [1, 0, 0]), device.unary(17, [1, 0, 0]), device.unary(18, [1, 0, 0])),
        (0, LOST, LOST)
    );
}

/// A FIFO and its reader, which writes too: opening it waits for nobody.
fn fifo(path: &std::path::Path) -> std::fs::File {
    let name = files::c_string(path.as_os_str().as_encoded_bytes()).unwrap();
    // SAFETY: a NUL-terminated string.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    std::fs::File::options().read(true).write(true).open(path).unwrap()
}

/// A pipe that nobody reads holds up the call that writes to it, whatever that is, and no other.
#[test]
fn a_write_that_waits_keeps_no_other_call_waiting() {
    use std::io::Read;
    use std::os::fd::AsRawFd;
    let path = std::env::temp_dir().join(format!("kfdrun-fifo-{}", std::process::id()));
    let mut reader = fifo(&path);
    let mut device = Device::new(Abi::Llvm19, 32);
    let file = device.open_file(path.to_str().unwrap(), "w");
    std::fs::remove_file(&path).unwrap();
    // More than a pipe holds, in whole blocks of the stream's buffer, which keeps nothing then.
    let text = vec![b'x'; 24 * 4096];
    device.open(3, 1, 0x6300_0004);
    device.send(3, 1, |_| [file; 8]);
    device.send_text(3, 1, &text);
    // The pipe is full: whoever writes waits, with the stream's lock.
    let mut bytes = 0;
    until(|| {
        // SAFETY: an open descriptor, and a place for the number.
        assert_eq!(unsafe { libc::ioctl(reader.as_raw_fd(), libc::FIONREAD, &mut bytes) }, 0);
        bytes == 65536
    });
    for (port, opcode) in [(4, 0x6300_0013), (5, 0x6300_000e)] {
        device.open(port, 1, opcode);
        // `fflush` of all, `feof` of this one.
        device.send(port, 1, |_| [if port == 5 { file } else { 0 }; 8]);
    }
    for _ in 0..100 {
        assert_eq!(device.unary(10, [64, 0, 0]), 0x20_0000, "another port is served");
        assert_eq!([3, 4, 5].map(|port| device.answered(port)), [false; 3]);
    }
    let mut rest = text.len();
    let mut block = vec![0; 65536];
    while rest > 0 {
        rest -= reader.read(&mut block[..rest.min(65536)]).unwrap();
    }
    for (port, answer) in [(3, text.len() as u64), (4, 0), (5, 0)] {
        device.wait_for(port);
        assert_eq!(device.receive(port, 0)[0], answer, "port {port}");
    }
    until(|| device.server.finish());
}

/// What is kept for a pipe that nobody reads keeps nothing back that is for a file.
#[test]
fn the_last_writes_to_files_wait_for_no_pipe() {
    let folder = std::env::temp_dir().join(format!("kfdrun-last-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (pipe, log) = (folder.join("pipe"), folder.join("log"));
    let mut reader = fifo(&pipe);
    std::io::Write::write_all(&mut reader, &[0; 65536]).unwrap();
    let mut device = Device::new(Abi::Llvm19, 32);
    let stuck = device.open_file(pipe.to_str().unwrap(), "w");
    let kept: Vec<u64> = (0..8).map(|n| device.open_file(&format!("{}{n}", log.display()), "w")).collect();
    for file in [&[stuck], &kept[..]].concat() {
        device.open(0, 1, 0x6300_0004);
        device.send(0, 1, |_| [file; 8]);
        device.send_text(0, 1, b"kept");
        device.wait_for(0);
    }
    assert!(!device.server.finish(), "the pipe is full");
    for n in 0..8 {
        assert_eq!(std::fs::read(format!("{}{n}", log.display())).unwrap(), b"kept");
    }
    std::io::Read::read_exact(&mut reader, &mut [0; 65536]).unwrap();
    until(|| device.server.finish());
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Of no stream, `fflush` means all of them.
#[test]
fn fflush_of_all() {
    let path = std::env::temp_dir().join(format!("kfdrun-flush-{}", std::process::id()));
    let mut device = Device::new(Abi::Llvm19, 32);
    let file = device.open_file(path.to_str().unwrap(), "w");
    device.open(0, 1, 0x6300_0004);
    device.send(0, 1, |_| [file; 8]);
    device.send_text(0, 1, b"kept");
    assert_eq!(std::fs::read(&path).unwrap(), b"");
    assert_eq!(device.unary(19, [0, 0, 0]), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"kept");
    std::fs::remove_file(&path).unwrap();
}

#[test]
fn no_memory_of_no_bytes() {
    let mut device = Device::new(Abi::Llvm19, 32);
    assert_eq!(device.unary(10, [0, 0, 0]), 0);
    assert_eq!(device.unary(10, [1, 0, 0]), 0x20_0000);
}

/// What a command started ends with the run; one that cannot be started would have ended with 127.
#[test]
fn commands_and_what_they_start() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.open(3, 1, 0x6300_001d);
    device.send_text(3, 1, &[vec![b'x'; 300_000], vec![0]].concat());
    device.wait_for(3);
    assert_eq!(device.receive(3, 0)[0], 127 << 8);

    let note = std::env::temp_dir().join(format!("kfdrun-child-{}", std::process::id()));
    // The shell would start the second one when the first ends.
    let command =
        format!("sh -c 'sleep 1000 & echo $! > {0}.new; mv {0}.new {0}; wait'; echo > {0}.second\0", note.display());
    device.open(3, 1, 0x6300_001d);
    device.send_text(3, 1, command.as_bytes());
    until(|| note.exists());
    let child: i32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    std::fs::remove_file(&note).unwrap();
    drop(device);
    // A process that has ended is a zombie or gone; whoever has it for a child now is not this test.
    until(|| {
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        stat.rsplit(')').next().unwrap_or_default().trim().starts_with(['Z', 'X']) || stat.is_empty()
    });
    assert!(!note.with_extension("second").exists());
}

#[test]
fn a_command_runs_beside_other_calls() {
    let mut device = Device::new(Abi::Llvm19, 32);
    let gate = std::env::temp_dir().join(format!("kfdrun-gate-{}", std::process::id()));
    let command = format!("while [ ! -e {} ]; do sleep 0.01; done; exit 3\0", gate.display());
    device.open(3, 1, 0x6300_001d);
    device.send_text(3, 1, command.as_bytes());
    assert_eq!(device.unary(10, [64, 0, 0]), 0x20_0000, "another port is served");
    std::fs::write(&gate, b"").unwrap();
    device.wait_for(3);
    std::fs::remove_file(&gate).unwrap();
    assert_eq!(device.receive(3, 0)[0], 3 << 8);
}

#[test]
fn the_calls_of_the_librarys_own_tests() {
    let mut device = Device::new(Abi::Llvm19, 32);
    assert_eq!(device.unary(0x8000, [41, 0, 0]), 42);
    device.open(0, 1, 0x6300_8002);
    device.send_text(0, 1, b"echo");
    assert_eq!(device.receive(0, 0)[..2], [4, u64::from(u32::from_le_bytes(*b"echo"))]);
    // The mix of sends and receives, ended by either side.
    for ends_with_receive in [0, 1] {
        device.open(0, 1, 0x6300_8001);
        let word = |value: u64| move |_: u32| [value, 0, 0, 0, 0, 0, 0, 0];
        device.send(0, 1, word(ends_with_receive));
        device.send(0, 1, word(1));
        assert_eq!(device.receive(0, 0)[0], 2);
        device.send(0, 1, word(3));
        assert_eq!(device.receive(0, 0)[0], 4);
        device.send(0, 1, word(5));
        device.send(0, 1, word(7));
        assert_eq!(device.receive(0, 0)[0], 8);
        device.acknowledge(0);
        assert_eq!(device.receive(0, 0)[0], 9);
        if ends_with_receive == 1 {
            device.send(0, 1, word(10));
        } else {
            device.acknowledge(0);
        }
        assert_eq!(device.receive(0, 0)[0], 10);
    }
}

#[test]
fn own_calls_are_served_before_the_librarys() {
    let mut device = Device::new(Abi::Llvm19, 32);
    device.server.set_handler(Box::new(|port| match port.opcode {
        0x7500_0001 | 0x6300_000a => Some(Box::pin(async move {
            port.receive().await;
            port.reply(|lane| port.packet(lane)[0] * 2).await;
        })),
        _ => None,
    }));
    for opcode in [0x7500_0001, 0x6300_000a] {
        device.open(1, 0b11, opcode);
        device.send(1, 0b11, |lane| [20 + u64::from(lane); 8]);
        assert_eq!((device.receive(1, 0)[0], device.receive(1, 1)[0]), (40, 42));
    }
    assert_eq!(device.unary(0x8000, [1, 0, 0]), 2, "what it leaves is the library's");
}
