//! Why a file cannot be opened.

use super::{BundleError, CompressedError, HostError, OffloadBinaryError};
use crate::foreign::Foreign;
use crate::header::HeaderError;

/// Why a file cannot be opened. Each displays as one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContainerError {
    /// Neither a code object nor a container.
    #[error(transparent)]
    Foreign(#[from] Foreign),
    /// A code object by itself, whose header breaks a rule.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// The data are only the start of a magic number.
    #[error("the data end after {len} bytes, inside the magic number of {of}: the file is truncated")]
    CutMagic {
        /// Bytes there are.
        len: usize,
        /// What it would start.
        of: &'static str,
    },
    /// The form of bundles for assembly and LLVM IR.
    #[error("the file is a clang offload bundle of text: take a part out with clang-offload-bundler and compile it")]
    TextBundle,
    /// A `.kpack` file.
    #[error("the file is a ROCm kpack archive (it starts with KPAK), which is not supported: give a code object")]
    Kpack,
    /// A clang offload bundle.
    #[error("clang offload bundle: {0}")]
    Bundle(#[from] BundleError),
    /// A compressed bundle.
    #[error("compressed clang offload bundle: {0}")]
    Compressed(#[from] CompressedError),
    /// An LLVM offload binary.
    #[error("LLVM offload binary: {0}")]
    OffloadBinary(#[from] OffloadBinaryError),
    /// A host ELF file.
    #[error("host ELF: {0}")]
    Host(#[from] HostError),
    /// Something else between or after containers.
    #[error("at {at:#x} are the bytes {bytes:02x?}: between containers must be zeros, after them another container")]
    Stray {
        /// Where.
        at: usize,
        /// At most 8 of them.
        bytes: Vec<u8>,
    },
    /// Nothing but zeros where a container should be.
    #[error("there are {len} bytes, all of them zero: must be a container")]
    Zeros {
        /// How many bytes.
        len: usize,
    },
    /// More entries or containers than allowed.
    #[error("the file has more than {limit} entries, the limit")]
    Entries {
        /// [`Limits::max_entries`](super::Limits::max_entries).
        limit: usize,
    },
    /// Containers in containers.
    #[error("containers are nested more than {limit} deep")]
    Nested {
        /// The limit.
        limit: usize,
    },
    /// Inside another container.
    #[error("in {place}: {cause}")]
    In {
        /// Which.
        place: String,
        /// What is wrong there.
        cause: Box<ContainerError>,
    },
}

impl ContainerError {
    /// A word for what is wrong, the same in every version; the text may change.
    pub fn code(&self) -> &'static str {
        match self {
            ContainerError::Foreign(error) => error.code(),
            ContainerError::Header(error) => error.code(),
            ContainerError::CutMagic { .. } => "truncated",
            ContainerError::TextBundle => "text-bundle",
            ContainerError::Kpack => "kpack",
            ContainerError::Bundle(_) => "offload-bundle",
            ContainerError::Compressed(_) => "compressed-bundle",
            ContainerError::OffloadBinary(_) => "offload-binary",
            ContainerError::Host(_) => "host-elf",
            ContainerError::Stray { .. } => "stray-bytes",
            ContainerError::Zeros { .. } => "zeros",
            ContainerError::Entries { .. } => "too-many-entries",
            ContainerError::Nested { .. } => "nested",
            ContainerError::In { cause, .. } => cause.code(),
        }
    }
}
