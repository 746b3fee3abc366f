//! Runs cases, each in a process of its own.

use crate::case::{Case, Needs};
use crate::device::Device;
use crate::record::{Outcome, Record};
use crate::session::{Session, Stop};
use emu::Options;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

/// How cases are run.
#[derive(Clone, Debug)]
pub struct Config {
    /// On what.
    pub device: Device,
    /// How the emulated machine is run.
    pub options: Options,
    /// A case that takes longer is ended, and broken.
    pub limit: Duration,
    /// Also cases that are not safe.
    pub all: bool,
}

/// Runs a case in this process, and writes down what it found.
pub fn here(config: &Config, case: &Case) -> Record {
    let record = |outcome, steps| Record { id: case.id(), outcome, steps };
    if !case.safe && !config.all {
        return record(Outcome::Skip("not safe on a GPU that others use (--all-cases)".to_string()), Vec::new());
    }
    let session = match config.device.driver(&config.options) {
        Ok(driver) => Session::new(driver),
        Err(error) => Err(Stop::Failed(format!("the emulated machine cannot start: {error}"))),
    };
    let mut session = match session {
        Ok(session) => session,
        Err(Stop::Skip(reason)) => return record(Outcome::Skip(reason), Vec::new()),
        Err(Stop::Failed(reason)) => return record(Outcome::Broken(reason), Vec::new()),
    };
    match (case.needs, session.gpu_nodes) {
        (Needs::Gpu, 0) => return record(Outcome::Skip("no GPU".to_string()), Vec::new()),
        (Needs::NoGpu, gpus @ 1..) => {
            return record(Outcome::Skip(format!("there are GPUs ({gpus})")), Vec::new());
        }
        _ => {}
    }
    let ended = (case.run)(&mut session);
    let steps = session.into_steps();
    let outcome = match ended {
        Err(Stop::Skip(reason)) => Outcome::Skip(reason),
        Err(Stop::Failed(reason)) => Outcome::Broken(reason),
        Ok(()) if steps.iter().all(|step| step.got == step.want) => Outcome::Pass,
        Ok(()) => Outcome::Fail,
    };
    record(outcome, steps)
}

/// Runs a case in a child process.
///
/// The caller must have one thread only: the child is a fork that goes on.
pub fn apart(config: &Config, case: &Case) -> Record {
    match fork(config, case) {
        Ok(record) => record,
        Err(error) => Record {
            id: case.id(),
            outcome: Outcome::Broken(format!("no process for the case: {error}")),
            steps: Vec::new(),
        },
    }
}

fn fork(config: &Config, case: &Case) -> std::io::Result<Record> {
    let work = |mut out: std::fs::File| {
        // Without a reader there is nobody to tell.
        let _ = out.write_all(here(config, case).to_line().as_bytes());
    };
    let (text, ended) = forked(work, Instant::now() + config.limit)?;
    let broken = |reason| Record { id: case.id(), outcome: Outcome::Broken(reason), steps: Vec::new() };
    Ok(Record::from_line(&text).filter(|_| ended != Ended::TooLate).unwrap_or_else(|| {
        broken(match ended {
            Ended::TooLate => format!("it took longer than {} s", config.limit.as_secs()),
            Ended::Killed(signal) => format!("its process died by signal {signal}"),
            Ended::Exited(status) => format!("its process ended with status {status} and without a result"),
        })
    }))
}

/// How a child process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// With a status.
    Exited(i32),
    /// By a signal.
    Killed(i32),
    /// It was ended because its time was up.
    TooLate,
}

/// Runs `work` in a child process until it is done or `deadline` comes; what it wrote, and how it ended.
///
/// The caller must have one thread only: the child is a fork that goes on.
///
/// # Errors
/// There is no process or no pipe left.
pub fn forked(work: impl FnOnce(std::fs::File), deadline: Instant) -> std::io::Result<(String, Ended)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` has room for the two descriptors, which nothing else owns.
    let (reader, writer) = unsafe {
        if libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) != 0 {
            return Err(std::io::Error::last_os_error());
        }
        (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1]))
    };
    // SAFETY: this process has one thread (the caller's promise), so the child may do whatever it could do here.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(std::io::Error::last_os_error());
    }
    if child == 0 {
        drop(reader);
        // SAFETY: a group of its own, so that all that it starts can be ended with it.
        unsafe {
            libc::setpgid(0, 0);
        }
        work(writer.into());
        // SAFETY: the child ends here, and runs nothing of what its parent registered.
        unsafe { libc::_exit(0) }
    }
    drop(writer);
    let (text, in_time) = read_until(reader, deadline)?;
    // SAFETY: the group is the child's; that it may be gone is fine. The child is waited for once.
    let status = unsafe {
        if !in_time {
            libc::kill(child, libc::SIGKILL);
        }
        let mut status = 0;
        libc::waitpid(child, &raw mut status, 0);
        libc::kill(-child, libc::SIGKILL);
        status
    };
    let ended = match in_time {
        false => Ended::TooLate,
        true if libc::WIFSIGNALED(status) => Ended::Killed(libc::WTERMSIG(status)),
        true => Ended::Exited(libc::WEXITSTATUS(status)),
    };
    Ok((text, ended))
}

/// Reads until the other end is closed or the deadline comes; false: it came.
pub(crate) fn read_until(fd: OwnedFd, deadline: Instant) -> std::io::Result<(String, bool)> {
    let mut file = std::fs::File::from(fd);
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd { fd: file.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one entry, which is there.
        let ready = unsafe { libc::poll(&raw mut poll, 1, i32::try_from(left.as_millis()).unwrap_or(i32::MAX)) };
        match ready {
            0 => return Ok((String::from_utf8_lossy(&bytes).into_owned(), false)),
            1.. => match file.read(&mut chunk)? {
                0 => return Ok((String::from_utf8_lossy(&bytes).into_owned(), true)),
                n => bytes.extend_from_slice(&chunk[..n]),
            },
            _ => {
                let error = std::io::Error::last_os_error();
                if error.kind() != std::io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
