//! zlib and zstd streams of a size that is known and bounded.

use std::error::Error;
use std::{fmt, io};

use flate2::{Decompress, FlushDecompress, Status};
use ruzstd::decoding::errors::FrameDecoderError;
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// The largest window a zstd encoder picks by itself that does not know the size of its input.
const ZSTD_WINDOW: u64 = 8 << 20;
/// Bytes that are uncompressed at a time.
const CHUNK: usize = 1 << 16;

/// How a container is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A zlib stream (RFC 1950).
    Zlib,
    /// A zstd frame (RFC 8878).
    Zstd,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Zlib => "zlib",
            Method::Zstd => "zstd",
        })
    }
}

/// Why a stream does not uncompress to what its container says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InflateError {
    /// More than allowed.
    #[error(
        "the uncompressed size is {size}, {used} bytes are uncompressed before it: the limit for a file is {limit}"
    )]
    Limit {
        /// As declared.
        size: u64,
        /// Bytes of other containers.
        used: u64,
        /// [`Limits::max_uncompressed`](super::Limits::max_uncompressed).
        limit: u64,
    },
    /// Another method.
    #[error(
        "the data start with {bytes:02x?}, must be a {method} stream ({})",
        match method {
            Method::Zlib => "mostly [78, ..]",
            Method::Zstd => "[28, b5, 2f, fd]",
        }
    )]
    Magic {
        /// How it should be compressed.
        method: Method,
        /// At most 4 bytes.
        bytes: Vec<u8>,
    },
    /// Ends too early.
    #[error("the {method} stream is not complete after {len} bytes: the file is truncated")]
    Truncated {
        /// How it is compressed.
        method: Method,
        /// Bytes of the stream.
        len: usize,
    },
    /// Breaks the rules of the format.
    #[error("the {method} stream is damaged: {cause}")]
    Damaged {
        /// How it is compressed.
        method: Method,
        /// What the decoder says.
        cause: String,
    },
    /// A zstd frame that says another size.
    #[error("the uncompressed size is {size}, the zstd frame says {frame}")]
    FrameSize {
        /// As declared.
        size: u64,
        /// From the frame header.
        frame: u64,
    },
    /// A zstd frame with a window that its size does not need.
    #[error("the zstd frame has a window of {window} bytes, the limit for the uncompressed size {size} is {limit}")]
    Window {
        /// From the frame header.
        window: u64,
        /// As declared.
        size: u64,
        /// Bytes.
        limit: u64,
    },
    /// Goes on.
    #[error("the uncompressed size is {size}, the {method} stream has more")]
    Longer {
        /// How it is compressed.
        method: Method,
        /// As declared.
        size: u64,
    },
    /// Ends early.
    #[error("the uncompressed size is {size}, the {method} stream has {found}")]
    Shorter {
        /// How it is compressed.
        method: Method,
        /// As declared.
        size: u64,
        /// Bytes there are.
        found: u64,
    },
}

/// Bytes that may be uncompressed in all.
pub(crate) struct Budget {
    pub limit: u64,
    pub used: u64,
}

impl Budget {
    fn charge(&mut self, size: u64) -> Result<(), InflateError> {
        let Budget { limit, used } = *self;
        match used.checked_add(size).filter(|&sum| sum <= limit) {
            Some(sum) => self.used = sum,
            None => return Err(InflateError::Limit { size, used, limit }),
        }
        Ok(())
    }
}

/// Uncompresses the stream at the start of `input` to exactly `size` bytes: those, and how many bytes the stream has.
/// What is allocated grows with what the stream really holds.
pub(crate) fn inflate(
    method: Method,
    input: &[u8],
    size: u64,
    budget: &mut Budget,
) -> Result<(Vec<u8>, usize), InflateError> {
    budget.charge(size)?;
    let (output, used) = match method {
        Method::Zlib => zlib(input, size),
        Method::Zstd => zstd(input, size),
    }?;
    if output.len() as u64 != size {
        return Err(InflateError::Shorter { method, size, found: output.len() as u64 });
    }
    Ok((output, used))
}

/// The method of a stream that does not say: zstd has a magic number.
pub(super) fn detect(input: &[u8]) -> Method {
    if input.starts_with(&ZSTD_MAGIC) { Method::Zstd } else { Method::Zlib }
}

fn magic(method: Method, input: &[u8]) -> InflateError {
    InflateError::Magic { method, bytes: input.iter().copied().take(4).collect() }
}

fn zlib(input: &[u8], size: u64) -> Result<(Vec<u8>, usize), InflateError> {
    let method = Method::Zlib;
    // CMF and FLG: deflate, and a multiple of 31 (RFC 1950, 2.2).
    match input {
        [] | [_] => return Err(InflateError::Truncated { method, len: input.len() }),
        [cmf, flg, ..] if cmf & 15 != 8 || u16::from_be_bytes([*cmf, *flg]) % 31 != 0 => {
            return Err(magic(method, input));
        }
        _ => {}
    }
    let mut decoder = Decompress::new(true);
    let mut output = vec![];
    let mut chunk = vec![0; CHUNK];
    loop {
        let (before_in, before_out) = (decoder.total_in(), decoder.total_out());
        let rest = &input[before_in as usize..];
        let status = decoder
            .decompress(rest, &mut chunk, FlushDecompress::None)
            .map_err(|error| InflateError::Damaged { method, cause: error.to_string() })?;
        let new = (decoder.total_out() - before_out) as usize;
        if decoder.total_out() > size {
            return Err(InflateError::Longer { method, size });
        }
        output.extend_from_slice(&chunk[..new]);
        if status == Status::StreamEnd {
            return Ok((output, decoder.total_in() as usize));
        }
        if new == 0 && decoder.total_in() == before_in {
            return Err(InflateError::Truncated { method, len: input.len() });
        }
    }
}

fn zstd(input: &[u8], size: u64) -> Result<(Vec<u8>, usize), InflateError> {
    let method = Method::Zstd;
    if input.len() < ZSTD_MAGIC.len() && ZSTD_MAGIC.starts_with(input) {
        return Err(InflateError::Truncated { method, len: input.len() });
    }
    if !input.starts_with(&ZSTD_MAGIC) {
        return Err(magic(method, input));
    }
    // The decoder keeps a window of output, so the window is what bounds its memory.
    let limit = size.checked_next_power_of_two().unwrap_or(u64::MAX).max(ZSTD_WINDOW);
    let damaged = |error: FrameDecoderError| match error {
        FrameDecoderError::WindowSizeTooBig { requested: window, .. } => InflateError::Window { window, size, limit },
        error if is_end(&error) => InflateError::Truncated { method, len: input.len() },
        error => InflateError::Damaged { method, cause: one_line(&error.to_string()) },
    };
    let mut rest = input;
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(limit);
    decoder.init(&mut rest).map_err(damaged)?;
    // 0 is also what it says when the frame does not tell.
    let frame = decoder.content_size();
    if frame != 0 && frame != size {
        return Err(InflateError::FrameSize { size, frame });
    }
    let mut output = vec![];
    while !decoder.is_finished() {
        decoder.decode_blocks(&mut rest, BlockDecodingStrategy::UptoBlocks(1)).map_err(damaged)?;
        if (output.len() + decoder.can_collect()) as u64 > size {
            return Err(InflateError::Longer { method, size });
        }
        decoder
            .collect_to_writer(&mut output)
            .map_err(|error| InflateError::Damaged { method, cause: one_line(&error.to_string()) })?;
    }
    let checksum = decoder.get_checksum_from_data();
    if checksum.is_some() && checksum != decoder.get_calculated_checksum() {
        return Err(InflateError::Damaged { method, cause: "its checksum does not fit".to_owned() });
    }
    Ok((output, input.len() - rest.len()))
}

/// Whether the decoder wanted more input than there is.
fn is_end(error: &(dyn Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |&error| error.source());
    causes.any(|error| error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::UnexpectedEof))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
