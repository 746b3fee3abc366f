//! Small files that would become large ones.

use elf::container::{CompressedError, ContainerError, InflateError, Limits, Method, OffloadBinaryError, open};
use flate2::{Compress, Compression, FlushCompress};

use crate::build::{ccob_of, image, offload_binary};
use crate::memory::peak;

const MIB: u64 = 1 << 20;

/// A zlib stream of `mib` MiB of zeros: one part again and again, each of which stands for itself. There is no end, so
/// only who stops early refuses it for its size.
fn zlib_bomb(mib: usize) -> Vec<u8> {
    let mut encoder = Compress::new(Compression::fast(), true);
    let zeros = vec![0; MIB as usize];
    let mut part = || {
        let mut out = Vec::with_capacity(1 << 16);
        encoder.compress_vec(&zeros, &mut out, FlushCompress::Full).unwrap();
        assert!(out.len() < out.capacity());
        out
    };
    let (first, next) = (part(), part());
    [first, next.repeat(mib - 1)].concat()
}

/// A zstd frame of `mib` MiB of zeros in blocks of one repeated byte (RFC 8878, 3.1.1.2), with a window of 128 KiB.
fn zstd_bomb(mib: usize) -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 7 << 3];
    let block = ((128_u32 << 10 << 3) | (1 << 1)).to_le_bytes();
    frame.extend([block[0], block[1], block[2], 0].repeat(mib * 8));
    frame
}

fn inflate_error(error: ContainerError) -> InflateError {
    match error {
        ContainerError::Compressed(CompressedError::Inflate(error)) => error,
        ContainerError::OffloadBinary(OffloadBinaryError::Inflate(error)) => error,
        other => panic!("{other}"),
    }
}

#[test]
fn a_stream_that_goes_on_is_stopped() {
    for (method, number, bomb) in [(Method::Zlib, 0, zlib_bomb(1024)), (Method::Zstd, 1, zstd_bomb(1024))] {
        assert!(bomb.len() < 8 << 20, "{}", bomb.len());
        for version in 1..=3 {
            let file = ccob_of(version, number, MIB, &[0; 8], &bomb);
            let (result, bytes) = peak(|| open(&file, &Limits::default()));
            assert_eq!(inflate_error(result.unwrap_err()), InflateError::Longer { method, size: MIB });
            assert!(bytes < 4 << 20, "{method}: {bytes} bytes for a limit of 1 MiB");
        }
    }
}

#[test]
fn a_declared_size_beyond_the_limit_costs_nothing() {
    let limits = Limits { max_uncompressed: MIB, ..Limits::default() };
    for (number, bomb) in [(0, zlib_bomb(8)), (1, zstd_bomb(8))] {
        for version in 1..=3 {
            let file = ccob_of(version, number, 8 * MIB, &[0; 8], &bomb);
            let (result, bytes) = peak(|| open(&file, &limits));
            let limit = InflateError::Limit { size: 8 * MIB, used: 0, limit: MIB };
            assert_eq!(inflate_error(result.unwrap_err()), limit);
            assert!(bytes < 4096, "{bytes}");
        }
    }
    let file = ccob_of(3, 1, u64::MAX, &[0; 8], &zstd_bomb(1));
    let limit = InflateError::Limit { size: u64::MAX, used: 0, limit: 1 << 30 };
    assert_eq!(inflate_error(open(&file, &Limits::default()).unwrap_err()), limit);
}

#[test]
fn a_declared_size_is_not_allocated() {
    // 1 GiB is said, and 3 bytes are there.
    let size = 1 << 30;
    let raw_block = [0x28, 0xb5, 0x2f, 0xfd, 0x00, 10 << 3, 3 << 3 | 1, 0, 0, 1, 2, 3];
    let single_segment = [&[0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 3 << 3 | 1, 0, 0][..], &[1, 2, 3]].concat();
    let zlib = crate::build::compress(Method::Zlib, &[1, 2, 3]);
    for (number, stream) in [(0, &zlib[..]), (1, &raw_block), (1, &single_segment)] {
        let file = ccob_of(3, number, size, &[0; 8], stream);
        let (result, bytes) = peak(|| open(&file, &Limits::default()));
        let method = if number == 0 { Method::Zlib } else { Method::Zstd };
        assert_eq!(inflate_error(result.unwrap_err()), InflateError::Shorter { method, size, found: 3 });
        assert!(bytes < 1 << 20, "{bytes}");
    }
}

#[test]
fn a_window_larger_than_the_size_needs_is_refused() {
    // Windows of 16 MiB and, in a single segment, of the frame's own size.
    for (frame, window) in [
        (&[0x28, 0xb5, 0x2f, 0xfd, 0x00, 14 << 3][..], 16 * MIB),
        (&[0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40], 1 << 30),
    ] {
        let (result, bytes) = peak(|| open(&ccob_of(2, 1, 100, &[0; 8], frame), &Limits::default()).map(drop));
        let want = InflateError::Window { window, size: 100, limit: 8 * MIB };
        assert_eq!(inflate_error(result.unwrap_err()), want);
        assert!(bytes < 4096, "{bytes}");
    }
}

#[test]
fn the_limit_is_for_the_whole_file() {
    let inside = crate::build::fat(&["gfx900"]);
    let one = crate::build::ccob(3, Method::Zstd, &inside);
    let file = [one.clone(), one].concat();
    let limits = Limits { max_uncompressed: inside.len() as u64 * 2 - 1, ..Limits::default() };
    let error = open(&file, &limits).unwrap_err().to_string();
    assert!(error.contains(&format!("{} bytes are uncompressed before it", inside.len())), "{error}");
    assert!(open(&file, &Limits { max_uncompressed: inside.len() as u64 * 2, ..limits }).is_ok());
}

#[test]
fn an_offload_binary_is_bounded_as_well() {
    let good = offload_binary(3, &[image("gfx1100", &[0; 100])], Some(Method::Zstd));
    let mut file = good[..40].to_vec();
    let bomb = zstd_bomb(1024);
    file[8..16].copy_from_slice(&(40 + bomb.len() as u64).to_le_bytes());
    file[32..40].copy_from_slice(&(40 + MIB).to_le_bytes());
    file.extend(bomb);
    let (result, bytes) = peak(|| open(&file, &Limits::default()));
    assert_eq!(inflate_error(result.unwrap_err()), InflateError::Longer { method: Method::Zstd, size: MIB });
    assert!(bytes < 4 << 20, "{bytes}");
}
