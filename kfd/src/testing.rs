//! A scripted driver: files from a table, ioctls that succeed with plausible answers unless told to fail, and real
//! anonymous memory behind every mapping. It knows no rules; the emulated machine does.

use crate::driver::{Driver, Permissions};
use crate::errno::Errno;
use crate::kfd::Kfd;
use crate::system::System;
use crate::topology::{TOPOLOGY, Topology};
use crate::uapi::{self, IoctlInfo, Pod};
use crate::{Device, LinuxDriver};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use trace::{Collector, Tracer};

/// An ioctl handler of a test: gets the name and the argument, and returns None to leave it to the default.
type Handler = Box<dyn Fn(&str, &mut [u8]) -> Option<Result<i32, Errno>> + Send + Sync>;

#[derive(Default)]
pub struct Script {
    files: BTreeMap<String, Result<Vec<u8>, Errno>>,
    opens: BTreeMap<String, Errno>,
    permissions: Option<Permissions>,
    refuse_doorbells: Option<Errno>,
    handler: Option<Handler>,
    /// How often each path was read.
    reads: Mutex<BTreeMap<String, u32>>,
    /// A file whose contents are its read count, for a topology that never stands still.
    restless: Option<(String, u32)>,
    next_handle: Mutex<u64>,
    next_event: Mutex<u32>,
}

impl Script {
    pub fn file(mut self, path: &str, contents: &str) -> Script {
        self.files.insert(path.to_string(), Ok(contents.as_bytes().to_vec()));
        self
    }

    pub fn unreadable(mut self, path: &str, errno: Errno) -> Script {
        self.files.insert(path.to_string(), Err(errno));
        self
    }

    pub fn without(mut self, path: &str) -> Script {
        self.files.retain(|file, _| !file.starts_with(path));
        self
    }

    pub fn refuse_open(mut self, path: &str, errno: Errno) -> Script {
        self.opens.insert(path.to_string(), errno);
        self
    }

    /// Refuses to map `/dev/kfd`.
    pub fn refuse_doorbells(mut self, errno: Errno) -> Script {
        self.refuse_doorbells = Some(errno);
        self
    }

    pub fn permissions(mut self, permissions: Permissions) -> Script {
        self.permissions = Some(permissions);
        self
    }

    pub fn on_ioctl(
        mut self,
        handler: impl Fn(&str, &mut [u8]) -> Option<Result<i32, Errno>> + Send + Sync + 'static,
    ) -> Script {
        self.handler = Some(Box::new(handler));
        self
    }

    pub fn fail(self, name: &'static str, errno: Errno) -> Script {
        self.on_ioctl(move |called, _| (called == name).then_some(Err(errno)))
    }

    /// The generation number moves on each of the first `changes` readings.
    pub fn restless(mut self, changes: u32) -> Script {
        self.restless = Some((format!("{TOPOLOGY}/generation_id"), changes));
        self
    }

    /// A machine with one CPU node and one GPU: the files under `fixtures/` for it.
    pub fn machine() -> Script {
        let node = |index: u32, file: &str| format!("{TOPOLOGY}/nodes/{index}/{file}");
        Script::default()
            .file(&format!("{TOPOLOGY}/generation_id"), "2\n")
            .file(&node(0, "gpu_id"), "0\n")
            .file(&node(0, "name"), "\n")
            .file(&node(0, "properties"), include_str!("../tests/fixtures/node0-cpu"))
            .file(&node(0, "mem_banks/0/properties"), include_str!("../tests/fixtures/node0-mem_bank0"))
            .file(&node(0, "io_links/0/properties"), include_str!("../tests/fixtures/node0-io_link0"))
            .file(&node(1, "gpu_id"), "56387\n")
            .file(&node(1, "name"), "ip discovery\n")
            .file(&node(1, "properties"), include_str!("../tests/fixtures/node1-gfx1100"))
            .file(&node(1, "mem_banks/0/properties"), include_str!("../tests/fixtures/node1-mem_bank0"))
            .file(&node(1, "caches/0/properties"), include_str!("../tests/fixtures/node1-cache0"))
            .file(&node(1, "io_links/0/properties"), include_str!("../tests/fixtures/node1-io_link0"))
    }

    pub fn system(self) -> (System, Arc<Collector>) {
        let collector = Arc::new(Collector::default());
        (System::new(Arc::new(self), Tracer::new(vec![collector.clone()])), collector)
    }

    /// The GPU of the machine, open.
    pub fn device(self) -> (Arc<Device>, Arc<Collector>) {
        let (system, collector) = self.system();
        let kfd = Kfd::open_on(&system).unwrap();
        let topology = Topology::read(&system).unwrap();
        (Device::open(&kfd, topology.first_gpu().unwrap(), topology.node_count()).unwrap(), collector)
    }
}

/// Edits an argument through its structure.
pub fn edit<T: Pod>(arg: &mut [u8], change: impl FnOnce(&mut T)) {
    let mut value = T::from_prefix(arg).unwrap();
    change(&mut value);
    arg[..size_of::<T>()].copy_from_slice(value.as_bytes());
}

/// Edits an array whose address an argument holds.
pub fn edit_array<T: Pod>(address: u64, len: u32, change: impl FnOnce(&mut [T])) {
    // SAFETY: the address and length of an array that the code under test owns and waits with.
    change(unsafe { std::slice::from_raw_parts_mut(address as *mut T, len as usize) });
}

/// The trace lines that start with one of `words`, addresses and file descriptors left out.
pub fn steps(collector: &Collector, words: &[&str]) -> Vec<String> {
    let line = |record: &trace::Record| match &record.event {
        trace::Event::Ioctl { name, result: Ok(_), .. } => name.to_string(),
        trace::Event::Ioctl { name, result: Err(errno), .. } => format!("{name} {}", Errno::from_raw(*errno)),
        trace::Event::Mmap { purpose, .. } => format!("mmap {purpose}"),
        trace::Event::Munmap { len, .. } => format!("munmap {len}"),
        trace::Event::Open { path, .. } => format!("open {path}"),
        other => trace::line(other),
    };
    let lines = collector.records();
    lines.iter().map(line).filter(|line| words.is_empty() || words.iter().any(|word| line.starts_with(word))).collect()
}

impl Driver for Script {
    fn open(&self, path: &str) -> Result<i32, Errno> {
        match self.opens.get(path) {
            Some(errno) => Err(*errno),
            None => Ok(if path == "/dev/kfd" { 100 } else { 101 }),
        }
    }

    fn close(&self, _fd: i32) -> Result<(), Errno> {
        Ok(())
    }

    fn ioctl(&self, fd: i32, request: u32, arg: &mut [u8]) -> Result<i32, Errno> {
        assert_eq!(fd, 100, "only /dev/kfd takes ioctls");
        assert_eq!(IoctlInfo::size_of_request(request), arg.len());
        let name = IoctlInfo::of(request).unwrap().name;
        if let Some(result) = self.handler.as_ref().and_then(|handler| handler(name, arg)) {
            return result;
        }
        match name {
            "GET_VERSION" => {
                edit(arg, |args: &mut uapi::GetVersionArgs| (args.major_version, args.minor_version) = (1, 17))
            }
            "GET_PROCESS_APERTURES_NEW" => edit(arg, |args: &mut uapi::GetProcessAperturesNewArgs| {
                edit_array(args.kfd_process_device_apertures_ptr, args.num_of_nodes, |records| {
                    records[0] = uapi::ProcessDeviceApertures {
                        lds_base: 0x1_0000_0000_0000,
                        lds_limit: 0x1_0000_ffff_ffff,
                        scratch_base: 0x2_0000_0000_0000,
                        scratch_limit: 0x2_0000_ffff_ffff,
                        gpuvm_base: 0x1_0000,
                        gpuvm_limit: 0x7fff_ffff_ffff,
                        gpu_id: 56387,
                        pad: 0,
                    };
                });
                args.num_of_nodes = 1;
            }),
            "ALLOC_MEMORY_OF_GPU" => edit(arg, |args: &mut uapi::AllocMemoryOfGpuArgs| {
                let mut next = self.next_handle.lock().unwrap();
                args.handle = 56387 << 32 | *next;
                args.mmap_offset = 0x1000_0000 + (*next << 12);
                *next += 1;
            }),
            "MAP_MEMORY_TO_GPU" => edit(arg, |args: &mut uapi::MapMemoryToGpuArgs| args.n_success = args.n_devices),
            "CREATE_QUEUE" => edit(arg, |args: &mut uapi::CreateQueueArgs| {
                args.queue_id = 3;
                args.doorbell_offset = 0xf710_c000_0000_0018;
            }),
            "CREATE_EVENT" => edit(arg, |args: &mut uapi::CreateEventArgs| {
                let mut next = self.next_event.lock().unwrap();
                *next += 1;
                args.event_id = *next;
                args.event_slot_index = *next;
            }),
            _ => {}
        }
        Ok(0)
    }

    unsafe fn mmap(
        &self,
        addr: usize,
        len: usize,
        prot: i32,
        flags: i32,
        fd: i32,
        _offset: u64,
    ) -> Result<usize, Errno> {
        if let (100, Some(errno)) = (fd, self.refuse_doorbells) {
            return Err(errno);
        }
        let flags = if fd < 0 { flags } else { flags | libc::MAP_ANONYMOUS };
        // SAFETY: as the caller promises.
        unsafe { LinuxDriver.mmap(addr, len, prot, flags, -1, 0) }
    }

    unsafe fn munmap(&self, addr: usize, len: usize) -> Result<(), Errno> {
        // SAFETY: as the caller promises.
        unsafe { LinuxDriver.munmap(addr, len) }
    }

    fn dont_fork(&self, addr: usize, len: usize) -> Result<(), Errno> {
        LinuxDriver.dont_fork(addr, len)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, Errno> {
        let mut reads = self.reads.lock().unwrap();
        let count = reads.entry(path.to_string()).or_default();
        *count += 1;
        if let Some((_, changes)) = self.restless.as_ref().filter(|(restless, _)| restless == path) {
            return Ok((*count).min(*changes).to_string().into_bytes());
        }
        self.files.get(path).cloned().unwrap_or(Err(Errno::ENOENT))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Errno> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let below = self.files.keys().filter_map(|file| file.strip_prefix(&prefix));
        let mut names: Vec<String> = below.filter_map(|rest| rest.split('/').next()).map(str::to_string).collect();
        names.dedup();
        if names.is_empty() { Err(Errno::ENOENT) } else { Ok(names) }
    }

    fn permissions(&self, _path: &str) -> Result<Permissions, Errno> {
        self.permissions.clone().ok_or(Errno::ENOSYS)
    }
}
