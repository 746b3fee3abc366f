//! Kernel dispatch packets.

use super::Shared;
use super::bus::{Bus, BusFault};
use super::fault::{of_bus, packet_bits, record};
use super::processor::{Fetched, Queue, Stop};
use crate::cu::dispatch::{Dispatch, Done, Host, Scratch};
use crate::kernel::aperture;
use aql::KernelDispatch;
use aql::queue as amd_queue;
use std::sync::PoisonError;
use trace::{Event, Fault, FaultKind};

/// What waves reach of the device around them.
struct Waves<'a> {
    shared: &'a Shared,
    /// What is done between two turns of the waves.
    between: Option<&'a (dyn Fn() + Sync)>,
}

impl Host for Waves<'_> {
    fn interrupt(&self, m0: u32) {
        // An SQ interrupt carries 24 bits.
        self.shared.interrupt(m0 & 0xff_ffff, 24);
    }

    fn cancelled(&self) -> bool {
        self.shared.cancelled()
    }

    fn enter(&self) {
        self.shared.hold.enter(|| self.shared.cancelled());
    }

    fn leave(&self) {
        self.shared.hold.leave();
    }

    fn rest(&self, waves: u32) {
        self.shared.hold.rest(waves, || self.shared.cancelled());
        if let Some(between) = self.between {
            between();
        }
    }
}

/// Scratch of the queue, read anew for every dispatch.
fn scratch(bus: &Bus, queue: u64) -> Result<Scratch, BusFault> {
    let word = |offset: usize, what| bus.load_u32(queue.wrapping_add(offset as u64), what);
    let srd = |index: usize| word(amd_queue::SCRATCH_RESOURCE_DESCRIPTOR + 4 * index, "scratch_resource_descriptor");
    let location = queue.wrapping_add(amd_queue::SCRATCH_BACKING_MEMORY_LOCATION as u64);
    Ok(Scratch {
        va: bus.load_u64(location, "scratch_backing_memory_location")?,
        wave64_lane_bytes: word(amd_queue::SCRATCH_WAVE64_LANE_BYTE_SIZE, "scratch_wave64_lane_byte_size")?,
        tmpring: word(amd_queue::COMPUTE_TMPRING_SIZE, "compute_tmpring_size")?,
        srd: [srd(0)?, srd(1)?, srd(2)?, srd(3)?],
    })
}

/// HSA: in dimensions beyond those of the grid both sizes are 1.
fn dimensions(packet: &KernelDispatch) -> Result<(), String> {
    let dims = usize::from(packet.dims);
    if dims == 0 {
        return Err("setup says 0 dimensions, must be 1 to 3".to_string());
    }
    let beyond = (dims..3).find(|d| packet.workgroup_size[*d] != 1 || packet.grid_size[*d] != 1);
    match beyond {
        None => Ok(()),
        Some(d) => Err(format!(
            "setup says {dims} dimensions; in dimension {d} the work-group size is {} and the grid size {}, must be 1",
            packet.workgroup_size[d], packet.grid_size[d]
        )),
    }
}

/// Runs a kernel to its end. Scratch the queue lacks is asked for until it is there.
pub fn run(
    shared: &Shared,
    bus: &Bus,
    queue: &Queue,
    Fetched { index, va: packet_va, bytes, .. }: Fetched<'_>,
    packet: &KernelDispatch,
    between: Option<&(dyn Fn() + Sync)>,
) -> Result<Done, Stop> {
    let refuse = |detail| Stop::Fault(record(shared, FaultKind::Packet(packet_bits::DIMENSIONS), detail));
    dimensions(packet).map_err(refuse)?;
    let setup = &shared.setup;
    let profile = &setup.device.profile;
    let engine = &setup.device.engine;
    let bus_stop = |fault| Stop::Fault(of_bus(shared, fault));
    loop {
        let units = || shared.units.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if units().is_some_and(|units| units.is_empty()) {
            setup.kernel.note(|| {
                format!("queue {} packet {index}: the CU mask leaves an XCC without compute units", setup.queue_id)
            });
            queue.wait(shared, bus, |_| Ok(units().is_none_or(|units| !units.is_empty())))?;
        }
        let dispatch = Dispatch {
            target: profile.target,
            gpu_id: setup.device.gpu_id,
            queue_id: setup.queue_id,
            space: setup.space.clone(),
            packet_va,
            packet: bytes,
            dispatch_id: index,
            queue_va: queue.va,
            shared_base: aperture::LDS_BASE,
            private_base: aperture::SCRATCH_BASE,
            scratch: scratch(bus, queue.va).map_err(bus_stop)?,
            compute_units: profile.compute_units,
            units: units(),
            xccs: profile.xccs,
            arrays_per_engine: profile.arrays_per_engine,
            shader_engines: profile.shader_engines(),
            waves_per_cu: profile.waves_per_cu(),
            lds_per_cu: profile.lds_kib * 1024,
        };
        let launch = match engine.prepare(&dispatch) {
            Ok(launch) => launch,
            Err(fault) => match scratch_request(&fault) {
                Some(bits) => {
                    queue.request(shared, bus, bits, *fault)?;
                    continue;
                }
                None => return Err(Stop::Fault(fault)),
            },
        };
        setup.kernel.tracer.emit(|| Event::Dispatch {
            queue_id: setup.queue_id,
            index,
            kernel_object: launch.kernel_object,
            workgroups: launch.groups,
            wave_size: launch.lanes,
        });
        let done = engine.run_prepared(&dispatch, &launch, &Waves { shared, between }).map_err(Stop::Fault)?;
        return if shared.cancelled() { Err(Stop::Cancelled) } else { Ok(done) };
    }
}

/// The bits of a refusal that the host can do something about.
fn scratch_request(fault: &Fault) -> Option<u64> {
    match fault.kind {
        FaultKind::Packet(bits) if bits & packet_bits::SCRATCH != 0 => Some(bits),
        _ => None,
    }
}
