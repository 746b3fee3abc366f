//! A device with one queue, and how a kernel runs on it.

mod report;
mod wait;

use crate::kernarg::{self, Hidden, Kernarg};
use crate::shadow::Shadow;
use crate::{DEFAULT_STACK, Error, Image, Shape, Value};
use aql::signal::SignalKind;
use aql::{AmdSignal, Fences, KernelDispatch};
use elf::Kernel;
use kfd::{Buffer, Device, Event, EventKind, Events, GpuVa, Kind, Queue, QueueConfig, ScratchLayout};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use trace::LastFault;

/// How to open a [`Gpu`].
#[derive(Clone, Debug)]
pub struct GpuOptions {
    /// Stack of a work-item for kernels whose depth the compiler does not know, in bytes.
    pub stack_size: u32,
    /// Packets of the ring, a power of two.
    pub ring_packets: u32,
    /// Bytes of the largest kernel argument segment.
    pub kernarg_bytes: u64,
    /// Bytes of memory that host and device share, for the caller ([`Gpu::shared`]).
    pub shared_bytes: u64,
    /// The packet processor writes when each kernel starts and ends ([`Gpu::timestamps`]).
    pub timestamps: bool,
    /// A sink of the tracer, for what the emulated machine knows of a fault.
    pub faults: Option<Arc<LastFault>>,
}

impl Default for GpuOptions {
    fn default() -> Self {
        GpuOptions {
            stack_size: DEFAULT_STACK,
            ring_packets: 1024,
            kernarg_bytes: 65536,
            shared_bytes: 0,
            timestamps: false,
            faults: None,
        }
    }
}

/// A device with a queue, its events and the memory a dispatch needs.
///
/// Fields drop in order: the queue goes before what it points to.
#[derive(Debug)]
pub struct Gpu {
    queue: Queue,
    scratch: Option<(Buffer, ScratchLayout)>,
    /// The completion signal, the kernel arguments, the caller's shared memory.
    control: Arc<Buffer>,
    /// Set by the completion signal and when the packet processor stops the queue.
    done: Event,
    memory_fault: Event,
    hw_exception: Event,
    /// Set by a kernel that calls the host, once somebody wants to know ([`Gpu::bell`]).
    call: Option<Event>,
    events: Events,
    device: Arc<Device>,
    options: GpuOptions,
    hidden: HiddenBuffers,
    shadow: Arc<Shadow>,
    /// What a report compares with.
    before: Before,
    /// Kernels that have completed.
    completed: u64,
}

/// How things were when the last doorbell was rung.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    /// Age of the completion event, once the interrupts of all earlier kernels have come: it starts at 1.
    age: u64,
    /// `read_dispatch_id`.
    read: u64,
}

/// Device addresses that hidden arguments point to; 0 where there is nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HiddenBuffers {
    /// The printf buffer.
    pub printf: u64,
    /// The hostcall buffer.
    pub hostcall: u64,
    /// The start of the device heap.
    pub heap: u64,
}

/// LDS of a compute unit, in bytes.
pub fn lds_of_cu(device: &Device) -> u32 {
    device.node().properties.lds_size_in_kb.map_or(65536, |kib| kib.saturating_mul(1024))
}

/// Offsets in the control buffer.
const SIGNAL: u64 = 0;
const KERNARG: u64 = 64;

/// A kernel launch.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Work-groups and their size.
    pub shape: Shape,
    /// Explicit arguments, in order.
    pub values: Vec<Value>,
    /// LDS bytes beyond what the kernel has statically and its arguments ask for.
    pub dynamic_lds: u32,
    /// Longest time to wait; none for ever.
    pub timeout: Option<Duration>,
}

/// What [`Gpu::dispatch`]'s caller is told while a kernel runs.
#[derive(Clone, Copy)]
pub struct WaitState<'k> {
    /// Kernel.
    pub kernel: &'k str,
    /// Since its doorbell.
    pub elapsed: Duration,
    /// Address of the completion signal.
    pub signal: GpuVa,
    /// Its value.
    pub value: i64,
    /// The kernels have run: what is waited for is that the program's files are written, such as a pipe that is not read.
    pub is_for_files: bool,
    /// What the queue and the waves are at: [`Gpu::report`].
    pub report: &'k dyn Fn() -> Vec<String>,
}

/// An event that a kernel sets itself: it stores `event` to `mailbox`, then sends the interrupt of that number
/// (`s_sendmsg`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bell {
    /// Slot of the event page.
    pub mailbox: u64,
    /// KFD event id.
    pub event: u32,
}

/// What the caller answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pending {
    /// Nothing to do before the kernel completes, wakes the host, or this much time has passed.
    Sleep(Duration),
    /// The kernel may ask for something at any moment and cannot wake the host: call again within tens of microseconds.
    Poll,
    /// It served the kernel: look again at once.
    Again,
    /// Leave the kernel: the program has ended, or the user has had enough.
    Leave,
}

/// How a dispatch ended, when nothing failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finished {
    /// The kernel completed.
    Completed,
    /// The caller left it.
    Left,
}

impl Gpu {
    /// Makes the queue on an open device.
    pub fn open(device: &Arc<Device>, options: GpuOptions) -> Result<Gpu, Error> {
        let kfd = device.kfd();
        let events = Events::new(device)?;
        let done = events.create(EventKind::Signal)?;
        let memory_fault = events.create(EventKind::Memory)?;
        let hw_exception = events.create(EventKind::HwException)?;
        // Kernels before 6.4 do not know the call; a second queue of the process comes too late for it. Both still tell
        // of memory faults.
        let report_exceptions = match kfd.enable_runtime() {
            Ok(()) => true,
            Err(error) => error.errno() == Some(kfd::Errno::EBUSY),
        };
        let queue = Queue::create(
            device,
            &QueueConfig {
                packets: options.ring_packets,
                error_event: Some(&done),
                profiling: options.timestamps,
                report_exceptions,
                ..QueueConfig::default()
            },
        )?;
        let control_bytes = KERNARG + options.kernarg_bytes.next_multiple_of(64) + options.shared_bytes;
        let control = Arc::new(Buffer::new(device, Kind::Control, control_bytes, "signal, arguments, shared memory")?);
        let signal = AmdSignal {
            kind: SignalKind::User,
            event_mailbox_ptr: done.mailbox().map_or(0, |va| va.0),
            event_id: done.id().0,
            ..AmdSignal::default()
        };
        control.write_bytes(SIGNAL, &signal.to_bytes())?;
        Ok(Gpu {
            queue,
            scratch: None,
            control,
            done,
            memory_fault,
            hw_exception,
            call: None,
            events,
            device: device.clone(),
            options,
            hidden: HiddenBuffers::default(),
            shadow: Arc::new(Shadow::new(device)),
            before: Before::default(),
            completed: 0,
        })
    }

    /// Sets what the hidden arguments of the kernels to come point to. The memory must outlive them.
    pub fn set_hidden_buffers(&mut self, hidden: HiddenBuffers) {
        self.hidden = hidden;
    }

    /// What a kernel rings to wake a host that waits with [`Pending::Sleep`].
    pub(crate) fn bell(&mut self) -> Result<Bell, Error> {
        let call = match self.call.take() {
            Some(call) => call,
            None => self.events.create(EventKind::Signal)?,
        };
        let bell = Bell { mailbox: call.mailbox().map_or(0, |va| va.0), event: call.id().0 };
        self.call = Some(call);
        Ok(bell)
    }

    /// The address sanitizer's shadow memory.
    pub(crate) fn shadow(&self) -> &Arc<Shadow> {
        &self.shadow
    }

    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.device
    }

    /// The queue.
    pub fn queue(&self) -> &Queue {
        &self.queue
    }

    /// The caller's shared memory: the buffer and the offset where it starts, 64-byte aligned.
    pub fn shared(&self) -> (&Arc<Buffer>, u64) {
        (&self.control, KERNARG + self.options.kernarg_bytes.next_multiple_of(64))
    }

    /// LDS of a work-group, in bytes.
    fn lds_limit(&self) -> u32 {
        lds_of_cu(&self.device)
    }

    /// Scratch bytes of a work-item that a kernel is launched with.
    pub fn private_bytes(&self, kernel: &Kernel) -> u32 {
        let fixed = kernel.metadata.private_segment_fixed_size;
        if kernel.uses_dynamic_stack() { fixed.max(self.options.stack_size) } else { fixed }
    }

    /// Makes scratch for `waves` waves of `lanes` lanes with `bytes` bytes a work-item, if there is not enough.
    ///
    /// The packet processor takes a change up before the first packet, or when it has stopped for want of scratch.
    pub fn reserve_scratch(&mut self, bytes: u32, lanes: u32, waves: u64) -> Result<(), Error> {
        if bytes == 0 {
            return Ok(());
        }
        let node = self.device.node();
        let target = self.device.target();
        let most = ScratchLayout::new(node, target, bytes, lanes, u64::MAX)?;
        let unit = most.wave_bytes * u64::from(most.num_xcc) * u64::from(most.engines);
        let engines = u64::from(most.engines) * u64::from(most.num_xcc);
        let mut wanted = unit.saturating_mul(waves.div_ceil(engines).max(1));
        loop {
            let layout = ScratchLayout::new(node, target, bytes, lanes, wanted)?;
            if let Some((_, have)) = &self.scratch
                && have.wave_bytes >= layout.wave_bytes
                && have.waves >= layout.waves
            {
                return Ok(());
            }
            match Buffer::new(&self.device, Kind::Vram, layout.bytes(), "scratch") {
                Ok(buffer) => {
                    self.queue.set_scratch(&layout.registers(buffer.va()), false)?;
                    self.scratch = Some((buffer, layout));
                    return Ok(());
                }
                // Fewer waves at a time need less; a wave of each shader engine is the least.
                Err(error) if error.errno() == Some(kfd::Errno::ENOMEM) && layout.waves > layout.engines => {
                    wanted = unit.max(layout.bytes() / 2);
                }
                Err(cause) => return Err(self.no_scratch(&layout, cause)),
            }
        }
    }

    /// The sum, for who has to make it smaller.
    fn no_scratch(&self, layout: &ScratchLayout, cause: kfd::Error) -> Error {
        let ScratchLayout { bytes_per_lane, lanes, waves, num_xcc, .. } = *layout;
        Error::Scratch {
            bytes_per_lane,
            lanes,
            waves,
            num_xcc,
            needed: layout.bytes(),
            available: self.device.kfd().available_memory(self.device.gpu_id()).ok(),
            cause,
        }
    }

    /// Checks a launch against the kernel's metadata and the device.
    fn check(&self, image: &Image, kernel: &Kernel, shape: &Shape) -> Result<(), Error> {
        let fail = |what, value: String, rule: String| {
            Err(Error::Launch { kernel: kernel.name().to_owned(), what, value, rule })
        };
        if shape.group.contains(&0) || shape.grid.contains(&0) {
            let value = format!("{:?} work-items in work-groups of {:?}", shape.grid, shape.group);
            return fail("the grid", value, "no dimension is 0".to_owned());
        }
        let items = shape.group_items();
        let limit = u64::from(kernel.metadata.max_flat_workgroup_size);
        if items > limit {
            let value = format!("{} x {} x {} = {items} work-items", shape.group[0], shape.group[1], shape.group[2]);
            return fail("the work-group", value, format!("its .max_flat_workgroup_size is {limit}"));
        }
        if let Some(required) = kernel.metadata.reqd_workgroup_size
            && required != [0; 3]
            && required != shape.group
        {
            return fail("the work-group", format!("{:?}", shape.group), format!("it was compiled for {required:?}"));
        }
        if kernel.metadata.uniform_work_group_size == Some(true)
            && let Some(axis) = (0..3).find(|axis| !shape.grid[*axis].is_multiple_of(shape.group[*axis]))
        {
            let value = format!("{} in dimension {axis}", shape.grid[axis]);
            return fail("the grid", value, format!("it must be a multiple of the work-group's {}", shape.group[axis]));
        }
        let most = kernel.metadata.max_num_workgroups;
        let groups: [u32; 3] = std::array::from_fn(|axis| shape.grid[axis].div_ceil(shape.group[axis]));
        if let Some((axis, most)) =
            (0..3).find_map(|axis| Some((axis, most[axis].filter(|most| groups[axis] > *most)?)))
        {
            let value = format!("{} work-groups in dimension {axis}", groups[axis]);
            return fail("the grid", value, format!("its .max_num_workgroups_{} is {most}", ["x", "y", "z"][axis]));
        }
        let prints = |arg: &elf::Arg| arg.value_kind == elf::ValueKind::HiddenPrintfBuffer;
        if self.hidden.printf == 0 && !image.code().printf().is_empty() && kernel.metadata.args.iter().any(prints) {
            return Err(Error::Printf { kernel: kernel.name().to_owned() });
        }
        Ok(())
    }

    /// Runs a kernel and waits for it. `pending` is called again and again while it runs.
    pub fn dispatch(
        &mut self,
        image: &Image,
        kernel: &Kernel,
        launch: &Launch,
        pending: &mut dyn FnMut(&WaitState) -> Pending,
    ) -> Result<Finished, Error> {
        let kernarg = self.kernarg(image, kernel, launch)?;
        self.dispatch_bytes(image, kernel, &launch.shape, &kernarg, launch.timeout, pending)
    }

    /// Checks a launch and builds its kernel argument segment.
    pub fn kernarg(&self, image: &Image, kernel: &Kernel, launch: &Launch) -> Result<Kernarg, Error> {
        let Launch { shape, .. } = launch;
        self.check(image, kernel, shape)?;
        let apertures = self.device.apertures();
        let hidden = Hidden {
            shape: *shape,
            dynamic_lds: launch.dynamic_lds,
            queue: self.queue.amd_queue_va().0,
            shared_base: (apertures.lds_base >> 32) as u32,
            private_base: (apertures.scratch_base >> 32) as u32,
            printf_buffer: self.hidden.printf,
            hostcall_buffer: self.hidden.hostcall,
            heap: self.hidden.heap,
        };
        Ok(kernarg::build(&kernel.metadata, &launch.values, &hidden, self.lds_limit())?)
    }

    /// As [`Gpu::dispatch`] with a segment that is already built.
    pub fn dispatch_bytes(
        &mut self,
        image: &Image,
        kernel: &Kernel,
        shape: &Shape,
        kernarg: &Kernarg,
        timeout: Option<Duration>,
        pending: &mut dyn FnMut(&WaitState) -> Pending,
    ) -> Result<Finished, Error> {
        let Kernarg { bytes, group_segment_size } = kernarg;
        let group_segment_size = *group_segment_size;
        if bytes.len() as u64 > self.options.kernarg_bytes {
            return Err(Error::Launch {
                kernel: kernel.name().to_owned(),
                what: "the kernel argument segment",
                value: format!("{} bytes", bytes.len()),
                rule: format!("the queue was opened for {}", self.options.kernarg_bytes),
            });
        }
        let private_segment_size = self.private_bytes(kernel);
        let lanes = kernel.metadata.wavefront_size;
        let waves = shape.waves(lanes);
        if self.queue.write_index() == 0 {
            self.reserve_scratch(private_segment_size, lanes, waves)?;
        }
        if image.is_instrumented() {
            self.shadow.update()?;
        }
        self.control.write_bytes(KERNARG, bytes)?;
        for offset in [aql::signal::START_TS, aql::signal::END_TS] {
            self.control.atomic_u64(SIGNAL + offset as u64)?.store(0, Ordering::Relaxed);
        }
        self.signal()?.store(1, Ordering::Relaxed);
        let packet = KernelDispatch {
            fences: Fences::SYSTEM,
            dims: shape.dims as u8,
            workgroup_size: shape.group.map(|size| size as u16),
            grid_size: shape.grid,
            private_segment_size,
            group_segment_size,
            kernel_object: image.va(kernel.descriptor_vaddr).0,
            kernarg_address: self.control.va().0 + KERNARG,
            completion_signal: self.signal_va().0,
        };
        let last = self.queue.publish(&[packet.to_bytes()], kernel.name(), |_| {
            std::thread::yield_now();
            true
        })?;
        self.before = Before { age: self.done.age().max(1 + self.completed), read: self.queue.read_index() };
        self.queue.ring_doorbell(last);
        self.wait(image, kernel, timeout, (private_segment_size, lanes, waves), pending)
    }

    /// When the last kernel started and ended, in ticks of the GPU's clock; None when nobody wrote it.
    pub fn timestamps(&self) -> Result<Option<(u64, u64)>, Error> {
        let load = |offset: usize| -> Result<u64, Error> {
            Ok(self.control.atomic_u64(SIGNAL + offset as u64)?.load(Ordering::Acquire))
        };
        let (start, end) = (load(aql::signal::START_TS)?, load(aql::signal::END_TS)?);
        Ok((start != 0 && end >= start).then_some((start, end)))
    }

    fn signal(&self) -> Result<&AtomicI64, Error> {
        let value = self.control.atomic_u64(SIGNAL + aql::signal::VALUE as u64)?;
        // SAFETY: the same aligned eight bytes, borrowed for as long; both types allow concurrent atomic access.
        Ok(unsafe { AtomicI64::from_ptr(value.as_ptr().cast()) })
    }

    pub(crate) fn signal_va(&self) -> GpuVa {
        GpuVa(self.control.va().0 + SIGNAL)
    }
}
