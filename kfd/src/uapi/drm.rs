//! The one request to a render node that is made: AMDGPU_INFO (`include/uapi/drm/amdgpu_drm.h`), for the clock that
//! `s_memrealtime` reads, which the KFD does not tell.

use super::Ioctl;
use super::abi::structs;

structs! {
    /// Argument of AMDGPU_INFO. EINVAL: no place or size for the answer, or a query that the kernel does not know;
    /// EFAULT: the place cannot be written.
    DrmInfo = "drm_amdgpu_info" since 1 {
        /// In: where the answer goes.
        return_pointer: u64, hex;
        /// In: bytes there; of a longer answer the rest is left out.
        return_size: u32, dec;
        /// In: what is asked, [`DRM_INFO_DEV_INFO`].
        query: u32, hex;
        /// In: more about the question; zero for DEV_INFO.
        arguments: [u32; 4], none "";
    }

    /// The first 32 bytes of the answer to DEV_INFO.
    DrmDeviceInfo = "drm_amdgpu_info_device" since 1 {
        /// PCI device id.
        device_id: u32, hex;
        /// Revision of the chip.
        chip_rev: u32, dec;
        /// The revision with an offset for the chip.
        external_rev: u32, hex;
        /// PCI revision.
        pci_rev: u32, hex;
        /// `AMDGPU_FAMILY_*`.
        family: u32, dec;
        /// Shader engines.
        num_shader_engines: u32, dec;
        /// Shader arrays of a shader engine.
        num_shader_arrays_per_engine: u32, dec;
        /// Frequency of the GPU's real-time counter in kHz.
        gpu_counter_freq: u32, dec;
    }
}

/// What the device is.
///
/// `AMDGPU_INFO_DEV_INFO`.
pub const DRM_INFO_DEV_INFO: u32 = 0x16;

/// `DRM_IOCTL_AMDGPU_INFO`: `_IOW('d', DRM_COMMAND_BASE + DRM_AMDGPU_INFO, struct drm_amdgpu_info)`.
pub const DRM_IOCTL_AMDGPU_INFO: u32 = 1 << 30 | (size_of::<DrmInfo>() as u32) << 16 | (b'd' as u32) << 8 | 0x45;

impl Ioctl for DrmInfo {
    const NAME: &'static str = "DRM_AMDGPU_INFO";
    const REQUEST: u32 = DRM_IOCTL_AMDGPU_INFO;
}

/// The structures here, for comparison with the header: of the last one only members.
pub const DRM_STRUCTS: &[&super::Layout] = LAYOUTS;
