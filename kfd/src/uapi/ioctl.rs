//! The requests: `AMDKFD_IOC_*`.

use super::abi::constants;
use super::*;

constants! {
    "AMDKFD_" u32 since 1 {
        /// Magic byte of every request, `'K'`.
        IOCTL_BASE = b'K' as u32;
        /// Lowest number.
        COMMAND_START = 1;
    }
    "KFD_IOCTL_" u32 since 1 {
        /// Major version this interface has; a kernel with another one is another interface.
        MAJOR_VERSION = 1;
    }
}

/// Minor version up to which the interface is written down here completely; see [`IoctlInfo::since`] for what is newer.
pub const MINOR_VERSION: u32 = 17;

/// Who reads and writes the argument structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No argument (`_IO`).
    None,
    /// The kernel reads it (`_IOW`).
    Write,
    /// The kernel writes it (`_IOR`).
    Read,
    /// Both (`_IOWR`).
    ReadWrite,
}

impl Direction {
    /// The request number for `nr` with an argument of `size` bytes (`include/uapi/asm-generic/ioctl.h`): direction in
    /// bits 30–31, size in 16–29, magic in 8–15, number in 0–7.
    pub const fn request(self, nr: u8, size: usize) -> u32 {
        let direction = match self {
            Direction::None => 0,
            Direction::Write => 1,
            Direction::Read => 2,
            Direction::ReadWrite => 3,
        };
        assert!(size < 1 << 14, "the size field has 14 bits");
        direction << 30 | (size as u32) << 16 | IOCTL_BASE << 8 | nr as u32
    }
}

/// One request of the interface.
#[derive(Clone, Copy, Debug)]
pub struct IoctlInfo {
    /// Number.
    pub nr: u8,
    /// Name after `AMDKFD_IOC_`.
    pub name: &'static str,
    /// Request number.
    pub request: u32,
    /// Direction.
    pub direction: Direction,
    /// Minor interface version that brought it; 1 where no version was recorded.
    pub since: u32,
    /// Argument structure, none for [`Direction::None`].
    pub layout: Option<&'static Layout>,
}

impl IoctlInfo {
    /// The entry whose number is in the low byte of `request`: the kernel dispatches on that alone, size and direction
    /// do not take part.
    pub fn of(request: u32) -> Option<&'static IoctlInfo> {
        IOCTLS.iter().find(|info| u32::from(info.nr) == request & 0xff)
    }

    /// Size field of a request number: how many bytes the caller says its argument has.
    pub const fn size_of_request(request: u32) -> usize {
        (request >> 16 & 0x3fff) as usize
    }
}

macro_rules! ioctls {
    ($($nr:literal $direction:ident $name:literal $args:ident since $since:literal;)*) => {
        $(impl Ioctl for $args {
            const NAME: &'static str = $name;
            const REQUEST: u32 = Direction::$direction.request($nr, size_of::<$args>());
        })*

        /// Every request, in order of number.
        pub const IOCTLS: &[IoctlInfo] = &[
            $(IoctlInfo {
                nr: $nr,
                name: $name,
                request: <$args as Ioctl>::REQUEST,
                direction: Direction::$direction,
                since: $since,
                layout: Some(<$args as Record>::LAYOUT),
            },)*
            IoctlInfo {
                nr: 0x27,
                name: "CREATE_PROCESS",
                request: CREATE_PROCESS,
                direction: Direction::None,
                since: 19,
                layout: None,
            },
        ];
    };
}

/// `AMDKFD_IOC_CREATE_PROCESS` (interface 1.19), which has no argument: gives this open file its own process object in
/// place of the one all opens of a process share. EINVAL when the file already has one.
pub const CREATE_PROCESS: u32 = Direction::None.request(0x27, 0);

ioctls! {
    0x01 Read      "GET_VERSION"                    GetVersionArgs               since 1;
    0x02 ReadWrite "CREATE_QUEUE"                   CreateQueueArgs              since 1;
    0x03 ReadWrite "DESTROY_QUEUE"                  DestroyQueueArgs             since 1;
    0x04 Write     "SET_MEMORY_POLICY"              SetMemoryPolicyArgs          since 1;
    0x05 ReadWrite "GET_CLOCK_COUNTERS"             GetClockCountersArgs         since 1;
    0x06 Read      "GET_PROCESS_APERTURES"          GetProcessAperturesArgs      since 1;
    0x07 Write     "UPDATE_QUEUE"                   UpdateQueueArgs              since 1;
    0x08 ReadWrite "CREATE_EVENT"                   CreateEventArgs              since 1;
    0x09 Write     "DESTROY_EVENT"                  DestroyEventArgs             since 1;
    0x0a Write     "SET_EVENT"                      SetEventArgs                 since 1;
    0x0b Write     "RESET_EVENT"                    ResetEventArgs               since 1;
    0x0c ReadWrite "WAIT_EVENTS"                    WaitEventsArgs               since 1;
    0x0d Write     "DBG_REGISTER_DEPRECATED"        DbgRegisterArgs              since 1;
    0x0e Write     "DBG_UNREGISTER_DEPRECATED"      DbgUnregisterArgs            since 1;
    0x0f Write     "DBG_ADDRESS_WATCH_DEPRECATED"   DbgAddressWatchArgs          since 1;
    0x10 Write     "DBG_WAVE_CONTROL_DEPRECATED"    DbgWaveControlArgs           since 1;
    0x11 ReadWrite "SET_SCRATCH_BACKING_VA"         SetScratchBackingVaArgs      since 1;
    0x12 ReadWrite "GET_TILE_CONFIG"                GetTileConfigArgs            since 1;
    0x13 Write     "SET_TRAP_HANDLER"               SetTrapHandlerArgs           since 1;
    0x14 ReadWrite "GET_PROCESS_APERTURES_NEW"      GetProcessAperturesNewArgs   since 1;
    0x15 Write     "ACQUIRE_VM"                     AcquireVmArgs                since 1;
    0x16 ReadWrite "ALLOC_MEMORY_OF_GPU"            AllocMemoryOfGpuArgs         since 1;
    0x17 Write     "FREE_MEMORY_OF_GPU"             FreeMemoryOfGpuArgs          since 1;
    0x18 ReadWrite "MAP_MEMORY_TO_GPU"              MapMemoryToGpuArgs           since 1;
    0x19 ReadWrite "UNMAP_MEMORY_FROM_GPU"          UnmapMemoryFromGpuArgs       since 1;
    0x1a Write     "SET_CU_MASK"                    SetCuMaskArgs                since 1;
    0x1b ReadWrite "GET_QUEUE_WAVE_STATE"           GetQueueWaveStateArgs        since 1;
    0x1c ReadWrite "GET_DMABUF_INFO"                GetDmabufInfoArgs            since 1;
    0x1d ReadWrite "IMPORT_DMABUF"                  ImportDmabufArgs             since 1;
    0x1e ReadWrite "ALLOC_QUEUE_GWS"                AllocQueueGwsArgs            since 1;
    0x1f ReadWrite "SMI_EVENTS"                     SmiEventsArgs                since 3;
    0x20 ReadWrite "SVM"                            SvmArgs                      since 5;
    0x21 ReadWrite "SET_XNACK_MODE"                 SetXnackModeArgs             since 5;
    0x22 ReadWrite "CRIU_OP"                        CriuArgs                     since 7;
    0x23 ReadWrite "AVAILABLE_MEMORY"               GetAvailableMemoryArgs       since 9;
    0x24 ReadWrite "EXPORT_DMABUF"                  ExportDmabufArgs             since 12;
    0x25 ReadWrite "RUNTIME_ENABLE"                 RuntimeEnableArgs            since 13;
    0x26 ReadWrite "DBG_TRAP"                       DbgTrapArgs                  since 13;
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The request numbers as they are seen on the wire (strace of existing runtimes).
    #[test]
    fn request_numbers() {
        let wire: [(&str, u32); 39] = [
            ("GET_VERSION", 0x8008_4b01),
            ("CREATE_QUEUE", 0xc060_4b02),
            ("DESTROY_QUEUE", 0xc008_4b03),
            ("SET_MEMORY_POLICY", 0x4020_4b04),
            ("GET_CLOCK_COUNTERS", 0xc028_4b05),
            ("GET_PROCESS_APERTURES", 0x8190_4b06),
            ("UPDATE_QUEUE", 0x4018_4b07),
            ("CREATE_EVENT", 0xc020_4b08),
            ("DESTROY_EVENT", 0x4008_4b09),
            ("SET_EVENT", 0x4008_4b0a),
            ("RESET_EVENT", 0x4008_4b0b),
            ("WAIT_EVENTS", 0xc018_4b0c),
            ("DBG_REGISTER_DEPRECATED", 0x4008_4b0d),
            ("DBG_UNREGISTER_DEPRECATED", 0x4008_4b0e),
            ("DBG_ADDRESS_WATCH_DEPRECATED", 0x4010_4b0f),
            ("DBG_WAVE_CONTROL_DEPRECATED", 0x4010_4b10),
            ("SET_SCRATCH_BACKING_VA", 0xc010_4b11),
            ("GET_TILE_CONFIG", 0xc028_4b12),
            ("SET_TRAP_HANDLER", 0x4018_4b13),
            ("GET_PROCESS_APERTURES_NEW", 0xc010_4b14),
            ("ACQUIRE_VM", 0x4008_4b15),
            ("ALLOC_MEMORY_OF_GPU", 0xc028_4b16),
            ("FREE_MEMORY_OF_GPU", 0x4008_4b17),
            ("MAP_MEMORY_TO_GPU", 0xc018_4b18),
            ("UNMAP_MEMORY_FROM_GPU", 0xc018_4b19),
            ("SET_CU_MASK", 0x4010_4b1a),
            ("GET_QUEUE_WAVE_STATE", 0xc018_4b1b),
            ("GET_DMABUF_INFO", 0xc020_4b1c),
            ("IMPORT_DMABUF", 0xc018_4b1d),
            ("ALLOC_QUEUE_GWS", 0xc010_4b1e),
            ("SMI_EVENTS", 0xc008_4b1f),
            ("SVM", 0xc018_4b20),
            ("SET_XNACK_MODE", 0xc004_4b21),
            ("CRIU_OP", 0xc038_4b22),
            ("AVAILABLE_MEMORY", 0xc010_4b23),
            ("EXPORT_DMABUF", 0xc010_4b24),
            ("RUNTIME_ENABLE", 0xc010_4b25),
            ("DBG_TRAP", 0xc020_4b26),
            ("CREATE_PROCESS", 0x0000_4b27),
        ];
        assert_eq!(IOCTLS.len(), wire.len());
        for (info, (name, request)) in IOCTLS.iter().zip(wire) {
            assert_eq!((info.name, info.request), (name, request), "{name}");
            assert_eq!(IoctlInfo::of(request).map(|info| info.name), Some(name));
            assert_eq!(IoctlInfo::size_of_request(request), info.layout.map_or(0, |layout| layout.size));
        }
        assert!(IoctlInfo::of(0x4b00).is_none());
        assert!(IoctlInfo::of(0x4b28).is_none());
    }
}
