//! Requests to a render node: of DRM only AMDGPU_INFO's query DEV_INFO, and of its answer the first 32 bytes, which tell
//! what the KFD does not (`amdgpu_info_ioctl`).

use super::Kernel;
use super::device::Device;
use super::rule::{RuleText, check, rules, texts};
use crate::isa::Target;
use kfd::Errno;
use kfd::uapi::{DRM_INFO_DEV_INFO, DRM_IOCTL_AMDGPU_INFO, DrmDeviceInfo, DrmInfo, Pod};

rules! {
    /// Any request.
    REQUEST for request: u32 {
        EINVAL "the request is AMDGPU_INFO, the only one of DRM's that is emulated": *request =>
            *request == DRM_IOCTL_AMDGPU_INFO;
    }

    /// AMDGPU_INFO.
    INFO for args: DrmInfo {
        EINVAL "return_size is not 0": args.return_size => args.return_size != 0;
        EINVAL "return_pointer is not null": args.return_pointer => args.return_pointer != 0;
        EINVAL "query is DEV_INFO (0x16), the only one that is emulated": args.query =>
            args.query == DRM_INFO_DEV_INFO;
        EINVAL "return_size is 32 at most: more of the answer is not emulated": args.return_size =>
            args.return_size as usize <= size_of::<DrmDeviceInfo>();
    }
}

/// All tables.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![("a request to a render node", texts(REQUEST)), ("AMDGPU_INFO of a render node", texts(INFO))]
}

/// One ioctl on a render node. The argument is copied in only.
pub fn ioctl(kernel: &Kernel, device: &Device, request: u32, arg: &[u8]) -> Result<(), Errno> {
    check(kernel, "ioctl on a render node", REQUEST, &request)?;
    let args = DrmInfo::from_prefix(arg).ok_or(Errno::EFAULT)?;
    check(kernel, "AMDGPU_INFO", INFO, &args)?;
    let answer = device_info(device);
    kernel.user.write(args.return_pointer, &answer.as_bytes()[..args.return_size as usize])
}

fn device_info(device: &Device) -> DrmDeviceInfo {
    let profile = &device.profile;
    // AMDGPU_FAMILY_*, and what is added to the chip's revision (`soc15.c`, `nv.c`, `soc21.c`, `soc24.c`).
    let (family, revisions) = match profile.target {
        Target::Gfx900 => (141, 0x01),
        Target::Gfx906 => (141, 0x28),
        Target::Gfx90a => (141, 0x3c),
        Target::Gfx942 => (141, 0x46),
        Target::Gfx1030 => (143, 0x28),
        Target::Gfx1100 => (145, 0x01),
        Target::Gfx1201 => (152, 0x50),
    };
    DrmDeviceInfo {
        device_id: profile.device_id,
        chip_rev: 0,
        external_rev: revisions,
        pci_rev: 0,
        family,
        num_shader_engines: profile.shader_engines() / profile.xccs,
        num_shader_arrays_per_engine: profile.arrays_per_engine,
        gpu_counter_freq: crate::machine::CLOCK_KHZ,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EmulatedDriver, Machine, Options};
    use kfd::Driver;
    use trace::Tracer;

    #[test]
    fn the_first_of_dev_info_and_nothing_else() {
        let driver =
            EmulatedDriver::new(Machine::with(&[Target::Gfx1100]), Options::default(), Tracer::new(Vec::new()))
                .unwrap();
        let fd = driver.open("/dev/dri/renderD128").unwrap();
        let mut place = [0xffu8; 40];
        let good =
            DrmInfo { return_pointer: place.as_mut_ptr() as u64, return_size: 32, query: 0x16, arguments: [0; 4] };
        let ask = |args: &DrmInfo| driver.ioctl(fd, DRM_IOCTL_AMDGPU_INFO, &mut args.as_bytes().to_vec());
        assert_eq!(ask(&good), Ok(0));
        let info = DrmDeviceInfo::from_prefix(&place).unwrap();
        assert_eq!((info.gpu_counter_freq, info.family, info.external_rev), (100_000, 145, 1));
        // As long as the caller wants it.
        place = [0xff; 40];
        assert_eq!(ask(&DrmInfo { return_size: 4, ..good }), Ok(0));
        assert_eq!((&place[..4], &place[4..8]), (&info.device_id.to_le_bytes()[..], &[0xff; 4][..]));
        for (args, errno) in [
            (DrmInfo { return_size: 0, ..good }, Errno::EINVAL),
            (DrmInfo { return_pointer: 0, ..good }, Errno::EINVAL),
            (DrmInfo { query: 0x1e, ..good }, Errno::EINVAL),
            (DrmInfo { return_size: 33, ..good }, Errno::EINVAL),
            (DrmInfo { return_pointer: 8, ..good }, Errno::EFAULT),
        ] {
            assert_eq!(ask(&args), Err(errno), "{args:?}");
        }
        assert_eq!(driver.ioctl(fd, 0xc008_6445, &mut [0; 8]), Err(Errno::EINVAL));
        driver.close(fd).unwrap();
    }
}
