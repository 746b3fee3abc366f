//! The same kernels through the host's OpenCL, such as PoCL, when it has one.

use crate::{Case, Place};
use opencl3::command_queue::CommandQueue;
use opencl3::context::Context;
use opencl3::device::{CL_DEVICE_TYPE_CPU, Device};
use opencl3::kernel::{ExecuteKernel, Kernel};
use opencl3::memory::{Buffer, CL_MEM_READ_WRITE};
use opencl3::platform::get_platforms;
use opencl3::program::Program;
use opencl3::types::CL_BLOCKING;
use std::ptr;

const SOURCE: &str = include_str!("kernels.cl");

/// A CPU device of the host's OpenCL with the kernels built for it.
pub struct OpenCl {
    name: String,
    context: Context,
    queue: CommandQueue,
    program: Program,
}

impl OpenCl {
    /// The first CPU device, or why there is none.
    pub fn open() -> Result<OpenCl, String> {
        let text = |error: opencl3::error_codes::ClError| error.to_string();
        let platforms = get_platforms().map_err(text)?;
        let id = platforms
            .iter()
            .find_map(|platform| platform.get_devices(CL_DEVICE_TYPE_CPU).ok()?.first().copied())
            .ok_or("no platform has a CPU device")?;
        let device = Device::new(id);
        let name = device.name().map_err(text)?;
        let context = Context::from_device(&device).map_err(text)?;
        let queue = CommandQueue::create_default_with_properties(&context, 0, 0).map_err(text)?;
        let program = Program::create_and_build_from_source(&context, SOURCE, "-cl-std=CL1.2")?;
        Ok(OpenCl { name, context, queue, program })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A launch of a case, with its buffers.
    pub fn prepare(&self, case: &Case) -> Prepared<'_> {
        let kernel = Kernel::create(&self.program, case.kernel).unwrap();
        let buffers = case
            .places
            .iter()
            .map(|place| match place {
                Place::In(words) => Some(self.buffer(words)),
                Place::Out(count) => Some(self.buffer(&vec![0; *count])),
                Place::Word(_) => None,
            })
            .collect();
        let words = case.places.iter().map(|place| if let Place::Word(word) = place { *word } else { 0 }).collect();
        Prepared { opencl: self, kernel, buffers, words, items: case.items as usize, group: case.group as usize }
    }

    fn buffer(&self, words: &[u32]) -> Buffer<u32> {
        // SAFETY: no host memory is handed over.
        let mut buffer =
            unsafe { Buffer::<u32>::create(&self.context, CL_MEM_READ_WRITE, words.len(), ptr::null_mut()) }.unwrap();
        // SAFETY: `words` lives until the blocking call returns.
        unsafe { self.queue.enqueue_write_buffer(&mut buffer, CL_BLOCKING, 0, words, &[]) }.unwrap();
        buffer
    }
}

/// A kernel with its arguments.
pub struct Prepared<'a> {
    opencl: &'a OpenCl,
    kernel: Kernel,
    buffers: Vec<Option<Buffer<u32>>>,
    words: Vec<u32>,
    items: usize,
    group: usize,
}

impl Prepared<'_> {
    pub fn run(&self) {
        let mut launch = ExecuteKernel::new(&self.kernel);
        for (buffer, word) in self.buffers.iter().zip(&self.words) {
            match buffer {
                // SAFETY: the kernels in SOURCE take these arguments in this order.
                Some(buffer) => unsafe { launch.set_arg(buffer) },
                // SAFETY: as above.
                None => unsafe { launch.set_arg(word) },
            };
        }
        launch.set_global_work_size(self.items).set_local_work_size(self.group);
        // SAFETY: as above; the kernels stay within their buffers.
        unsafe { launch.enqueue_nd_range(&self.opencl.queue) }.unwrap();
        self.opencl.queue.finish().unwrap();
    }

    /// What the buffer in this place holds.
    pub fn read(&self, place: usize, count: usize) -> Vec<u32> {
        let mut words = vec![0; count];
        if let Some(buffer) = &self.buffers[place] {
            // SAFETY: `words` lives until the blocking call returns.
            unsafe { self.opencl.queue.enqueue_read_buffer(buffer, CL_BLOCKING, 0, &mut words, &[]) }.unwrap();
        }
        words
    }
}
