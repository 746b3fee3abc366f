//! Runs `llvm-mc -disassemble`.

use emu::isa::{Family, Target};
use std::io::Write;
use std::process::{Command, Stdio};

/// The tools' major version; their names carry it on Debian.
const VERSION: &str = "22";

/// Most candidates given to one process. Each is followed by a marker `s_nop n`, and n has 16 bits.
const BATCH: usize = 4096;

/// One instruction as LLVM prints it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Mnemonic and operands, single spaces.
    pub text: String,
    /// Bytes taken.
    pub len: usize,
}

/// Why the disassembler could not be used.
#[derive(Debug, thiserror::Error)]
pub enum McError {
    /// The process could not be started or fed.
    #[error("{tool}: {source}")]
    Io {
        /// Program.
        tool: String,
        /// Cause.
        source: std::io::Error,
    },
    /// The version text has no version.
    #[error("{tool} --version says nothing about its version: {text:?}")]
    Version {
        /// Program.
        tool: String,
        /// What it said.
        text: String,
    },
}

/// Name of an LLVM tool.
pub fn tool(name: &str) -> String {
    format!("{name}-{VERSION}")
}

/// Version of `llvm-mc`, such as `22.1.8`.
pub fn version() -> Result<String, McError> {
    let tool = tool("llvm-mc");
    let output =
        Command::new(&tool).arg("--version").output().map_err(|source| McError::Io { tool: tool.clone(), source })?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_once("LLVM version ").and_then(|(_, rest)| rest.split_whitespace().next());
    version.map(str::to_owned).ok_or(McError::Version { tool, text: text.clone() })
}

/// Disassembles each candidate by itself: None where LLVM refuses it (or crashes on it), or where the bytes it would
/// encode the text as are others.
///
/// GFX12 has 16-bit operands in halves of registers, as GFX11; LLVM 22 shows that only when told to.
pub fn disassemble(target: Target, candidates: &[Vec<u8>]) -> Result<Vec<Option<Line>>, McError> {
    let attributes = if target.family() == Family::Gfx12 { "+real-true16" } else { "" };
    Mc { target, attributes, accept: &|candidate, bytes| candidate.starts_with(bytes) }.all(candidates)
}

/// As `llvm-objdump` would: without attributes, and the last dword of the encoding may differ, since LLVM cuts some
/// literals.
pub fn disassemble_loosely(target: Target, candidates: &[Vec<u8>]) -> Result<Vec<Option<Line>>, McError> {
    let accept = |candidate: &[u8], bytes: &[u8]| {
        let fixed = bytes.len().saturating_sub(4).max(4).min(bytes.len());
        candidate.len() >= bytes.len() && candidate.starts_with(&bytes[..fixed])
    };
    Mc { target, attributes: "", accept: &accept }.all(candidates)
}

/// How to call the disassembler.
struct Mc<'a> {
    target: Target,
    /// `-mattr`.
    attributes: &'a str,
    /// Is the encoding that LLVM shows (second) acceptable for the candidate?
    accept: &'a dyn Fn(&[u8], &[u8]) -> bool,
}

impl Mc<'_> {
    fn all(&self, candidates: &[Vec<u8>]) -> Result<Vec<Option<Line>>, McError> {
        let mut all = Vec::with_capacity(candidates.len());
        for chunk in candidates.chunks(BATCH) {
            self.chunk(chunk, &mut all)?;
        }
        Ok(all)
    }

    fn chunk(&self, candidates: &[Vec<u8>], all: &mut Vec<Option<Line>>) -> Result<(), McError> {
        let (output, finished) = self.run(candidates)?;
        let mut lines: Vec<Option<Line>> = vec![None; candidates.len()];
        let mut index = 0;
        for line in output.lines() {
            let Some((text, rest)) = line.split_once("; encoding: [") else { continue };
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            let Some((bytes, _)) = rest.split_once(']') else { continue };
            let bytes: Vec<u8> = bytes
                .split(',')
                .map_while(|byte| u8::from_str_radix(byte.trim().strip_prefix("0x")?, 16).ok())
                .collect();
            if bytes == marker_bytes(index) && text == marker_text(index) {
                index += 1;
                continue;
            }
            let Some(candidate) = candidates.get(index) else { continue };
            if lines[index].is_none() && (self.accept)(candidate, &bytes) && !text.contains("/*") {
                lines[index] = Some(Line { text, len: bytes.len() });
            }
        }
        if finished {
            all.extend(lines);
            return Ok(());
        }
        // It crashed at some candidate after the last marker it got out: close in on that one and leave it out.
        all.extend(lines.into_iter().take(index));
        let rest = &candidates[index..];
        let near = rest.len().min(64);
        if rest.len() <= 1 {
            all.push(None);
            return Ok(());
        }
        let (left, right) = rest.split_at(if near < rest.len() { near } else { near / 2 });
        self.chunk(left, all)?;
        self.chunk(right, all)
    }

    /// Standard output, and whether the process lived to its end.
    fn run(&self, candidates: &[Vec<u8>]) -> Result<(String, bool), McError> {
        let tool = tool("llvm-mc");
        let io = |source| McError::Io { tool: tool.clone(), source };
        let mut child = Command::new(&tool)
            .args(["-disassemble", "-triple=amdgcn-amd-amdhsa", "-show-encoding"])
            .arg(format!("-mcpu={}", self.target.name()))
            // A crash costs a second in the symbolizer otherwise.
            .env("LLVM_DISABLE_SYMBOLIZATION", "1")
            .arg(format!("-mattr={}", self.attributes))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(io)?;
        let mut input = String::new();
        for (index, candidate) in candidates.iter().enumerate() {
            for bytes in [candidate.as_slice(), &marker_bytes(index)] {
                for byte in bytes {
                    input.push_str(&format!("{byte:#04x} "));
                }
                input.push('\n');
            }
        }
        let stdin = child.stdin.take();
        let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(input.as_bytes())));
        let output = child.wait_with_output().map_err(io)?;
        // A dead reader shows as a broken pipe here and as a signal in the status.
        let _ = writer.join();
        Ok((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.code().is_some()))
    }
}

fn marker_bytes(index: usize) -> [u8; 4] {
    (0xbf80_8000 | index as u32).to_le_bytes()
}

fn marker_text(index: usize) -> String {
    format!("s_nop {:#x}", 0x8000 | index)
}
