//! Files that are not AMDGPU code objects, by name.

use goblin::elf::header;

/// What a file is, when it is not a code object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Foreign {
    /// No bytes.
    #[error("the file is empty: an AMDGPU code object was expected")]
    Empty,
    /// Text.
    #[error(
        "the file is text: an AMDGPU code object (ELF) was expected; compile it with clang --target=amdgcn-amd-amdhsa"
    )]
    Text,
    /// PTX.
    #[error("the file is PTX, the assembly of NVIDIA GPUs: an AMDGPU code object (ELF) was expected")]
    Ptx,
    /// LLVM bitcode, or its wrapper.
    #[error(
        "the file is LLVM bitcode: compile it to a code object with clang --target=amdgcn-amd-amdhsa -mcpu=<processor>"
    )]
    Bitcode,
    /// SPIR-V.
    #[error("the file is SPIR-V: translate it to LLVM IR and compile that to a code object")]
    Spirv,
    /// `__CLANG_OFFLOAD_BUNDLE__`.
    #[error(
        "the file is a clang offload bundle, a container: take the code object out with \
         clang-offload-bundler --unbundle"
    )]
    OffloadBundle,
    /// `CCOB`.
    #[error(
        "the file is a compressed clang offload bundle, a container: take the code object out with \
         clang-offload-bundler --unbundle"
    )]
    CompressedBundle,
    /// The `0x10FF10AD` container.
    #[error("the file is an LLVM offload binary, a container: take the code object out with llvm-offload-binary")]
    OffloadBinary,
    /// A static library.
    #[error("the file is an archive (static library): link its objects with ld.lld -shared")]
    Archive,
    /// A Windows program.
    #[error("the file is a Windows program (PE): an AMDGPU code object was expected")]
    Pe,
    /// An ELF file for another machine.
    #[error("the file is a host ELF: e_machine is {machine} ({name}), must be 224 (AMDGPU)")]
    HostElf {
        /// `e_machine`.
        machine: u16,
        /// Its name.
        name: &'static str,
    },
    /// Nothing known here.
    #[error("the file starts with {0:02x?}, must start with [7f, 45, 4c, 46] (ELF)")]
    Unknown(
        /// The first bytes, at most 8.
        Vec<u8>,
    ),
}

impl Foreign {
    /// A word for what the file is, the same in every version.
    pub fn code(&self) -> &'static str {
        match self {
            Foreign::Empty => "empty",
            Foreign::Text => "text",
            Foreign::Ptx => "ptx",
            Foreign::Bitcode => "bitcode",
            Foreign::Spirv => "spirv",
            Foreign::OffloadBundle => "offload-bundle",
            Foreign::CompressedBundle => "compressed-bundle",
            Foreign::OffloadBinary => "offload-binary",
            Foreign::Archive => "archive",
            Foreign::Pe => "pe",
            Foreign::HostElf { .. } => "host-elf",
            Foreign::Unknown(_) => "unknown-format",
        }
    }
}

/// Names a file that does not start as an ELF file, or is one for another machine. None for an AMDGPU ELF file and for
/// an ELF file too short to tell.
pub(crate) fn identify(bytes: &[u8]) -> Option<Foreign> {
    const MAGICS: [(&[u8], Foreign); 10] = [
        (b"BC\xc0\xde", Foreign::Bitcode),
        (b"\xde\xc0\x17\x0b", Foreign::Bitcode),
        (b"\x03\x02\x23\x07", Foreign::Spirv),
        (b"\x07\x23\x02\x03", Foreign::Spirv),
        (b"__CLANG_OFFLOAD_BUNDLE__", Foreign::OffloadBundle),
        (b"CCOB", Foreign::CompressedBundle),
        (b"\x10\xff\x10\xad", Foreign::OffloadBinary),
        (b"!<arch>\n", Foreign::Archive),
        (b"!<thin>\n", Foreign::Archive),
        (b"MZ", Foreign::Pe),
    ];
    if bytes.starts_with(header::ELFMAG) {
        return other_machine(bytes);
    }
    if let Some((_, foreign)) = MAGICS.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        return Some(foreign.clone());
    }
    Some(match bytes {
        [] => Foreign::Empty,
        _ if is_text(bytes) && is_ptx(bytes) => Foreign::Ptx,
        _ if is_text(bytes) => Foreign::Text,
        _ => Foreign::Unknown(bytes.iter().copied().take(8).collect()),
    })
}

/// Whether text has a line with the first directive of PTX (PTX ISA, ".version").
fn is_ptx(text: &[u8]) -> bool {
    text[..text.len().min(4096)].split(|&byte| byte == b'\n').any(|line| line.starts_with(b".version "))
}

fn other_machine(bytes: &[u8]) -> Option<Foreign> {
    let field = [*bytes.get(18)?, *bytes.get(19)?];
    if u16::from_le_bytes(field) == 224 {
        return None;
    }
    let machine = match bytes.get(header::EI_DATA) {
        Some(&header::ELFDATA2MSB) => u16::from_be_bytes(field),
        _ => u16::from_le_bytes(field),
    };
    let name = match machine {
        header::EM_386 => "x86",
        header::EM_X86_64 => "x86-64",
        header::EM_ARM => "Arm",
        header::EM_AARCH64 => "AArch64",
        header::EM_PPC64 => "PowerPC64",
        header::EM_RISCV => "RISC-V",
        header::EM_S390 => "s390",
        header::EM_CUDA => "NVIDIA CUDA",
        header::EM_BPF => "BPF",
        258 => "LoongArch",
        0 => "none",
        _ => "not known here",
    };
    Some(Foreign::HostElf { machine, name })
}

/// The first 512 bytes are UTF-8 without control characters other than white space.
fn is_text(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(512)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        // A character cut at the end of the head is no reason.
        Err(error) if error.error_len().is_none() && head.len() == 512 => {
            std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return false,
    };
    !valid.is_empty() && valid.chars().all(|c| !c.is_control() || c.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named() {
        let elf = |machine: u8, data: u8| {
            let mut bytes = vec![0; 64];
            bytes[..4].copy_from_slice(header::ELFMAG);
            bytes[5] = data;
            bytes[if data == 2 { 19 } else { 18 }] = machine;
            bytes
        };
        let cut = "ä".repeat(256).split_off(0).into_bytes();
        let shifted = [b"x".as_slice(), &cut].concat();
        for (bytes, want) in [
            (vec![], Foreign::Empty),
            (b"int main() {}\n".to_vec(), Foreign::Text),
            (shifted, Foreign::Text),
            (b"BC\xc0\xde5".to_vec(), Foreign::Bitcode),
            (b"\xde\xc0\x17\x0b".to_vec(), Foreign::Bitcode),
            (b"\x03\x02\x23\x07\0\0\x01\0".to_vec(), Foreign::Spirv),
            (b"// generated\n.version 7.8\n.target sm_70\n".to_vec(), Foreign::Ptx),
            (b"__CLANG_OFFLOAD_BUNDLE__\x02".to_vec(), Foreign::OffloadBundle),
            (b"CCOB\x03\0".to_vec(), Foreign::CompressedBundle),
            (b"\x10\xff\x10\xad\x01".to_vec(), Foreign::OffloadBinary),
            (b"!<arch>\nfoo".to_vec(), Foreign::Archive),
            (b"MZ\x90".to_vec(), Foreign::Pe),
            (b"\0\x01\x02\x03\x04\x05\x06\x07\x08".to_vec(), Foreign::Unknown(vec![0, 1, 2, 3, 4, 5, 6, 7])),
            (b"text\0".to_vec(), Foreign::Unknown(b"text\0".to_vec())),
            (elf(62, 1), Foreign::HostElf { machine: 62, name: "x86-64" }),
            (elf(22, 2), Foreign::HostElf { machine: 22, name: "s390" }),
        ] {
            assert_eq!(identify(&bytes), Some(want));
        }
        assert_eq!(identify(&elf(224, 1)), None);
        assert_eq!(identify(b"\x7fELF\x02\x01"), None);
    }
}
