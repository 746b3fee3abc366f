//! The event types.

/// One field of an ioctl argument: its name in `kfd_ioctl.h` and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Member name as the kernel header spells it.
    pub name: &'static str,
    /// The value, zero-extended.
    pub value: u64,
    /// How to show it.
    pub format: Format,
}

/// How a number is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Hexadecimal: addresses, handles, flags.
    Hex,
    /// Decimal: sizes, counts, ids.
    Dec,
}

/// How the emulated GPU or the host touched memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic read-modify-write.
    Atomic,
    /// An instruction fetch.
    Execute,
}

impl Access {
    /// The word used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Access::Read => "read",
            Access::Write => "write",
            Access::Atomic => "atomic",
            Access::Execute => "instruction fetch",
        }
    }
}

/// Why the GPU stopped a queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// No page is mapped at the address (`NotPresent`).
    NotPresent,
    /// The page lacks the write right (`ReadOnly`).
    ReadOnly,
    /// The page lacks the execute right.
    NoExecute,
    /// An address outside every aperture, or a misaligned atomic.
    Aperture,
    /// The instruction is not one this machine executes.
    IllegalInstruction,
    /// `s_trap` with this id, and no trap handler.
    Trap(u8),
    /// The packet processor refused the packet; `queue_inactive_signal` bits.
    Packet(u64),
}

/// What is known of a fault where it happened. Only the emulated machine fills the wave part; hardware tells less.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What went wrong.
    pub kind: FaultKind,
    /// GPU id of the device.
    pub gpu_id: u32,
    /// Queue id within the process.
    pub queue_id: u32,
    /// Faulting address, when memory was involved.
    pub va: Option<u64>,
    /// How it was touched.
    pub access: Option<Access>,
    /// Address of the instruction.
    pub pc: Option<u64>,
    /// Disassembly of the instruction, or as much as is known.
    pub instruction: Option<String>,
    /// Encoded bytes of the instruction.
    pub bytes: Vec<u8>,
    /// Address of the kernel descriptor of the dispatch.
    pub kernel_object: Option<u64>,
    /// Work-group id.
    pub workgroup: Option<[u32; 3]>,
    /// Wave number within the work-group.
    pub wave: Option<u32>,
    /// Lanes that faulted.
    pub lanes: Option<u64>,
    /// Further words on the cause: the rule that broke and the value.
    pub detail: String,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A device node was opened.
    Open {
        /// Path.
        path: String,
        /// File descriptor, or the errno.
        result: Result<i32, i32>,
    },
    /// A file descriptor was closed.
    Close {
        /// File descriptor.
        fd: i32,
    },
    /// A topology file was read or a folder listed.
    Sysfs {
        /// Path.
        path: String,
        /// Byte count, or the errno.
        result: Result<usize, i32>,
    },
    /// An AMDKFD ioctl, after it returned.
    Ioctl {
        /// Name without the `AMDKFD_IOC_` prefix.
        name: &'static str,
        /// Request number.
        request: u32,
        /// Argument fields after the call, inputs and outputs.
        fields: Vec<Field>,
        /// Return value, or the errno.
        result: Result<i32, i32>,
    },
    /// A mapping in the host's address space.
    Mmap {
        /// What it is for.
        purpose: &'static str,
        /// Address.
        va: u64,
        /// Bytes.
        len: u64,
        /// File descriptor, none for anonymous memory.
        fd: Option<i32>,
        /// Offset passed to mmap.
        offset: u64,
        /// 0, or the errno.
        errno: i32,
    },
    /// A mapping went away.
    Munmap {
        /// Address.
        va: u64,
        /// Bytes.
        len: u64,
    },
    /// An image segment was placed in device memory.
    Segment {
        /// Address in the image.
        vaddr: u64,
        /// Device address.
        va: u64,
        /// Bytes in memory.
        len: u64,
    },
    /// A slot of the ring was reserved.
    Reserve {
        /// Queue id.
        queue_id: u32,
        /// Packet index, never masked.
        index: u64,
    },
    /// A packet's header was stored, so the packet processor may take it.
    Publish {
        /// Queue id.
        queue_id: u32,
        /// Packet index.
        index: u64,
        /// The packet as it lies in the ring.
        packet: [u8; 64],
        /// Name of what it runs, when known.
        label: String,
    },
    /// The doorbell was stored to.
    Doorbell {
        /// Queue id.
        queue_id: u32,
        /// Value stored.
        value: u64,
    },
    /// The packet processor took a packet (emulated machine only).
    Fetch {
        /// Queue id.
        queue_id: u32,
        /// Packet index.
        index: u64,
        /// First 16 bits of the packet.
        header: u16,
    },
    /// The packet processor started a kernel (emulated machine only).
    Dispatch {
        /// Queue id.
        queue_id: u32,
        /// Packet index.
        index: u64,
        /// Kernel descriptor address.
        kernel_object: u64,
        /// Work-groups in each dimension.
        workgroups: [u32; 3],
        /// Lanes of a wave.
        wave_size: u32,
    },
    /// A packet completed (emulated machine only).
    Complete {
        /// Queue id.
        queue_id: u32,
        /// Packet index.
        index: u64,
        /// Instructions executed, summed over waves.
        instructions: u64,
        /// Waves run.
        waves: u64,
    },
    /// A signal's value was seen to change, by its writer or by the one who waited.
    Signal {
        /// Address of the `amd_signal_t`.
        va: u64,
        /// Value before.
        old: i64,
        /// Value after.
        new: i64,
        /// Who saw it: "host" or "gpu".
        by: &'static str,
    },
    /// The GPU stopped a queue.
    Fault(Box<Fault>),
    /// A client did something that works and should not be done: the emulated machine's lint.
    Lint {
        /// Queue id within the process.
        queue_id: u32,
        /// Rule.
        rule: &'static str,
        /// What was seen.
        text: String,
    },
    /// A step of the loader worth a line: what and its value.
    Note {
        /// Text.
        text: String,
    },
}
