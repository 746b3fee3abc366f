//! Shared virtual memory and retry faults (XNACK).

use super::abi::{constants, structs};
use super::{Direction, Record};

constants! {
    "KFD_IOCTL_" u32 since 5 {
        /// The host may access the range.
        SVM_FLAG_HOST_ACCESS = 1;
        /// Fine-grained coherence between all that have access.
        SVM_FLAG_COHERENT = 2;
        /// Any GPU of the same hive serves as preferred location.
        SVM_FLAG_HIVE_LOCAL = 4;
        /// GPUs only read, so copies are allowed.
        SVM_FLAG_GPU_RO = 8;
        /// GPUs may fetch instructions.
        SVM_FLAG_GPU_EXEC = 0x10;
        /// GPUs mostly read.
        SVM_FLAG_GPU_READ_MOSTLY = 0x20;
        /// Sets attributes.
        SVM_OP_SET_ATTR = 0;
        /// Gets attributes.
        SVM_OP_GET_ATTR = 1;
        /// System memory.
        SVM_LOCATION_SYSMEM = 0;
        /// No location.
        SVM_LOCATION_UNDEFINED = 0xffff_ffff;
        /// GPU id of the preferred location, or a `SVM_LOCATION_*`.
        SVM_ATTR_PREFERRED_LOC = 0;
        /// GPU id of the location to move to at once, or a `SVM_LOCATION_*`.
        SVM_ATTR_PREFETCH_LOC = 1;
        /// GPU id that gets access; pages may move.
        SVM_ATTR_ACCESS = 2;
        /// GPU id that gets access; pages stay.
        SVM_ATTR_ACCESS_IN_PLACE = 3;
        /// GPU id that loses access.
        SVM_ATTR_NO_ACCESS = 4;
        /// `SVM_FLAG_*` to set.
        SVM_ATTR_SET_FLAGS = 5;
        /// `SVM_FLAG_*` to clear.
        SVM_ATTR_CLR_FLAGS = 6;
        /// Log2 of the pages that move together.
        SVM_ATTR_GRANULARITY = 7;
    }
    "KFD_IOCTL_" u32 since 11 {
        /// The GPU mapping stays valid although pages may move.
        SVM_FLAG_GPU_ALWAYS_MAPPED = 0x40;
    }
    "KFD_IOCTL_" u32 since 13 {
        /// Coherent for device-scope atomics too.
        SVM_FLAG_EXT_COHERENT = 0x80;
    }
}

structs! {
    /// One attribute of an SVM range.
    SvmAttribute = "kfd_ioctl_svm_attribute" since 5 {
        /// `SVM_ATTR_*`.
        attr_type: u32, dec "type";
        /// Its value.
        value: u32, hex;
    }

    /// Argument of SVM without the `nattr` attributes that follow it. The size in the request number counts them too:
    /// see [`svm_request`].
    SvmArgs = "kfd_ioctl_svm_args" since 5 {
        /// In: first address of the range, page aligned.
        start_addr: u64, hex;
        /// In: bytes, whole pages.
        size: u64, dec;
        /// In: `SVM_OP_*`.
        op: u32, dec;
        /// In: attributes that follow.
        nattr: u32, dec;
    }

    /// Argument of SET_XNACK_MODE.
    SetXnackModeArgs = "kfd_ioctl_set_xnack_mode_args" since 5 {
        /// In: 0 or 1 sets, a negative value asks. Out: the mode asked for.
        xnack_enabled: i32, hex;
    }
}

/// The request number of SVM with `nattr` attributes. None when the size does not fit the number's 14 bits.
pub fn svm_request(nattr: usize) -> Option<u32> {
    let size = nattr.checked_mul(SvmAttribute::LAYOUT.size)?.checked_add(SvmArgs::LAYOUT.size)?;
    (size < 1 << 14).then(|| Direction::ReadWrite.request(0x20, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_grows_with_the_attributes() {
        assert_eq!(svm_request(0), Some(0xc018_4b20));
        assert_eq!(svm_request(6), Some(0xc048_4b20));
        assert_eq!(svm_request(2045), None);
        assert_eq!(svm_request(usize::MAX), None);
    }
}
