//! Which machine the cases run on.

use emu::isa::Target;
use emu::{EmulatedDriver, Machine, Options};
use kfd::{Driver, LinuxDriver};
use std::str::FromStr;
use std::sync::Arc;
use trace::Tracer;

/// `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Device {
    /// The kernel.
    Linux,
    /// An emulated machine with these GPUs.
    Emulated(Vec<Target>),
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Device, String> {
        match text.split_once(':') {
            None if text == "kfd" => Ok(Device::Linux),
            None if text == "emu" => Ok(Device::Emulated(Vec::new())),
            Some(("emu", names)) => {
                let target = |name| Target::from_name(name).ok_or_else(|| format!("no emulated GPU is a '{name}'"));
                names.split(',').map(target).collect::<Result<_, _>>().map(Device::Emulated)
            }
            _ => Err("expected kfd, emu (no GPU) or emu:gfxNNNN[,gfxNNNN...]".to_string()),
        }
    }
}

impl Device {
    /// The driver. A new one is a new machine, if it is emulated.
    ///
    /// # Errors
    /// The emulated machine cannot start.
    pub fn driver(&self, options: &Options) -> std::io::Result<Arc<dyn Driver>> {
        Ok(match self {
            Device::Linux => Arc::new(LinuxDriver),
            Device::Emulated(targets) => {
                let tracer = Tracer::new(Vec::new());
                Arc::new(EmulatedDriver::new(Machine::with(targets), options.clone(), tracer)?)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        assert_eq!("kfd".parse(), Ok(Device::Linux));
        assert_eq!("emu".parse(), Ok(Device::Emulated(Vec::new())));
        assert_eq!("emu:gfx90a,gfx1100".parse(), Ok(Device::Emulated(vec![Target::Gfx90a, Target::Gfx1100])));
        for bad in ["", "gpu", "kfd:0", "emu:", "emu:gfx803"] {
            assert!(bad.parse::<Device>().is_err(), "{bad}");
        }
    }
}
