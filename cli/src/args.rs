//! The command line.

use crate::exit::{Failure, USAGE};
use clap::builder::TypedValueParser;
use clap::{Parser, Subcommand};
use emu::cu::fidelity::Met;
use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

/// Run an AMDGPU program image on /dev/kfd, or on an emulated GPU, with no ROCR, libhsakmt or libdrm.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    override_usage = "kfdrun [OPTIONS] IMAGE [ARGS]...\n       kfdrun [OPTIONS] COMMAND [ARGS]...",
    subcommand_value_name = "IMAGE",
    subcommand_help_heading = "Commands (an image of such a name is ./NAME)",
    disable_help_subcommand = true,
    after_help = EXIT_STATUS
)]
pub struct Args {
    /// Work-items of a work-group, x dimension
    #[arg(long = "threads-x", visible_alias = "threads", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub threads_x: u32,
    /// Work-items of a work-group, y dimension
    #[arg(long = "threads-y", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub threads_y: u32,
    /// Work-items of a work-group, z dimension
    #[arg(long = "threads-z", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub threads_z: u32,
    /// Work-groups, x dimension
    #[arg(long = "blocks-x", visible_alias = "blocks", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub blocks_x: u32,
    /// Work-groups, y dimension
    #[arg(long = "blocks-y", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub blocks_y: u32,
    /// Work-groups, z dimension
    #[arg(long = "blocks-z", value_name = "N", default_value_t = 1, value_parser = positive())]
    pub blocks_z: u32,

    /// Set a variable in the program's environment, or pass one on; can be given several times
    #[arg(long, value_name = "KEY[=VALUE]", value_parser = clap::builder::OsStringValueParser::new().try_map(variable))]
    pub env: Vec<(OsString, Option<OsString>)>,
    /// Start the program with no environment but what --env says
    #[arg(long)]
    pub clean_env: bool,
    /// Heap of a program in the form of GCC's gcn-run; default: 10 MiB
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..=1 << 40))]
    pub heap: Option<u64>,

    /// Where to run: `auto` (a GPU that can run the image, else the emulated machine for the image's target), `kfd`,
    /// `kfd:N` (topology node N), `emu`, `emu:gfxNNNN`
    #[arg(global = true, long, value_name = "DEVICE", default_value = "auto")]
    pub device: DeviceChoice,
    /// End the run with status 124 when it takes longer, and before it a wait for pipes that are read; default: no limit
    #[arg(global = true, long, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Stack of a work-item for kernels whose stack depth the compiler does not know, in bytes
    #[arg(global = true, long, value_name = "BYTES", default_value_t = loader::DEFAULT_STACK, value_parser = clap::value_parser!(u32).range(16..=262_128))]
    pub stack_size: u32,
    /// Say on stderr which device runs the image and what it needs
    #[arg(global = true, short, long)]
    pub verbose: bool,
    /// The hostcall buffer that the image's device library knows: `stacks`, or `phases` for newer ones of ROCm
    #[arg(global = true, long, value_name = "FORM", default_value = "stacks", value_parser = hostcall)]
    pub hostcall: loader::hostcall::Form,
    /// Say on stderr what each kernel needs: registers, LDS, scratch, and how many waves a SIMD then holds
    #[arg(global = true, long)]
    pub print_resource_usage: bool,
    /// Print every step on stderr, one line an event
    #[arg(global = true, long)]
    pub trace: bool,
    /// Emulated machine: run waves one after another in a fixed order
    #[arg(global = true, long, value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub deterministic: Option<u64>,
    /// Emulated machine: the kernel version whose rules it follows, `6.1`, `6.12` (as first released), `6.12-late` (with
    /// its stable updates; the default) or `current`
    #[arg(global = true, long, value_name = "VERSION", value_parser = kernel_profile)]
    pub kernel_profile: Option<emu::Rules>,
    /// Emulated machine: say on stderr what the host does that works and should not be done (docs/trouble.md has the rules)
    #[arg(global = true, long)]
    pub lint: bool,
    /// Emulated machine: packet processors look at the worst moment that the specification allows
    #[arg(global = true, long, value_name = "SEED", num_args = 0..=1, require_equals = true, default_missing_value = "0")]
    pub adversary: Option<u64>,
    /// Emulated machine: have something fail: IOCTL:N=ERRNO, lost-interrupt:N, vm-fault:ADDRESS, vm-fault:#BUFFER+OFFSET,
    /// reset:N, removal:N, slow:MICROSECONDS; can be given several times
    #[arg(global = true, long, value_name = "FAULT")]
    pub inject: Vec<emu::Injection>,
    /// Emulated machine: say on stderr after the run which operations it met that are not exact, how close they come to
    /// hardware, and how often they were executed
    #[arg(global = true, long)]
    pub fidelity: bool,
    /// Where `--fidelity` has the emulated machine count.
    #[arg(skip)]
    pub met: Option<Arc<Met>>,
    /// Which code object of a file with several: its number from 0, its bundle id or its target id; default: the best for
    /// the device
    #[arg(global = true, long, value_name = "ENTRY")]
    pub entry: Option<String>,

    /// What to run.
    #[command(subcommand)]
    pub command: Command,
}

/// What to run.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what a number, a name or some bytes mean: errors, requests, flags, packets, targets
    Explain(ExplainArgs),
    /// List the GPUs: rocminfo's labels, a tree, names only, or JSON
    Devices(DevicesArgs),
    /// Check whether this machine and this process can use a GPU, and say what to do where not
    Doctor(DoctorArgs),
    /// A program image, and its arguments: what follows the image belongs to the program, untouched.
    #[command(external_subcommand)]
    Image(Vec<OsString>),
    /// Launch one kernel of an image with arguments
    Launch(Box<crate::launch::LaunchArgs>),
    /// List what a file carries: code objects, kernels, their arguments and resources
    Inspect(crate::inspect::InspectArgs),
}

/// `kfdrun explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0, or 1 when nothing here knows it")]
pub struct ExplainArgs {
    /// Number, name, `IOCTL ERRNO`, or 64 bytes in hexadecimal; a kind (errno, hsa, ioctl, inactive, exception, e_flags,
    /// target, flags, header, packet, signal, mmap, capability) in front chooses
    #[arg(required = true, allow_negative_numbers = true, value_name = "WHAT")]
    pub what: Vec<String>,
    /// Print all readings as JSON
    #[arg(long)]
    pub json: bool,
}

/// `kfdrun devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0, or 125 when no GPU is listed")]
pub struct DevicesArgs {
    /// `kfd` or `kfd:N` for real GPUs (default), `emu` for all emulated machines, `emu:gfxNNNN` for one
    #[arg(long, value_name = "DEVICE")]
    pub device: Option<DeviceChoice>,
    /// Print one processor name a line
    #[arg(long, conflicts_with_all = ["tree", "json"])]
    pub arch: bool,
    /// Print what each GPU is made of: SoC, XCC, shader engine, compute unit, SIMD
    #[arg(long, conflicts_with = "json")]
    pub tree: bool,
    /// Print everything as JSON
    #[arg(long)]
    pub json: bool,
    /// List the GPUs of another machine, from an unpacked bundle of `kfdrun doctor`
    #[arg(long, value_name = "DIR", conflicts_with = "device")]
    pub root: Option<PathBuf>,
}

/// `kfdrun doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0 when nothing failed (warnings do not count), 1 when something did, 125 when the \
                        bundle cannot be written or --root not be read"
)]
pub struct DoctorArgs {
    /// Print the report as JSON
    #[arg(long)]
    pub json: bool,
    /// Also write what was looked at to a tar archive: topology (with serial numbers), versions, owners of device nodes,
    /// variables that matter, the report
    #[arg(long, value_name = "FILE")]
    pub bundle: Option<PathBuf>,
    /// Look at an unpacked bundle of another machine
    #[arg(long, value_name = "DIR")]
    pub root: Option<PathBuf>,
}

const EXIT_STATUS: &str = "What follows IMAGE belongs to the program, untouched.

Exit status: the program's value & 255, or
    2    bad usage                     127  image not found
    124  timeout                       132  illegal instruction
    125  driver, device, environment   133  trap
    126  image refused, or no device   134  abort
         that can run it               139  memory fault
    130  interrupted                   141  nobody reads the output any more";

/// `--device`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU that can run the image, else the emulated machine.
    Auto,
    /// The kernel's driver, perhaps one topology node.
    Kfd(Option<u32>),
    /// The emulated machine, perhaps one target.
    Emulated(Option<emu::isa::Target>),
}

impl FromStr for DeviceChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, which) = match text.split_once(':') {
            Some((kind, which)) => (kind, Some(which)),
            None => (text, None),
        };
        match (kind, which) {
            ("auto", None) => Ok(DeviceChoice::Auto),
            ("kfd", None) => Ok(DeviceChoice::Kfd(None)),
            ("kfd", Some(node)) => match node.parse() {
                Ok(node) => Ok(DeviceChoice::Kfd(Some(node))),
                Err(_) => Err(format!("'{node}' is not a topology node number")),
            },
            ("emu", None) => Ok(DeviceChoice::Emulated(None)),
            ("emu", Some(name)) => match emu::isa::Target::from_name(name) {
                Some(target) => Ok(DeviceChoice::Emulated(Some(target))),
                None => Err(format!("no emulated machine has a '{name}'; there are {}", target_names())),
            },
            _ => Err("expected auto, kfd, kfd:N, emu or emu:gfxNNNN".to_owned()),
        }
    }
}

/// The targets of the emulated machine, for messages.
pub fn target_names() -> String {
    emu::isa::Target::ALL.map(|target| target.name()).join(", ")
}

impl Args {
    /// An option that only a program has a use for.
    pub fn of_programs(&self) -> Option<&'static str> {
        [
            (self.threads_x != 1, "--threads-x"),
            (self.threads_y != 1, "--threads-y"),
            (self.threads_z != 1, "--threads-z"),
            (self.blocks_x != 1, "--blocks-x"),
            (self.blocks_y != 1, "--blocks-y"),
            (self.blocks_z != 1, "--blocks-z"),
            (!self.env.is_empty(), "--env"),
            (self.clean_env, "--clean-env"),
            (self.heap.is_some(), "--heap"),
        ]
        .into_iter()
        .find_map(|(is_given, name)| is_given.then_some(name))
    }
}

fn hostcall(text: &str) -> Result<loader::hostcall::Form, String> {
    match text {
        "stacks" => Ok(loader::hostcall::Form::Stacks),
        "phases" => Ok(loader::hostcall::Form::Phases),
        _ => Err("expected stacks or phases".to_owned()),
    }
}

/// `KEY` or `KEY=VALUE`.
fn variable(text: OsString) -> Result<(OsString, Option<OsString>), String> {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut parts = text.as_bytes().splitn(2, |byte| *byte == b'=').map(|part| OsString::from_vec(part.to_vec()));
    match (parts.next(), parts.next()) {
        (Some(key), value) if !key.is_empty() => Ok((key, value)),
        _ => Err("expected the name of a variable, or a name, '=' and a value".to_owned()),
    }
}

fn kernel_profile(text: &str) -> Result<emu::Rules, String> {
    emu::Rules::from_name(text).ok_or_else(|| {
        let names = emu::Rules::ALL.map(|rules| rules.name());
        format!("expected one of {}", names.join(", "))
    })
}

impl Args {
    /// How the emulated machine is run, if one is.
    pub fn machine(&self) -> emu::Options {
        let rules = self.kernel_profile.unwrap_or_default();
        emu::Options {
            seed: self.deterministic,
            met: self.met.clone(),
            rules,
            lint: self.lint,
            adversary: self.adversary,
            inject: self.inject.clone(),
            ..emu::Options::default()
        }
    }

    /// The first option given that only the emulated machine has.
    fn of_emulation(&self) -> Option<&'static str> {
        let given = [
            ("--kernel-profile", self.kernel_profile.is_some()),
            ("--deterministic", self.deterministic.is_some()),
            ("--fidelity", self.fidelity),
            ("--lint", self.lint),
            ("--adversary", self.adversary.is_some()),
            ("--inject", !self.inject.is_empty()),
        ];
        given.into_iter().find_map(|(option, given)| given.then_some(option))
    }

    /// The device that was asked for. With an option of the emulated machine `auto` is that machine.
    ///
    /// # Errors
    /// Such an option was given with a real device: what a real kernel and a real GPU do is not ours to choose.
    pub fn device<'a>(&'a self, choice: &'a DeviceChoice) -> Result<&'a DeviceChoice, Failure> {
        match (self.of_emulation(), choice) {
            (Some(option), DeviceChoice::Kfd(_)) => {
                let text =
                    format!("{option} is for the emulated machine, and --device kfd is a real one; use --device emu");
                Err(Failure::new(USAGE, text))
            }
            (Some(_), DeviceChoice::Auto) => Ok(&DeviceChoice::Emulated(None)),
            _ => Ok(choice),
        }
    }
}

fn positive() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..)
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) if !duration.is_zero() => Ok(duration),
        _ => Err("expected a positive number of seconds".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_the_image_is_the_programs() {
        let args = Args::parse_from(["kfdrun", "--threads", "4", "a.co", "--threads", "x", "--", "-v", "--help"]);
        assert_eq!(args.threads_x, 4);
        let Command::Image(command) = args.command else { panic!("an image") };
        assert_eq!(command, ["a.co", "--threads", "x", "--", "-v", "--help"].map(OsString::from));
        assert!(!args.verbose);
    }

    #[test]
    fn devices() {
        assert_eq!("kfd:3".parse(), Ok(DeviceChoice::Kfd(Some(3))));
        assert_eq!("emu:gfx90a".parse(), Ok(DeviceChoice::Emulated(Some(emu::isa::Target::Gfx90a))));
        for bad in ["", "gpu", "kfd:", "kfd:x", "emu:", "emu:gfx803", "auto:1"] {
            assert!(bad.parse::<DeviceChoice>().is_err(), "{bad}");
        }
    }

    #[test]
    fn variables_of_the_environment() {
        let part = OsString::from;
        assert_eq!(variable("A=b=c".into()), Ok((part("A"), Some(part("b=c")))));
        assert_eq!(variable("A=".into()), Ok((part("A"), Some(part("")))));
        assert_eq!(variable("A".into()), Ok((part("A"), None)));
        assert!(variable("=b".into()).is_err() && variable("".into()).is_err());
        let args = Args::parse_from(["kfdrun", "--env", "A", "--env", "B=1", "--clean-env", "a.co"]);
        assert_eq!((args.env.len(), args.of_programs()), (2, Some("--env")));
    }

    #[test]
    fn numbers_are_checked() {
        for bad in
            [["--threads", "0"], ["--threads-y", "-1"], ["--blocks", "x"], ["--timeout", "0"], ["--timeout", "nan"]]
        {
            assert!(Args::try_parse_from(["kfdrun", bad[0], bad[1], "a.co"]).is_err(), "{bad:?}");
        }
        assert!(Args::try_parse_from(["kfdrun"]).is_err(), "an image is needed");
        assert!(Args::try_parse_from(["kfdrun", "--unknown", "a.co"]).is_err(), "options are known");
    }
}
