//! The options of `kfdrun launch`.

use loader::spec::{ArgSpec, Tolerance};
use std::path::PathBuf;

/// `kfdrun launch`.
#[derive(Debug, clap::Args)]
#[command(after_help = ARGUMENTS)]
pub struct LaunchArgs {
    /// Code object, or a file that carries some: offload bundle, offload binary, host program
    #[arg(required_unless_present = "script")]
    pub image: Option<PathBuf>,
    /// Kernel, as the image calls it, with or without `.kd`, or as in the source: `ns::add<float>`
    #[arg(required_unless_present = "script")]
    pub kernel: Option<String>,
    /// Run the launches that a TOML file lists, over buffers that they share (docs/programs.md has its form)
    #[arg(long, value_name = "FILE", conflicts_with_all = OF_ONE_LAUNCH)]
    pub script: Option<PathBuf>,
    /// Grid in work-groups
    #[arg(long, value_name = "X[,Y[,Z]]", allow_negative_numbers = true, value_parser = dimensions, required_unless_present_any = ["items", "script"])]
    pub groups: Option<[u32; 3]>,
    /// Grid in work-items; the last work-group of a dimension may be partial
    #[arg(long, value_name = "X[,Y[,Z]]", allow_negative_numbers = true, value_parser = dimensions, conflicts_with = "groups")]
    pub items: Option<[u32; 3]>,
    /// Work-items of a work-group; default: what the kernel was compiled for, if for one size
    #[arg(long, value_name = "X[,Y[,Z]]", allow_negative_numbers = true, value_parser = dimensions)]
    pub group_size: Option<[u32; 3]>,
    /// Arguments, in order: see below
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub arguments: Vec<ArgSpec>,
    /// LDS of a work-group beyond what the kernel has statically
    #[arg(long, value_name = "BYTES", default_value_t = 0)]
    pub dynamic_lds: u32,
    /// Write a buffer after the launch: to a .npy file, a file of raw bytes, or `-` for text on stdout. WHICH is the
    /// argument's number from 0, its name, or a symbol of --define. The file is opened before the launch
    #[arg(long, value_name = "WHICH=FILE", value_parser = pair)]
    pub dump: Vec<(String, String)>,
    /// Compare a buffer after the launch with contents as --arg has them, or with a file (FILE or @FILE); status 1 if it
    /// differs
    #[arg(long, value_name = "WHICH=CONTENTS", value_parser = pair)]
    pub expect: Vec<(String, String)>,
    /// How far --expect lets numbers be apart: relative to the expected value, and besides; default: equal
    #[arg(long, value_name = "REL[,ABS]", value_parser = tolerance)]
    pub tolerance: Option<Tolerance>,
    /// Set a variable of the image before the launch; VALUE is as an --arg, with as many bytes as the variable has
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub set_global: Vec<(String, String)>,
    /// Print a variable of the image after the launch, as numbers of TYPE, whole ones, or as bytes
    #[arg(long, value_name = "NAME[:TYPE]")]
    pub dump_global: Vec<String>,
    /// Give an undefined symbol an address: a number, or a buffer as an --arg has it
    #[arg(long, value_name = "SYMBOL=ADDR|BUFFER", value_parser = pair)]
    pub define: Vec<(String, String)>,
    /// Launch so often and tell how long each took by the GPU's clock
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Print the kernel argument segment on stderr, each argument with its bytes
    #[arg(long)]
    pub dump_kernarg: bool,
    /// Bytes of the buffer for OpenCL's and HIP's printf
    #[arg(long, value_name = "BYTES", default_value_t = loader::DEFAULT_PRINTF_BUFFER)]
    pub printf_buffer: u32,
}

/// What a script says itself.
const OF_ONE_LAUNCH: [&str; 14] = [
    "image",
    "kernel",
    "groups",
    "items",
    "group_size",
    "arguments",
    "dynamic_lds",
    "dump",
    "expect",
    "tolerance",
    "set_global",
    "dump_global",
    "define",
    "repeat",
];

const ARGUMENTS: &str = "Arguments:
  5, -3, 0x10, 1.5, true   a number of the type that the metadata has
  u32:5, f16:1.5           a number of a type: i8 u8 i16 u16 i32 u32 i64 u64 f16 bf16 f32 f64
  i32x4:1,2,3,4            a vector
  hex:0a0b0c0d             bytes, as for a structure
  f32[1024]=CONTENTS       a buffer; CONTENTS is zeros (also when left out), iota, fill:VALUE,
                           rand:SEED, VALUE,VALUE... or @FILE (NumPy's .npy, which its first bytes
                           tell, else raw bytes; a pipe may have 1 GiB, or what the count needs);
                           the count may be left out for values and files. In front, in: (the kernel
                           must not change it) or out: (print it after the launch unless --dump does)
  null, ptr:0x1000         an address
  local:256                LDS bytes for a dynamic_shared_pointer";

fn dimensions(text: &str) -> Result<[u32; 3], String> {
    let mut sizes = [1; 3];
    let parts: Vec<&str> = text.split([',', 'x']).collect();
    if parts.len() > 3 {
        return Err(format!("{} dimensions are given, 1 to 3 are possible", parts.len()));
    }
    for (size, part) in sizes.iter_mut().zip(parts) {
        let number = part.parse().ok().filter(|size| *size > 0);
        *size = number.ok_or(format!("'{part}' is not a whole number from 1 to 4294967295"))?;
    }
    Ok(sizes)
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((left, right)) if !left.is_empty() && !right.is_empty() => Ok((left.to_owned(), right.to_owned())),
        _ => Err("expected two parts with '=' between".to_owned()),
    }
}

pub fn tolerance(text: &str) -> Result<Tolerance, String> {
    let (relative, absolute) = text.split_once(',').unwrap_or((text, "0"));
    let number = |text: &str| match text.parse::<f64>() {
        Ok(value) if value >= 0.0 && value.is_finite() => Ok(value),
        _ => Err(format!("'{text}' is not a number of 0 or more")),
    };
    Ok(Tolerance { relative: number(relative)?, absolute: number(absolute)? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        assert_eq!(dimensions("4"), Ok([4, 1, 1]));
        assert_eq!(dimensions("4,2,3"), Ok([4, 2, 3]));
        for bad in ["", "0", "4,", "1,2,3,4", "-1", "x"] {
            assert!(dimensions(bad).is_err(), "{bad}");
        }
        assert_eq!(pair("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(pair("a").is_err() && pair("=b").is_err() && pair("a=").is_err());
        assert_eq!(tolerance("1e-3,2"), Ok(Tolerance { relative: 1e-3, absolute: 2.0 }));
        assert!(tolerance("-1").is_err());
    }
}
