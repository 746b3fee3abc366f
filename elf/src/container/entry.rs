//! What a container says of an entry, and what the entry is.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::{bundle, offload_binary};
use crate::foreign::{self, Foreign};
use crate::header::{self, Header, HeaderError, Version};
use crate::target::{Feature, TargetId};

/// The bytes of an entry: of the file, or shared with the other entries of a compressed container. Derefs to a slice.
#[derive(Clone)]
pub struct Data<'a>(Place<'a>);

#[derive(Clone)]
enum Place<'a> {
    File(&'a [u8]),
    /// A part of what was compressed; the range is inside.
    Uncompressed(Arc<Vec<u8>>, Range<usize>),
}

impl<'a> Data<'a> {
    pub(super) fn of_file(bytes: &'a [u8]) -> Data<'a> {
        Data(Place::File(bytes))
    }

    pub(super) fn uncompressed(bytes: Vec<u8>) -> Data<'a> {
        let range = 0..bytes.len();
        Data(Place::Uncompressed(Arc::new(bytes), range))
    }

    /// A part, which is inside.
    pub(super) fn slice(&self, part: Range<usize>) -> Data<'a> {
        Data(match &self.0 {
            Place::File(bytes) => Place::File(&bytes[part]),
            Place::Uncompressed(buffer, range) => {
                let part = range.start + part.start..range.start + part.end;
                Place::Uncompressed(Arc::clone(buffer), part)
            }
        })
    }

    /// The bytes of the file, when they are not uncompressed ones.
    pub fn in_file(&self) -> Option<&'a [u8]> {
        match self.0 {
            Place::File(bytes) => Some(bytes),
            Place::Uncompressed(..) => None,
        }
    }
}

impl Deref for Data<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Place::File(bytes) => bytes,
            Place::Uncompressed(buffer, range) => &buffer[range.clone()],
        }
    }
}

impl fmt::Debug for Data<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.in_file().is_some() { "of the file" } else { "uncompressed" };
        write!(f, "{} bytes {place}", self.len())
    }
}

/// Who the code is for, in the container's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffloadKind {
    /// The host. Mostly empty.
    Host,
    /// `hip`.
    Hip,
    /// `hipv4`: the same, from code object V4.
    HipV4,
    /// `hcc`, before HIP.
    Hcc,
    /// `openmp`.
    OpenMp,
    /// `cuda`.
    Cuda,
    /// `sycl`.
    Sycl,
    /// Not said, or not known here.
    Unstated,
}

impl OffloadKind {
    fn from_id(text: &str) -> OffloadKind {
        match text {
            "host" => OffloadKind::Host,
            "hip" => OffloadKind::Hip,
            "hipv4" => OffloadKind::HipV4,
            "hcc" => OffloadKind::Hcc,
            "openmp" => OffloadKind::OpenMp,
            "cuda" => OffloadKind::Cuda,
            "sycl" => OffloadKind::Sycl,
            _ => OffloadKind::Unstated,
        }
    }

    /// As bundle ids have it.
    pub fn name(self) -> &'static str {
        match self {
            OffloadKind::Host => "host",
            OffloadKind::Hip => "hip",
            OffloadKind::HipV4 => "hipv4",
            OffloadKind::Hcc => "hcc",
            OffloadKind::OpenMp => "openmp",
            OffloadKind::Cuda => "cuda",
            OffloadKind::Sycl => "sycl",
            OffloadKind::Unstated => "none",
        }
    }
}

/// What an entry holds. Displays as a short name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// A linked AMDGPU code object whose header keeps the rules. [`CodeObject::parse`](crate::CodeObject::parse)
    /// checks the rest.
    CodeObject {
        /// Its version.
        version: Version,
        /// What its `e_flags` say.
        target: TargetId,
    },
    /// An AMDGPU ELF file whose header breaks a rule.
    Malformed(HeaderError),
    /// No bytes.
    Empty,
    /// No image by intention: the entry has a flag that says so.
    MetadataOnly,
    /// PTX, the assembly of NVIDIA GPUs.
    Ptx,
    /// Anything else, by name.
    Foreign(Foreign),
}

impl Content {
    fn of(data: &[u8]) -> Content {
        match foreign::identify(data) {
            _ if data.is_empty() => Content::Empty,
            None => match header::parse(data) {
                Ok(Header { version, target, .. }) => Content::CodeObject { version, target },
                Err(error) => Content::Malformed(error),
            },
            Some(Foreign::Ptx) => Content::Ptx,
            Some(foreign) => Content::Foreign(foreign),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::CodeObject { version, target } => write!(f, "code object {version} for {target}"),
            Content::Malformed(error) => write!(f, "AMDGPU ELF file that cannot be loaded: {error}"),
            Content::Empty => f.write_str("empty"),
            Content::MetadataOnly => f.write_str("metadata only"),
            Content::Ptx => f.write_str("PTX"),
            Content::Foreign(foreign) => match foreign {
                Foreign::Empty => f.write_str("empty"),
                Foreign::Text => f.write_str("text"),
                Foreign::Ptx => f.write_str("PTX"),
                Foreign::Bitcode => f.write_str("LLVM bitcode, which has to be linked first"),
                Foreign::Spirv => f.write_str("SPIR-V, which has to be compiled first"),
                Foreign::OffloadBundle | Foreign::CompressedBundle => f.write_str("offload bundle"),
                Foreign::OffloadBinary => f.write_str("offload binary"),
                Foreign::Archive => f.write_str("archive"),
                Foreign::Pe => f.write_str("Windows program"),
                Foreign::HostElf { name, .. } => write!(f, "ELF file for {name}"),
                Foreign::Unknown(bytes) => write!(f, "unknown data that start with {bytes:02x?}"),
            },
        }
    }
}

/// One of the things a file carries.
#[derive(Clone, Debug)]
pub struct Entry<'a> {
    /// The id as the bundle has it, `hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+`. An offload binary says the parts one by
    /// one and a code object by itself only the last two: they are put together here in the same way.
    pub id: String,
    /// Who it is for.
    pub kind: OffloadKind,
    /// `amdgcn-amd-amdhsa`, without an empty environment.
    pub triple: String,
    /// The target id as written: `gfx90a:xnack+`, or `gfx906+xnack` before code object V4. Empty for the host.
    pub arch: String,
    /// The target id, where it is one of an AMDGPU processor known here.
    pub target: Option<TargetId>,
    /// What the data are.
    pub content: Content,
    /// Index of the container in [`Contents::containers`](super::Contents::containers).
    pub container: usize,
    /// The bytes.
    pub data: Data<'a>,
}

impl<'a> Entry<'a> {
    /// A code object by itself.
    pub(super) fn plain(bytes: &'a [u8], header: &Header, container: usize) -> Entry<'a> {
        let Header { version, target, .. } = *header;
        let (triple, arch) = ("amdgcn-amd-amdhsa".to_owned(), target.to_string());
        Entry {
            id: format!("{triple}--{arch}"),
            kind: OffloadKind::Unstated,
            triple,
            arch,
            target: Some(target),
            content: Content::CodeObject { version, target },
            container,
            data: Data::of_file(bytes),
        }
    }

    pub(super) fn of_bundle(item: bundle::Item, data: Data<'a>, container: usize) -> Entry<'a> {
        let (kind, triple, arch) = split_id(&item.id);
        let (triple, arch) = (triple.to_owned(), arch.to_owned());
        let target = target(&triple, &arch);
        let content = Content::of(&data);
        Entry { id: item.id, kind, triple, arch, target, content, container, data }
    }

    pub(super) fn of_offload_binary(item: offload_binary::Item, data: Data<'a>, container: usize) -> Entry<'a> {
        let offload_binary::Item { kind, triple, arch, .. } = item;
        let content = match Content::of(&data) {
            Content::Empty if item.metadata_only => Content::MetadataOnly,
            Content::Foreign(Foreign::Text) if item.ptx => Content::Ptx,
            content => content,
        };
        // As the bundler writes it: an empty environment after three components.
        let environment = if triple.split('-').count() == 3 { "-" } else { "" };
        let id = format!("{}-{triple}{environment}-{arch}", kind.name());
        Entry { id, kind, target: target(&triple, &arch), triple, arch, content, container, data }
    }

    /// What the code is for: what its `e_flags` say. None when it is not a code object.
    pub fn code_target(&self) -> Option<&TargetId> {
        match &self.content {
            Content::CodeObject { target, .. } => Some(target),
            _ => None,
        }
    }

    /// The devices the entry is for: those that both the code and the container allow. None when it is not a code
    /// object, [`Contradiction`] when there are no such devices.
    pub(super) fn for_devices(&self) -> Option<Result<TargetId, Contradiction>> {
        let code = *self.code_target()?;
        let Some(said) = self.target else { return Some(Ok(code)) };
        let both = |said, code| match (said, code) {
            (Feature::Any | Feature::Unsupported, setting) | (setting, Feature::Any) => Ok(setting),
            _ if said == code => Ok(code),
            _ => Err(Contradiction),
        };
        let of_both = || {
            if said.processor != code.processor {
                return Err(Contradiction);
            }
            Ok(TargetId { sramecc: both(said.sramecc, code.sramecc)?, xnack: both(said.xnack, code.xnack)?, ..code })
        };
        Some(of_both())
    }
}

/// The container says that an entry is for other devices than its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Contradiction;

/// Kind, triple and target id of `kind-arch-vendor-system-environment-target`. Ids of before code object V4 have no
/// environment; those of the host no target.
fn split_id(id: &str) -> (OffloadKind, &str, &str) {
    let (kind, rest) = id.split_once('-').unwrap_or((id, ""));
    let at_dash = |number: usize| rest.match_indices('-').nth(number).map(|(at, _)| at);
    let (triple, arch) = match (at_dash(2), at_dash(3)) {
        (Some(at), _) if rest[at + 1..].starts_with("gfx") => (&rest[..at], &rest[at + 1..]),
        (_, Some(at)) => (&rest[..at], &rest[at + 1..]),
        _ => (rest, ""),
    };
    (OffloadKind::from_id(kind), triple.trim_end_matches('-'), arch)
}

/// The target id of an AMDGPU entry. The spelling of before V4 names the features that are on: `gfx908+sram-ecc+xnack`.
fn target(triple: &str, arch: &str) -> Option<TargetId> {
    if !triple.starts_with("amdgcn-") {
        return None;
    }
    if arch.contains(':') {
        return arch.parse().ok();
    }
    let mut parts = arch.split('+');
    let mut id = parts.next()?.to_owned();
    for feature in parts {
        let feature = if feature == "sram-ecc" { "sramecc" } else { feature };
        id.push_str(&format!(":{feature}+"));
    }
    id.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids() {
        for (id, kind, triple, arch, want) in [
            (
                "hipv4-amdgcn-amd-amdhsa--gfx90a:xnack+",
                OffloadKind::HipV4,
                "amdgcn-amd-amdhsa",
                "gfx90a:xnack+",
                "gfx90a:xnack+",
            ),
            (
                "hip-amdgcn-amd-amdhsa--gfx906+xnack",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa",
                "gfx906+xnack",
                "gfx906:xnack+",
            ),
            (
                "hip-amdgcn-amd-amdhsa-gfx908+sram-ecc+xnack",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa",
                "gfx908+sram-ecc+xnack",
                "gfx908:sramecc+:xnack+",
            ),
            (
                "hip-amdgcn-amd-amdhsa-gfx9-4-generic",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa",
                "gfx9-4-generic",
                "gfx9-4-generic",
            ),
            (
                "openmp-amdgcn-amd-amdhsa--gfx11-generic",
                OffloadKind::OpenMp,
                "amdgcn-amd-amdhsa",
                "gfx11-generic",
                "gfx11-generic",
            ),
            (
                "hip-amdgcn-amd-amdhsa-unknown-gfx1100",
                OffloadKind::Hip,
                "amdgcn-amd-amdhsa-unknown",
                "gfx1100",
                "gfx1100",
            ),
            ("host-x86_64-unknown-linux-gnu-", OffloadKind::Host, "x86_64-unknown-linux-gnu", "", ""),
            ("host-x86_64-unknown-linux--", OffloadKind::Host, "x86_64-unknown-linux", "", ""),
            ("host-x86_64-unknown-linux", OffloadKind::Host, "x86_64-unknown-linux", "", ""),
            ("hip-spirv64-amd-amdhsa--amdgcnspirv", OffloadKind::Hip, "spirv64-amd-amdhsa", "amdgcnspirv", ""),
            ("hip-amdgcn-amd-amdhsa--gfx9999", OffloadKind::Hip, "amdgcn-amd-amdhsa", "gfx9999", ""),
            ("hip-amdgcn-amd-amdhsa--gfx1100+xnack", OffloadKind::Hip, "amdgcn-amd-amdhsa", "gfx1100+xnack", ""),
            ("cuda-nvptx64-nvidia-cuda--sm_90", OffloadKind::Cuda, "nvptx64-nvidia-cuda", "sm_90", ""),
            ("odd", OffloadKind::Unstated, "", "", ""),
            ("", OffloadKind::Unstated, "", "", ""),
        ] {
            assert_eq!(split_id(id), (kind, triple, arch), "{id}");
            assert_eq!(target(triple, arch).map_or(String::new(), |t| t.to_string()), want, "{id}");
        }
    }

    #[test]
    fn ptx_is_text_with_a_version() {
        assert_eq!(Content::of(b"//\n// made by a compiler\n//\n.version 7.8\n.target sm_70\n"), Content::Ptx);
        assert_eq!(Content::of(b"the .version 7\n"), Content::Foreign(Foreign::Text));
    }
}
