//! The AMDKFD user interface as data (`include/uapi/linux/kfd_ioctl.h`, `kfd_sysfs.h`).
