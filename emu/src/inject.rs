//! Faults on request: what a client should survive, at a moment that can be chosen.
//!
//! | request | what happens |
//! |---|---|
//! | `CREATE_QUEUE:2=ENOMEM` | the second CREATE_QUEUE fails with this errno before the kernel looks at it |
//! | `lost-interrupt:3` | the third interrupt of a GPU is lost: its signal and slot are written, and nobody is woken |
//! | `vm-fault:0x7f0000001000` | the page of this GPU address is not mapped, whatever the client maps |
//! | `vm-fault:#2+0x1000` | the same for an offset into the second buffer that ALLOC_MEMORY_OF_GPU hands out |
//! | `reset:4` | the GPU hangs at the fourth packet and is reset: HW_EXCEPTION events, its queues never run again |
//! | `removal:4` | at the fourth packet the GPU is gone: the same, and the kernel no longer knows its id |
//! | `slow:1000` | each packet waits for 1000 µs before the packet processor looks at it |

use kfd::Errno;
use kfd::uapi::IOCTLS;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Injection {
    /// The `nth` call of a request fails.
    Errno {
        /// Request number, low 8 bits.
        nr: u8,
        /// From 1.
        nth: u64,
        /// With this.
        errno: Errno,
    },
    /// The `nth` interrupt is lost.
    LostInterrupt {
        /// From 1.
        nth: u64,
    },
    /// A page is not there.
    VmFault {
        /// Buffer, by order of allocation from 1; None: `offset` is an address.
        buffer: Option<u64>,
        /// Bytes.
        offset: u64,
    },
    /// The GPU is reset, or gone, at the `nth` packet.
    Reset {
        /// From 1.
        nth: u64,
        /// It is gone.
        removal: bool,
    },
    /// Each packet waits.
    Slow {
        /// For so long.
        delay: Duration,
    },
}

/// Why a request for a fault is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InjectionError {
    /// No `:`.
    #[error(
        "'{0}' is no fault: write IOCTL:N=ERRNO, lost-interrupt:N, vm-fault:ADDRESS, vm-fault:#BUFFER+OFFSET, reset:N, \
         removal:N or slow:MICROSECONDS"
    )]
    Form(String),
    /// Not a request.
    #[error("'{0}' is no AMDKFD request; names are as in CREATE_QUEUE")]
    Request(String),
    /// Not an error number.
    #[error("'{0}' is no error number: write its name, as ENOMEM, or a number from 1 to 4095")]
    Errno(String),
    /// Not a count.
    #[error("'{0}' must be a number, 1 at least")]
    Count(String),
    /// Not an address.
    #[error("'{0}' must be an address or an offset in hexadecimal, with 0x, or decimal")]
    Address(String),
}

fn number(text: &str) -> Result<u64, InjectionError> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| InjectionError::Address(text.to_owned()))
}

fn count(text: &str) -> Result<u64, InjectionError> {
    text.parse().ok().filter(|count| *count > 0).ok_or_else(|| InjectionError::Count(text.to_owned()))
}

fn errno(text: &str) -> Result<Errno, InjectionError> {
    let by_name = || (1..4096).map(Errno::from_raw).find(|errno| errno.name() == text);
    let by_number = || text.parse().ok().filter(|raw| (1..4096).contains(raw)).map(Errno::from_raw);
    by_name().or_else(by_number).ok_or_else(|| InjectionError::Errno(text.to_owned()))
}

impl FromStr for Injection {
    type Err = InjectionError;

    fn from_str(text: &str) -> Result<Injection, InjectionError> {
        let form = || InjectionError::Form(text.to_owned());
        let (what, value) = text.split_once(':').ok_or_else(form)?;
        Ok(match what {
            "lost-interrupt" => Injection::LostInterrupt { nth: count(value)? },
            "reset" => Injection::Reset { nth: count(value)?, removal: false },
            "removal" => Injection::Reset { nth: count(value)?, removal: true },
            "slow" => Injection::Slow { delay: Duration::from_micros(count(value)?) },
            "vm-fault" => match value.strip_prefix('#') {
                None => Injection::VmFault { buffer: None, offset: number(value)? },
                Some(place) => {
                    let (buffer, offset) = place.split_once('+').unwrap_or((place, "0"));
                    Injection::VmFault { buffer: Some(count(buffer)?), offset: number(offset)? }
                }
            },
            request => {
                let (nth, name) = value.split_once('=').ok_or_else(form)?;
                let info = IOCTLS.iter().find(|info| info.name.eq_ignore_ascii_case(request));
                let info = info.ok_or_else(|| InjectionError::Request(request.to_owned()))?;
                Injection::Errno { nr: info.nr, nth: count(nth)?, errno: errno(name)? }
            }
        })
    }
}

/// The faults of a machine, and how far it has come to them.
#[derive(Debug, Default)]
pub struct Faults {
    injections: Vec<(Injection, AtomicU64)>,
    buffers: AtomicU64,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is processed, after this long.
    Runs(Duration),
    /// The GPU is reset at it, or gone.
    Reset {
        /// It is gone.
        removal: bool,
    },
}

impl Faults {
    /// These faults.
    pub fn new(injections: &[Injection]) -> Faults {
        let injections = injections.iter().map(|injection| (injection.clone(), AtomicU64::new(0))).collect();
        Faults { injections, buffers: AtomicU64::new(0) }
    }

    /// Whether this is the `nth` time.
    fn comes(counter: &AtomicU64, nth: u64) -> bool {
        counter.fetch_add(1, Ordering::Relaxed) + 1 == nth
    }

    /// The errno that a call of this request fails with.
    pub fn call(&self, nr: u8) -> Option<Errno> {
        let mut result = None;
        for (injection, counter) in &self.injections {
            if let Injection::Errno { nr: wanted, nth, errno } = injection
                && *wanted == nr
                && Faults::comes(counter, *nth)
            {
                result.get_or_insert(*errno);
            }
        }
        result
    }

    /// Whether an interrupt is lost.
    pub fn loses_interrupt(&self) -> bool {
        let mut lost = false;
        for (injection, counter) in &self.injections {
            if let Injection::LostInterrupt { nth } = injection {
                lost |= Faults::comes(counter, *nth);
            }
        }
        lost
    }

    /// A buffer was allocated at `va`: addresses in it that are not there.
    pub fn allocated(&self, va: u64) -> Vec<u64> {
        let ordinal = self.buffers.fetch_add(1, Ordering::Relaxed) + 1;
        let inside = |(injection, _): &(Injection, AtomicU64)| match injection {
            Injection::VmFault { buffer: Some(buffer), offset } if *buffer == ordinal => Some(va.wrapping_add(*offset)),
            _ => None,
        };
        self.injections.iter().filter_map(inside).collect()
    }

    /// Addresses that are not there from the start.
    pub fn holes(&self) -> Vec<u64> {
        let fixed = |(injection, _): &(Injection, AtomicU64)| match injection {
            Injection::VmFault { buffer: None, offset } => Some(*offset),
            _ => None,
        };
        self.injections.iter().filter_map(fixed).collect()
    }

    /// What becomes of the next packet.
    pub fn packet(&self) -> Fate {
        let (mut delay, mut reset) = (Duration::ZERO, None);
        for (injection, counter) in &self.injections {
            match injection {
                Injection::Slow { delay: wanted } => delay = delay.max(*wanted),
                Injection::Reset { nth, removal } if Faults::comes(counter, *nth) => reset = Some(*removal),
                _ => {}
            }
        }
        reset.map_or(Fate::Runs(delay), |removal| Fate::Reset { removal })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let good = [
            ("CREATE_QUEUE:2=ENOMEM", Injection::Errno { nr: 2, nth: 2, errno: Errno::ENOMEM }),
            ("alloc_memory_of_gpu:1=524", Injection::Errno { nr: 0x16, nth: 1, errno: Errno::from_raw(524) }),
            ("lost-interrupt:3", Injection::LostInterrupt { nth: 3 }),
            ("vm-fault:0x1000", Injection::VmFault { buffer: None, offset: 0x1000 }),
            ("vm-fault:#2+0x10", Injection::VmFault { buffer: Some(2), offset: 16 }),
            ("reset:1", Injection::Reset { nth: 1, removal: false }),
            ("removal:7", Injection::Reset { nth: 7, removal: true }),
            ("slow:1500", Injection::Slow { delay: Duration::from_micros(1500) }),
        ];
        for (text, expected) in good {
            assert_eq!(text.parse(), Ok(expected), "{text}");
        }
        let bad = [
            "",
            "reset",
            "reset:0",
            "reset:x",
            "NO_SUCH:1=EIO",
            "CREATE_QUEUE:1",
            "CREATE_QUEUE:1=ENOSUCH",
            "vm-fault:#0",
            "vm-fault:1z",
        ];
        for text in bad {
            assert!(text.parse::<Injection>().is_err(), "{text}");
        }
    }

    #[test]
    fn faults_come_when_they_were_asked_for() {
        let of = |texts: &[&str]| Faults::new(&texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<_>>());
        let faults = of(&["CREATE_QUEUE:2=EIO", "lost-interrupt:1", "vm-fault:#2+0x10", "vm-fault:0x5000"]);
        assert_eq!([2, 3, 2, 2].map(|nr| faults.call(nr)), [None, None, Some(Errno::EIO), None]);
        assert_eq!([faults.loses_interrupt(), faults.loses_interrupt()], [true, false]);
        assert_eq!([faults.allocated(0x1000), faults.allocated(0x2000)], [vec![], vec![0x2010]]);
        assert_eq!(faults.holes(), [0x5000]);
        let faults = of(&["slow:5", "removal:2"]);
        let runs = Fate::Runs(Duration::from_micros(5));
        assert_eq!([faults.packet(), faults.packet(), faults.packet()], [runs, Fate::Reset { removal: true }, runs]);
    }
}
