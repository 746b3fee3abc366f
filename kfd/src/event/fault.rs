//! What memory and hardware exception events tell.

use crate::types::{GpuId, GpuVa};
use crate::uapi::{self, MemoryExceptionFailure};
use std::fmt;

/// A memory fault as the driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryFault {
    /// GPU.
    pub gpu: GpuId,
    /// Address, rounded down to a page.
    pub va: GpuVa,
    /// The reasons as they came.
    pub raw: MemoryExceptionFailure,
    /// `MEM_ERR_*` as it came.
    pub error_type: u32,
}

impl From<uapi::HsaMemoryExceptionData> for MemoryFault {
    fn from(data: uapi::HsaMemoryExceptionData) -> MemoryFault {
        MemoryFault { gpu: GpuId(data.gpu_id), va: GpuVa(data.va), raw: data.failure, error_type: data.error_type }
    }
}

impl MemoryFault {
    /// Everything the driver told, as it came.
    pub fn raw_text(&self) -> String {
        let MemoryExceptionFailure { not_present, read_only, no_execute, imprecise } = self.raw;
        format!(
            "NotPresent={not_present} ReadOnly={read_only} NoExecute={no_execute} imprecise={imprecise} ErrorType={}",
            self.error_type
        )
    }

    /// Every reason that is set, in words.
    pub fn reasons(&self) -> Vec<&'static str> {
        let mut reasons = Vec::new();
        let flags = [
            (self.raw.not_present, "no page is mapped there"),
            (self.raw.read_only, "store to a page that may only be read"),
            (self.raw.no_execute, "instruction fetch from a page that may not be executed"),
        ];
        reasons.extend(flags.iter().filter(|(flag, _)| *flag != 0).map(|(_, reason)| *reason));
        match self.error_type {
            uapi::MEM_ERR_NO_RAS => {}
            uapi::MEM_ERR_SRAM_ECC => reasons.push("uncorrectable error in on-chip memory"),
            uapi::MEM_ERR_POISON_CONSUMED => reasons.push("damaged (poisoned) data was read"),
            uapi::MEM_ERR_GPU_HANG => reasons.push("the GPU hangs"),
            _ => reasons.push("an ErrorType that is not known"),
        }
        if reasons.is_empty() {
            reasons.push("the driver gave no reason bits");
        }
        reasons
    }

    /// What is to be known of the address, when the driver says that it is not exact.
    pub fn caveat(&self) -> Option<&'static str> {
        (self.raw.imprecise != 0).then_some("imprecise: the access was elsewhere or earlier, the address is not exact")
    }

    /// The reason that ROCR prints for it (`VMFaultHandler` in `runtime.cpp`): the first that it finds, of several.
    pub fn rocr_reason(&self) -> &'static str {
        match (self.raw, self.error_type) {
            (MemoryExceptionFailure { not_present: 1, .. }, _) => "Page not present or supervisor privilege",
            (MemoryExceptionFailure { read_only: 1, .. }, _) => "Write access to a read-only page",
            (MemoryExceptionFailure { no_execute: 1, .. }, _) => "Execute access to a page marked NX",
            (_, uapi::MEM_ERR_POISON_CONSUMED) => "DRAM ECC failure",
            (_, uapi::MEM_ERR_SRAM_ECC) => "SRAM ECC failure",
            (_, uapi::MEM_ERR_GPU_HANG) => "Generic hang recovery",
            _ => "Unknown",
        }
    }

    /// What to do, as far as the driver's report alone tells.
    pub fn advice(&self) -> &'static str {
        match self.error_type {
            uapi::MEM_ERR_SRAM_ECC | uapi::MEM_ERR_POISON_CONSUMED => {
                "it is the hardware, not the program: look at dmesg | grep -iE 'ras|ecc|poison'; the page may be retired \
                 after a reset"
            }
            uapi::MEM_ERR_GPU_HANG => "look at dmesg | grep -i amdgpu; the GPU is about to be reset",
            uapi::MEM_ERR_NO_RAS if self.raw.read_only != 0 => {
                "memory that the kernel stores to has to be allocated with ALLOC_MEM_FLAGS_WRITABLE"
            }
            uapi::MEM_ERR_NO_RAS if self.raw.no_execute != 0 => {
                "code was fetched from memory without ALLOC_MEM_FLAGS_EXECUTABLE: look for a wrong function pointer or \
                 return address"
            }
            uapi::MEM_ERR_NO_RAS if self.raw.not_present == 0 => {
                "GPUs of gfx9 to gfx12 do not tell NoExecute: look whether code was fetched from memory that may not be \
                 executed, such as by a function pointer to data"
            }
            uapi::MEM_ERR_NO_RAS => {
                "look at the pointer and the index that lead there, and at what was freed while the kernel ran"
            }
            _ => "the kernel is newer than the tables here: please report the numbers, and what dmesg says",
        }
    }
}

impl fmt::Display for MemoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "memory fault on gpu_id {} at {}: {}: ", self.gpu, self.va, self.raw_text())?;
        f.write_str(&self.reasons().join(", "))?;
        self.caveat().map_or(Ok(()), |caveat| write!(f, " ({caveat})"))
    }
}

/// A hardware exception as the driver reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HwException {
    /// GPU.
    pub gpu: GpuId,
    /// `HW_EXCEPTION_*_RESET` as it came.
    pub reset_type: u32,
    /// `HW_EXCEPTION_GPU_HANG` or `HW_EXCEPTION_ECC` as it came.
    pub reset_cause: u32,
    /// The contents of the device memory are gone.
    pub memory_lost: bool,
}

impl From<uapi::HsaHwExceptionData> for HwException {
    fn from(data: uapi::HsaHwExceptionData) -> HwException {
        HwException {
            gpu: GpuId(data.gpu_id),
            reset_type: data.reset_type,
            reset_cause: data.reset_cause,
            memory_lost: data.memory_lost != 0,
        }
    }
}

impl HwException {
    /// Everything the driver told, as it came.
    pub fn raw_text(&self) -> String {
        let HwException { reset_type, reset_cause, memory_lost, .. } = self;
        format!("reset_type={reset_type} reset_cause={reset_cause} memory_lost={}", u32::from(*memory_lost))
    }

    /// The same in words.
    pub fn meaning(&self) -> String {
        let reset = match self.reset_type {
            uapi::HW_EXCEPTION_WHOLE_GPU_RESET => "the whole GPU was reset",
            uapi::HW_EXCEPTION_PER_ENGINE_RESET => "an engine was reset",
            _ => "a reset of a kind that is not known",
        };
        let cause = match self.reset_cause {
            uapi::HW_EXCEPTION_GPU_HANG => "it hung",
            uapi::HW_EXCEPTION_ECC => "uncorrectable memory error",
            _ => "the cause is not known",
        };
        let lost = if self.memory_lost { "device memory is lost" } else { "device memory is kept" };
        format!("{reset} ({cause}), {lost}")
    }

    /// The reason that ROCR prints for it (`HwExceptionHandler` in `runtime.cpp`).
    pub fn rocr_reason(&self) -> &'static str {
        if self.reset_cause == uapi::HW_EXCEPTION_ECC { "ECC" } else { "GPU Hang" }
    }

    /// What to do.
    pub fn advice(&self) -> &'static str {
        match self.reset_cause {
            uapi::HW_EXCEPTION_ECC => {
                "it is the hardware, not the program: look at dmesg | grep -iE 'ras|ecc'; start anew"
            }
            _ => {
                "queues of this process on the GPU never run again: start anew. dmesg | grep -i amdgpu names what hung; \
                 a kernel that runs for long, or never ends, is a common cause"
            }
        }
    }
}

impl fmt::Display for HwException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "hardware exception on gpu_id {}: {}: {}", self.gpu, self.raw_text(), self.meaning())
    }
}
