//! What the host gives a kernel besides its arguments: the printf buffer, hostcall and the device heap.

use crate::gpu::HiddenBuffers;
use crate::heap::Heap;
use crate::hostcall::{self, Form, Layout};
use crate::printf::{Channel, Formats};
use crate::rpc::Output;
use crate::shadow::Shadow;
use crate::{Error, Gpu, Image, Pending, Shape, Stop};
use elf::{Kernel, ValueKind};
use kfd::{Buffer, Device, Kind};
use std::sync::Arc;
use std::time::Duration;

/// Time between looks at the caller while a kernel runs that asks for nothing.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The same while one runs that wakes the host when it wants something: an interrupt may be lost.
pub(crate) const LISTEN: Duration = Duration::from_millis(2);

/// Bytes of the printf buffer unless asked otherwise: OpenCL's runtime gives 4096 a work-item of the largest work-group.
pub const DEFAULT_PRINTF_BUFFER: u32 = 4 << 20;

/// The start of the device heap, all zero: the device library asks for the rest by hostcall.
const HEAP_BYTES: u64 = 128 << 10;

/// How the services shall be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Bytes of the printf buffer.
    pub printf_bytes: u32,
    /// The hostcall buffer that the device library in the image knows.
    pub hostcall: Form,
}

impl Default for ServiceOptions {
    fn default() -> Self {
        ServiceOptions { printf_bytes: DEFAULT_PRINTF_BUFFER, hostcall: Form::default() }
    }
}

/// The services of one run.
pub struct Services {
    printf: Option<Channel>,
    hostcall: Option<hostcall::Server>,
    heap: Option<Buffer>,
    output: Box<dyn Output>,
    notes: Vec<String>,
    shadow: Arc<Shadow>,
}

impl Services {
    /// Makes what the hidden arguments of `kernels` ask for. A kernel's argument alone does not say that it is used, so
    /// nothing here is large.
    pub fn new(
        gpu: &mut Gpu,
        image: &Image,
        kernels: &[(&Kernel, Shape)],
        options: ServiceOptions,
        output: Box<dyn Output>,
    ) -> Result<Services, Error> {
        let (device, code) = (&gpu.device().clone(), image.code());
        let wants =
            |kind: ValueKind| kernels.iter().any(|(k, _)| k.metadata.args.iter().any(|arg| arg.value_kind == kind));
        let printf = if wants(ValueKind::HiddenPrintfBuffer) && !code.printf().is_empty() {
            Some(Channel::new(device, Formats::parse(code.printf())?, options.printf_bytes)?)
        } else {
            None
        };
        let (hostcall, heap) = if wants(ValueKind::HiddenHostcallBuffer) {
            let waves = kernels.iter().map(|(kernel, shape)| shape.waves(kernel.metadata.wavefront_size)).max();
            let properties = &device.node().properties;
            let resident = properties.simd_count.zip(properties.max_waves_per_simd);
            let resident = resident.map_or(1 << 16, |(simds, waves)| u64::from(simds) * u64::from(waves));
            let shadow = image.is_instrumented().then(|| gpu.shadow().clone());
            let layout = Layout::new(options.hostcall, waves.unwrap_or(1).min(resident.max(1)));
            let memory = Box::new(Heap::new(device, shadow));
            let server = hostcall::Server::new(device, layout, &gpu.bell()?, memory)?;
            let heap = match wants(ValueKind::HiddenHeapV1) {
                true => Some(zeroed(device, HEAP_BYTES, "device heap")?),
                false => None,
            };
            (Some(server), heap)
        } else {
            (None, None)
        };
        Ok(Services { printf, hostcall, heap, output, notes: Vec::new(), shadow: gpu.shadow().clone() })
    }

    /// What the hidden arguments are.
    pub fn buffers(&self) -> HiddenBuffers {
        HiddenBuffers {
            printf: self.printf.as_ref().map_or(0, Channel::va),
            hostcall: self.hostcall.as_ref().map_or(0, hostcall::Server::va),
            heap: self.heap.as_ref().map_or(0, |buffer| buffer.va().0),
        }
    }

    /// Serves what a running kernel asks for. The answer is for its wait: [`Pending::Leave`] when the kernel must not go on,
    /// since the address sanitizer found something; [`Services::finish`] tells what.
    pub fn poll(&mut self) -> Result<Pending, Error> {
        let Some(server) = &mut self.hostcall else { return Ok(Pending::Sleep(TICK)) };
        let served = server.poll(self.output.as_mut())?;
        self.notes.extend(server.take_complaints());
        Ok(match (server.is_stopped(), served) {
            (true, _) => Pending::Leave,
            (false, true) => Pending::Again,
            (false, false) => Pending::Sleep(LISTEN),
        })
    }

    /// Adds what may have to do with it to the report on a kernel that went wrong.
    pub fn add_hint(&self, stop: &mut Stop) {
        if let Some(hint) = self.hostcall.as_ref().and_then(hostcall::Server::hint) {
            stop.add_note(hint);
        }
    }

    /// Serves and prints what is left of a kernel of `image` that has ended, well or not, or goes on if it has not
    /// `completed`. Returns lines for the user.
    ///
    /// # Errors
    /// [`Stop::Sanitizer`] when the address sanitizer found something.
    pub fn finish(&mut self, image: &Image, kernel: &str, completed: bool) -> Result<Vec<String>, Error> {
        while self.poll()? == Pending::Again && completed {}
        let reports = self.hostcall.as_mut().map(hostcall::Server::take_reports).unwrap_or_default();
        let (recovered, stops): (Vec<_>, Vec<_>) = reports.iter().partition(|report| report.recovers);
        self.notes.extend(recovered.iter().map(|report| self.shadow.explain(report, image)));
        if let Some(channel) = &mut self.printf {
            self.notes.extend(channel.drain(self.output.as_mut())?);
        }
        let notes = std::mem::take(&mut self.notes);
        if stops.is_empty() {
            return Ok(notes);
        }
        let reports = stops.iter().map(|report| self.shadow.explain(report, image)).chain(notes).collect();
        Err(Stop::Sanitizer { kernel: kernel.to_owned(), reports }.into())
    }
}

/// Device memory, or without a large BAR system memory, of zeros.
pub(crate) fn zeroed(device: &Arc<Device>, bytes: u64, purpose: &'static str) -> Result<Buffer, Error> {
    let buffer = host_visible(device, bytes, purpose)?;
    buffer.fill(0, bytes, 0)?;
    Ok(buffer)
}

/// Device memory that the host reaches; without a large BAR system memory.
pub fn host_visible(device: &Arc<Device>, bytes: u64, purpose: &'static str) -> Result<Buffer, Error> {
    match Buffer::new(device, Kind::VramHostVisible, bytes, purpose) {
        Ok(buffer) => Ok(buffer),
        Err(kfd::Error::NoLargeBar { .. }) => Ok(Buffer::new(device, Kind::Control, bytes, purpose)?),
        Err(error) => Err(error.into()),
    }
}
