//! Compressed offload bundles (Clang documentation: "Clang Offload Bundler", "Compressed Offload Bundle"; LLVM's
//! `OffloadBundle.h`).
//!
//! | version | bytes | after the magic, version and method of 16 bits each |
//! |---|---|---|
//! | 1 | 20 | uncompressed size (32 bits), hash |
//! | 2 | 24 | total size, uncompressed size (32 bits each), hash |
//! | 3 | 32 | total size, uncompressed size (64 bits each), hash |
//!
//! The hash is the first 8 bytes of the MD5 of what is inside. The total counts the header; without one, the data ends
//! where its stream does.

use md5::{Digest, Md5};

use super::inflate::{self, Budget, InflateError, Method};
use super::read::{Cut, array, u16_at, u32_at, u64_at};

pub(super) const MAGIC: &[u8] = b"CCOB";

/// What a compressed bundle must say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompressedError {
    /// The data end inside the header.
    #[error(transparent)]
    Cut(#[from] Cut),
    /// A version of later.
    #[error("the version is {value}, must be 1 to 3")]
    Version {
        /// As read.
        value: u16,
    },
    /// A method of later.
    #[error("the compression method is {value}, must be 0 (zlib) or 1 (zstd)")]
    Method {
        /// As read.
        value: u16,
    },
    /// The total is less than the header.
    #[error("the total size is {total}, must be {header}, the size of the header, or more")]
    Total {
        /// As read.
        total: u64,
        /// Bytes of the header.
        header: u64,
    },
    /// The total is more than there is.
    #[error("the total size is {total}, {left} bytes are left: the file is truncated")]
    Truncated {
        /// As read.
        total: u64,
        /// Bytes from the magic to the end.
        left: usize,
    },
    /// The stream does not give what the header says.
    #[error(transparent)]
    Inflate(#[from] InflateError),
    /// More than one stream.
    #[error("{left} bytes are left after the {method} stream: it must end where the total size {total} says")]
    Rest {
        /// How it is compressed.
        method: Method,
        /// Bytes after the stream.
        left: usize,
        /// As read.
        total: u64,
    },
    /// Damaged.
    #[error("the hash is {stored:02x?}, the uncompressed data have {computed:02x?}: the file is damaged")]
    Hash {
        /// As read.
        stored: [u8; 8],
        /// Start of the MD5.
        computed: [u8; 8],
    },
}

pub(super) struct Header {
    pub version: u16,
    pub method: Method,
    bytes: u64,
    total: Option<u64>,
    uncompressed: u64,
    hash: [u8; 8],
}

fn header(bytes: &[u8]) -> Result<Header, CompressedError> {
    let version = u16_at(bytes, "the version", 4)?;
    let method = u16_at(bytes, "the compression method", 6)?;
    const TOTAL: &str = "the total size";
    const SIZE: &str = "the uncompressed size";
    let (total, uncompressed, header_bytes) = match version {
        1 => (None, u64::from(u32_at(bytes, SIZE, 8)?), 20),
        2 => (Some(u64::from(u32_at(bytes, TOTAL, 8)?)), u64::from(u32_at(bytes, SIZE, 12)?), 24),
        3 => (Some(u64_at(bytes, TOTAL, 8)?), u64_at(bytes, SIZE, 16)?, 32),
        value => return Err(CompressedError::Version { value }),
    };
    let hash = array(bytes, "the hash", header_bytes - 8)?;
    let method = match method {
        0 => Method::Zlib,
        1 => Method::Zstd,
        value => return Err(CompressedError::Method { value }),
    };
    match total {
        Some(total) if total < header_bytes => Err(CompressedError::Total { total, header: header_bytes }),
        Some(total) if total > bytes.len() as u64 => Err(CompressedError::Truncated { total, left: bytes.len() }),
        _ => Ok(Header { version, method, bytes: header_bytes, total, uncompressed, hash }),
    }
}

/// Reads a compressed bundle at the start of `bytes`: what is inside, and where it ends.
pub(super) fn parse(bytes: &[u8], budget: &mut Budget) -> Result<(Vec<u8>, Header, usize), CompressedError> {
    let header = header(bytes)?;
    // Both are within the data now.
    let start = header.bytes as usize;
    let end = header.total.map_or(bytes.len(), |total| total as usize);
    let (inside, used) = inflate::inflate(header.method, &bytes[start..end], header.uncompressed, budget)?;
    let left = end - start - used;
    if let Some(total) = header.total.filter(|_| left != 0) {
        return Err(CompressedError::Rest { method: header.method, left, total });
    }
    let computed = array(&Md5::digest(&inside), "the hash", 0)?;
    if computed != header.hash {
        return Err(CompressedError::Hash { stored: header.hash, computed });
    }
    Ok((inside, header, start + used))
}
