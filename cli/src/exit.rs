//! Exit statuses.

/// Bad usage, as clap ends with.
pub const USAGE: u8 = 2;
/// The program's time was over.
pub const TIMEOUT: u8 = 124;
/// Driver, device or environment.
pub const ENVIRONMENT: u8 = 125;
/// The image was refused, or no device can run it.
pub const REFUSED: u8 = 126;
/// There is no such image.
pub const NOT_FOUND: u8 = 127;
/// Interrupted by the user, as a shell reports SIGINT.
pub const INTERRUPTED: u8 = 130;
/// Illegal instruction, as a shell reports SIGILL.
pub const ILLEGAL_INSTRUCTION: u8 = 132;
/// Trap, as a shell reports SIGTRAP.
pub const TRAP: u8 = 133;
/// Abort, as a shell reports SIGABRT.
pub const ABORT: u8 = 134;
/// Whoever read standard output has gone, as a shell reports SIGPIPE.
pub const PIPE: u8 = 141;
/// Memory fault, as a shell reports SIGSEGV.
pub const MEMORY_FAULT: u8 = 139;

/// Why there is no program value to exit with.
#[derive(Debug)]
pub struct Failure {
    /// Exit status.
    pub status: u8,
    /// What to say; nothing when it is empty.
    pub text: String,
}

impl Failure {
    /// Whether something ran before it failed.
    pub fn is_of_run(&self) -> bool {
        matches!(self.status, TIMEOUT | INTERRUPTED | ILLEGAL_INSTRUCTION | TRAP | ABORT | MEMORY_FAULT)
    }

    /// A failure with this status.
    pub fn new(status: u8, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }
}

impl From<kfd::Error> for Failure {
    fn from(error: kfd::Error) -> Failure {
        Failure::new(ENVIRONMENT, error.report())
    }
}

impl From<loader::Error> for Failure {
    fn from(error: loader::Error) -> Failure {
        let status = match &error {
            loader::Error::Kfd(_) | loader::Error::Scratch { .. } => ENVIRONMENT,
            // What the kernel does not take, rather than what it is.
            loader::Error::Launch { .. }
            | loader::Error::Kernarg(loader::kernarg::Error::Count { .. })
            | loader::Error::Kernarg(loader::kernarg::Error::Mismatch { .. })
            | loader::Error::Kernarg(loader::kernarg::Error::Lds { .. }) => USAGE,
            loader::Error::Stopped(stop) => match stop.as_ref() {
                loader::Stop::MemoryFault { .. } => MEMORY_FAULT,
                loader::Stop::Sanitizer { .. } => ABORT,
                loader::Stop::Timeout { .. } | loader::Stop::Unread { limit: Some(_) } => TIMEOUT,
                loader::Stop::Interrupted { .. } | loader::Stop::Unread { limit: None } => INTERRUPTED,
                stop if stop.is_trap() => TRAP,
                stop if stop.is_illegal_instruction() => ILLEGAL_INSTRUCTION,
                stop if stop.is_bad_address() => MEMORY_FAULT,
                _ => ENVIRONMENT,
            },
            _ => REFUSED,
        };
        let text = match error {
            loader::Error::Kfd(error) => error.report(),
            error => error.to_string(),
        };
        Failure { status, text }
    }
}
