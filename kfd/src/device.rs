//! A GPU this process has acquired.

use crate::buffer::Known;
use crate::errno::Errno;
use crate::error::{Error, Result};
use crate::kfd::{Kfd, node_error};
use crate::system::MmapArgs;
use crate::topology::{MemBank, Node};
use crate::types::{GfxTarget, GpuId, GpuVa};
use crate::uapi::{self, Ioctl as _, Pod as _, sysfs};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// A render node whose VM was acquired. The kernel takes one open of it in the life of a process, so it stays open as
/// long as the [`Kfd`].
#[derive(Debug)]
pub(crate) struct RenderNode {
    pub gpu: GpuId,
    pub fd: i32,
}

/// A GPU whose VM this process has, with the windows the kernel gave it.
#[derive(Debug)]
pub struct Device {
    kfd: Arc<Kfd>,
    node: Node,
    gpu: GpuId,
    target: GfxTarget,
    render_fd: i32,
    apertures: uapi::ProcessDeviceApertures,
    /// Host address of the process' doorbells, once a queue needed them.
    doorbells: Mutex<Option<usize>>,
    /// What is left of the last range that small reservations are cut from.
    arena: Mutex<Range<usize>>,
}

/// Bytes reserved at a time for buffers that are much smaller.
const ARENA: usize = 1 << 30;

impl Device {
    /// Acquires a GPU: opens its render node, ACQUIRE_VM, GET_PROCESS_APERTURES_NEW. `nodes` is
    /// [`Topology::node_count`](crate::Topology::node_count), the most records the kernel lets a caller ask for.
    ///
    /// Architectures before gfx9 are refused: their doorbells, rings and context save areas are others.
    pub fn open(kfd: &Arc<Kfd>, node: &Node, nodes: usize) -> Result<Arc<Device>> {
        let gpu = node.gpu_id.ok_or(Error::Property {
            node: node.index,
            key: "gpu_id",
            value: Some(0),
            rule: "a GPU node has a gpu_id other than 0",
        })?;
        let target = check_target(node)?;
        let render_fd = acquire(kfd, node, gpu)?;
        let apertures = apertures(kfd, gpu, nodes)?;
        Ok(Arc::new(Device {
            kfd: kfd.clone(),
            node: node.clone(),
            gpu,
            target,
            render_fd,
            apertures,
            doorbells: Mutex::default(),
            arena: Mutex::default(),
        }))
    }

    /// The open KFD.
    pub fn kfd(&self) -> &Arc<Kfd> {
        &self.kfd
    }

    /// The node in the topology.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Whether 64-bit atomic operations of the GPU reach memory of the host, as its links in the topology say. False when
    /// they cannot be read.
    pub fn has_atomics_to_host(&self) -> bool {
        let links = self.node.io_links(self.kfd.system()).unwrap_or_default();
        let flags: Option<Vec<u32>> = links.iter().map(|link| link.flags).collect();
        flags.is_some_and(|flags| {
            !flags.is_empty() && flags.iter().all(|flags| flags & sysfs::IOLINK_FLAGS_NO_ATOMICS_64_BIT == 0)
        })
    }

    /// GPU id.
    pub fn gpu_id(&self) -> GpuId {
        self.gpu
    }

    /// Architecture.
    pub fn target(&self) -> GfxTarget {
        self.target
    }

    /// The 64-bit windows of the GPU in this process.
    pub fn apertures(&self) -> &uapi::ProcessDeviceApertures {
        &self.apertures
    }

    /// The buffer that holds an address of this GPU, or the one nearest to it, also where that is another GPU's; freed
    /// ones are remembered for a while.
    pub fn nearest_buffer(&self, va: GpuVa) -> Option<Known> {
        self.kfd.ledger().nearest(self.gpu, va)
    }

    /// The buffers that are mapped on this GPU.
    pub fn buffers(&self) -> Vec<Known> {
        self.kfd.ledger().live().iter().filter(|known| known.gpu == self.gpu).cloned().collect()
    }

    /// Frequency in Hz of the counter that `s_memrealtime` reads. Asks the render node (AMDGPU_INFO).
    pub fn counter_frequency(&self) -> Result<u64> {
        let mut place = [0u8; size_of::<uapi::DrmDeviceInfo>()];
        let mut args = uapi::DrmInfo {
            return_pointer: place.as_mut_ptr() as u64,
            return_size: place.len() as u32,
            query: uapi::DRM_INFO_DEV_INFO,
            ..Default::default()
        };
        let result = self.kfd.system().ioctl(self.render_fd, &mut args);
        result.map_err(|errno| Error::Ioctl { name: uapi::DrmInfo::NAME, request: uapi::DrmInfo::REQUEST, errno })?;
        let khz = uapi::DrmDeviceInfo::from_prefix(&place).unwrap_or_default().gpu_counter_freq;
        (khz != 0).then_some(u64::from(khz) * 1000).ok_or(Error::NoCounterFrequency { gpu: self.gpu })
    }

    /// Memory banks of the node; reads the topology.
    pub fn mem_banks(&self) -> Result<Vec<MemBank>> {
        Ok(self.node.mem_banks(self.kfd.system())?)
    }

    /// Whether the host can reach all of the device memory: a bank of heap type 1. Reads the topology.
    pub fn has_large_bar(&self) -> Result<bool> {
        Ok(self.mem_banks()?.iter().any(|bank| bank.heap_type == Some(sysfs::MEM_HEAP_TYPE_FB_PUBLIC)))
    }

    /// Reserves `len` bytes of addresses, whole pages, that stay inaccessible until something is mapped over them. They are
    /// the caller's to unmap.
    pub(crate) fn reserve(&self, purpose: &'static str, len: usize) -> Result<usize> {
        let map = |purpose, len| {
            let args = MmapArgs {
                addr: 0,
                len,
                prot: libc::PROT_NONE,
                flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                fd: -1,
                offset: 0,
            };
            // SAFETY: no MAP_FIXED, so the kernel chooses a free range.
            unsafe { self.kfd.system().mmap(purpose, args) }.map_err(|errno| Error::Mmap {
                purpose,
                len: len as u64,
                errno,
            })
        };
        if len > ARENA / 4 {
            return map(purpose, len);
        }
        let mut arena = self.arena.lock().unwrap_or_else(PoisonError::into_inner);
        if arena.len() < len {
            match map("address range for buffers", ARENA) {
                Ok(base) => *arena = base..base + ARENA,
                // RLIMIT_AS may leave room for less.
                Err(_) => return map(purpose, len),
            }
        }
        let base = arena.start;
        arena.start += len;
        Ok(base)
    }

    /// Reserves these addresses, which nothing may have.
    pub(crate) fn reserve_at(&self, purpose: &'static str, addr: usize, len: usize) -> Result<()> {
        let args = MmapArgs {
            addr,
            len,
            prot: libc::PROT_NONE,
            flags: libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE,
            fd: -1,
            offset: 0,
        };
        // SAFETY: MAP_FIXED_NOREPLACE replaces nothing. Kernels before 4.17 do not know it and choose a free range.
        let address = unsafe { self.kfd.system().mmap(purpose, args) }.map_err(|errno| Error::Mmap {
            purpose,
            len: len as u64,
            errno,
        })?;
        if address != addr {
            // SAFETY: mapped just now.
            unsafe { self.kfd.system().munmap(address, len) };
            return Err(Error::Mmap { purpose, len: len as u64, errno: Errno::EEXIST });
        }
        Ok(())
    }

    pub(crate) fn render_fd(&self) -> i32 {
        self.render_fd
    }

    /// Host address of this process' doorbells of the GPU, mapped at the first call. `mmap_offset` is
    /// `doorbell_offset` of CREATE_QUEUE without its low 13 bits, the same for all queues of the GPU.
    pub(crate) fn doorbells(&self, mmap_offset: u64) -> Result<usize> {
        let mut doorbells = self.doorbells.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(address) = *doorbells {
            return Ok(address);
        }
        let purpose = "doorbells";
        let args = MmapArgs {
            addr: 0,
            len: uapi::DOORBELL_SLICE_SIZE as usize,
            prot: libc::PROT_READ | libc::PROT_WRITE,
            flags: libc::MAP_SHARED,
            fd: self.kfd.fd(),
            offset: mmap_offset,
        };
        // SAFETY: no MAP_FIXED, so the kernel chooses a free range.
        let address = unsafe { self.kfd.system().mmap(purpose, args) }.map_err(|errno| Error::Mmap {
            purpose,
            len: uapi::DOORBELL_SLICE_SIZE,
            errno,
        })?;
        *doorbells = Some(address);
        Ok(address)
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if self.kfd.is_leaving() {
            return;
        }
        let rest = self.arena.get_mut().unwrap_or_else(PoisonError::into_inner);
        if rest.start < rest.end {
            // SAFETY: the part of the range that no buffer was given.
            unsafe { self.kfd.system().munmap(rest.start, rest.len()) };
        }
        if let Some(address) = *self.doorbells.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // SAFETY: mapped by `doorbells`; a queue that stores to it keeps the device alive, so none is left.
            unsafe { self.kfd.system().munmap(address, uapi::DOORBELL_SLICE_SIZE as usize) };
        }
    }
}

fn check_target(node: &Node) -> Result<GfxTarget> {
    let version = node.properties.gfx_target_version;
    let target = node.target().ok_or(Error::Property {
        node: node.index,
        key: "gfx_target_version",
        value: version.map(u64::from),
        rule: "major * 10000 + minor * 100 + stepping, minor and stepping below 16",
    })?;
    if !(9..=12).contains(&target.major()) {
        let reason = "gfx9 to gfx12 have the doorbells, rings and save areas this runtime knows";
        return Err(Error::Unsupported { target, reason });
    }
    let doorbell_type = node.properties.capability.map(|capability| {
        (capability & sysfs::CAP_DOORBELL_TYPE_TOTALBITS_MASK) >> sysfs::CAP_DOORBELL_TYPE_TOTALBITS_SHIFT
    });
    // An absent line is not an answer; gfx9 and later have no other type.
    if doorbell_type.is_some_and(|doorbell_type| doorbell_type != sysfs::CAP_DOORBELL_TYPE_2_0) {
        return Err(Error::Unsupported {
            target,
            reason: "its capability bits 12-13 say its doorbells have not 64 bits",
        });
    }
    Ok(target)
}

/// Opens the render node and acquires its VM, or finds the one that was acquired before.
fn acquire(kfd: &Kfd, node: &Node, gpu: GpuId) -> Result<i32> {
    let mut render_nodes = kfd.render_nodes.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = render_nodes.iter().find(|known| known.gpu == gpu) {
        return Ok(known.fd);
    }
    let path = node.render_path().ok_or(Error::Property {
        node: node.index,
        key: "drm_render_minor",
        value: node.properties.drm_render_minor.map(u64::from),
        rule: "a GPU node names the render node /dev/dri/renderD<minor>",
    })?;
    let system = kfd.system();
    let fd = system.open(&path).map_err(|errno| node_error(system, &path, errno))?;
    // A negative descriptor is none; the cast keeps every other one.
    let acquired = kfd.call(&mut uapi::AcquireVmArgs { drm_fd: fd as u32, gpu_id: gpu.0 });
    if let Err(error) = acquired {
        system.close(fd);
        return Err(error);
    }
    render_nodes.push(RenderNode { gpu, fd });
    Ok(fd)
}

fn apertures(kfd: &Kfd, gpu: GpuId, nodes: usize) -> Result<uapi::ProcessDeviceApertures> {
    let mut records = vec![uapi::ProcessDeviceApertures::default(); nodes];
    let mut args = uapi::GetProcessAperturesNewArgs {
        kfd_process_device_apertures_ptr: records.as_mut_ptr() as u64,
        num_of_nodes: u32::try_from(nodes).unwrap_or(u32::MAX),
        pad: 0,
    };
    kfd.call(&mut args)?;
    records.truncate(args.num_of_nodes as usize);
    records
        .iter()
        .find(|record| record.gpu_id == gpu.0)
        .copied()
        .ok_or_else(|| Error::NoApertures { gpu, known: records.iter().map(|record| record.gpu_id).collect() })
}
