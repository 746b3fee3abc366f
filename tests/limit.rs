//! Commands that end in time: no test waits for ever.

#![allow(dead_code, clippy::panic)]

use std::io::Read;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Longer than any command of a test takes.
pub const LIMIT: Duration = Duration::from_secs(400);

/// As [`Command::output`], with nothing on standard input unless the command says so. A command that takes longer than
/// [`LIMIT`] is killed, and the test fails.
pub fn output(command: &mut Command) -> Output {
    try_output(command).expect("it starts")
}

/// As [`output`], for what may not be there.
pub fn try_output(command: &mut Command) -> std::io::Result<Output> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().map(finish)
}

/// Waits for a child and what it prints.
pub fn finish(mut child: Child) -> Output {
    let stdout = child.stdout.take().map(reader);
    let stderr = child.stderr.take().map(reader);
    let end = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait().expect("a child of this process") {
            Some(status) => break status,
            None if Instant::now() > end => {
                child.kill().expect("it is killed");
                child.wait().expect("it has been killed");
                panic!("no end after {LIMIT:?}");
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    };
    let join = |reader: Option<std::thread::JoinHandle<Vec<u8>>>| {
        reader.map_or(Vec::new(), |reader| reader.join().expect("it only reads"))
    };
    Output { status, stdout: join(stdout), stderr: join(stderr) }
}

fn reader(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until then is the answer.
        let _ = from.read_to_end(&mut bytes);
        bytes
    })
}
