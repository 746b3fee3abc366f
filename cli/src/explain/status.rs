//! HSA status numbers (`hsa.h`, `hsa_ext_amd.h`): what ROCR prints, and what lies behind it.

use super::input::Number;
use super::{Reading, queue, row};
use aql::{HSA_STATUSES, HsaStatus, hsa_status};

/// A status by its name, with or without `HSA_STATUS_` and `ERROR_`.
pub fn name(name: &str) -> Option<Reading> {
    let upper = name.to_ascii_uppercase();
    let name = upper.strip_prefix("HSA_STATUS_").unwrap_or(&upper);
    let same = |status: &&HsaStatus| status.name == name || status.name.strip_prefix("ERROR_") == Some(name);
    HSA_STATUSES.iter().find(same).map(|status| reading(status, 95))
}

/// A status by its number.
pub fn number(number: Number) -> Option<Reading> {
    let status = number.word()?;
    let likely = if status < 0x1000 { number.likely(45, 25) } else { number.likely(97, 85) };
    hsa_status(status).map(|status| reading(status, likely))
}

fn reading(status: &HsaStatus, likely: u8) -> Reading {
    let mut reading = Reading::new("hsa", likely, format!("{status}: {}", status.meaning));
    reading = reading.section("As a queue error of ROCR it stands for", queue::behind(status.number));
    reading = match status.number {
        0x1008 => reading.section(
            "Causes that ROCR reports with this one number",
            vec![
                row("", "", "/dev/kfd or a render node may not be opened (EACCES): kfdrun doctor"),
                row("", "", "no GPU the driver can use (ENOMEM on open): kfdrun doctor"),
                row("", "", "CREATE_QUEUE refused (EINVAL: sizes; ENOMEM: doorbells): kfdrun explain CREATE_QUEUE"),
                row("", "", "scratch that does not fit: private segment bytes x lanes x waves x compute units"),
                row(
                    "",
                    "",
                    "memory, or the KFD's own limit on it, is used up: kfdrun explain ALLOC_MEMORY_OF_GPU ENOMEM",
                ),
            ],
        ),
        0x1009 => reading.note(
            "kfdrun explain packet BYTES checks the packet. A header that was stored before the other 60 bytes, or \
             without a release, gives the same error now and then.",
        ),
        0x100f => reading.note(
            "Seen while a kernel runs, it says nothing about the image's target: the packet processor found that the \
             kernel needs more registers than there are (exception 22).",
        ),
        0x1010 => reading.note("When loading: wrong target, code object version or ELF type, or a damaged file."),
        0x1016 => reading.note("s_trap without a handler, __builtin_trap, abort() and failed assertions end so."),
        41 | 43 => reading.note("The line before it names the address; kfdrun --trace shows what is mapped there."),
        _ => reading,
    };
    reading
}
