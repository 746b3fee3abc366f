//! SVM: attributes of ranges of the process' memory (`kfd_svm.c`).

use super::tools::NO_GPU;
use crate::case::cases;
use crate::gpu::{SHARED, VRAM};
use crate::session::{Session, Stop};
use kfd::Errno;
use kfd::uapi::*;

/// SVM's argument with attributes behind it.
fn svm(s: &Session, op: u32, start_addr: u64, size: u64, attributes: &mut [(u32, u32)]) -> Result<(), Errno> {
    let args = SvmArgs { start_addr, size, op, nattr: attributes.len() as u32 };
    let mut bytes = args.as_bytes().to_vec();
    for (kind, value) in attributes.iter() {
        bytes.extend([kind.to_ne_bytes(), value.to_ne_bytes()].concat());
    }
    let result = s.raw(s.kfd, Direction::ReadWrite.request(0x20, bytes.len()), &mut bytes);
    for (attribute, bytes) in attributes.iter_mut().zip(bytes[size_of::<SvmArgs>()..].chunks_exact(8)) {
        *attribute = (u32::from_prefix_or_zero(bytes), u32::from_prefix_or_zero(&bytes[4..]));
    }
    result
}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
const SET: u32 = SVM_OP_SET_ATTR;
const GET: u32 = SVM_OP_GET_ATTR;

cases! { "KFDSVMRangeTest", s:
    safe kfd arguments "start and size are whole pages and not 0: EINVAL, before anything else is looked at" {
        let page = s.anonymous(4096, RW)?;
        for op in [SET, GET, 2, u32::MAX] {
            for (what, start, size) in [
                ("start 1", page + 1, 4096),
                ("size 1", page, 1),
                ("start 0", 0, 4096),
                ("size 0", page, 0),
                ("start and size unaligned", page + 8, 8),
            ] {
                let result = svm(s, op, start, size, &mut []);
                s.expect_svm(format!("op {op}: {what}"), result, Err(Errno::EINVAL));
            }
        }
        let result = svm(s, 2, page, 4096, &mut []);
        s.expect_svm("op 2", result, Err(Errno::EINVAL));
    }

    safe kfd attribute_count "the argument's size covers the attributes it announces: EINVAL" {
        let page = s.anonymous(4096, RW)?;
        for (nattr, size, want) in [
            (0, 24, Ok(())),
            (1, 24, Err(Errno::EINVAL)),
            (1, 31, Err(Errno::EINVAL)),
            (2, 32, Err(Errno::EINVAL)),
            (u32::MAX, 4096, Err(Errno::EINVAL)),
            (0x1fff_ffff, 24, Err(Errno::EINVAL)),
        ] {
            let args = SvmArgs { start_addr: page, size: 4096, op: GET, nattr };
            let mut bytes = args.as_bytes().to_vec();
            bytes.resize(size, 0);
            let result = s.raw(s.kfd, Direction::ReadWrite.request(0x20, size), &mut bytes);
            let what = format!("{nattr} attributes in {size} bytes");
            // The size is checked first, whatever the kernel is built with.
            if want.is_ok() {
                s.expect_svm(what, result, want);
            } else {
                s.expect(what, result, want);
            }
        }
        let args = SvmArgs { start_addr: page, size: 4096, op: GET, nattr: 0 };
        let result = s.raw(s.kfd, Direction::ReadWrite.request(0x20, 16), &mut args.as_bytes().to_vec()[..]);
        s.err("an argument of 16 bytes", result, Errno::EINVAL);
        let args = SvmArgs { start_addr: page, size: 4096, op: GET, nattr: 0 };
        let mut bytes = args.as_bytes().to_vec();
        bytes.resize(64, 0xff);
        let result = s.raw(s.kfd, Direction::ReadWrite.request(0x20, 64), &mut bytes);
        s.expect_svm("bytes behind the attributes do not matter", result, Ok(()));
    }

    safe kfd attributes "unknown attributes and GPUs are EINVAL, wherever they stand" {
        let page = s.anonymous(4096, RW)?;
        for op in [SET, GET] {
            for (what, attribute) in [
                ("type 8", (8, 0)),
                ("type 0xffffffff", (u32::MAX, 0)),
            ] {
                let result = svm(s, op, page, 4096, &mut [(SVM_ATTR_SET_FLAGS, 0), attribute]);
                s.expect_svm(format!("op {op}: {what}"), result, Err(Errno::EINVAL));
            }
        }
        for (what, attribute) in [
            ("PREFERRED_LOC of no GPU", (SVM_ATTR_PREFERRED_LOC, NO_GPU)),
            ("PREFETCH_LOC undefined", (SVM_ATTR_PREFETCH_LOC, SVM_LOCATION_UNDEFINED)),
            ("ACCESS of no GPU", (SVM_ATTR_ACCESS, NO_GPU)),
            ("ACCESS of system memory", (SVM_ATTR_ACCESS, 0)),
            ("ACCESS_IN_PLACE of no GPU", (SVM_ATTR_ACCESS_IN_PLACE, NO_GPU)),
            ("NO_ACCESS of no GPU", (SVM_ATTR_NO_ACCESS, NO_GPU)),
        ] {
            let result = svm(s, SET, page, 4096, &mut [attribute]);
            s.expect_svm(format!("set {what}"), result, Err(Errno::EINVAL));
        }
        let result = svm(s, GET, page, 4096, &mut [(SVM_ATTR_ACCESS, NO_GPU)]);
        s.expect_svm("get ACCESS of no GPU", result, Err(Errno::EINVAL));
        for kind in [SVM_ATTR_ACCESS_IN_PLACE, SVM_ATTR_NO_ACCESS] {
            let result = svm(s, GET, page, 4096, &mut [(kind, NO_GPU)]);
            s.expect_svm(format!("get type {kind}, which is only an answer"), result, Err(Errno::EINVAL));
        }
    }

    safe kfd not_acquired "setting attributes needs a GPU that was acquired: EINVAL, before the memory is looked at" {
        let page = s.anonymous(4096, RW)?;
        let result = svm(s, SET, page, 4096, &mut []);
        s.expect_svm("mapped memory", result, Err(Errno::EINVAL));
        s.munmap(page, 4096)?;
        let result = svm(s, SET, page, 4096, &mut []);
        s.expect_svm("memory that is not mapped", result, Err(Errno::EINVAL));
        let result = svm(s, SET, 0xffff_ffff_ffff_f000, 4096, &mut []);
        s.expect_svm("a range that ends at 2^64", result, Err(Errno::EINVAL));
    }

    safe kfd get_memory "asking needs no GPU, but all of the range must be ordinary memory: EFAULT" {
        // Free addresses above: the kernel hands out the highest, so that nothing new comes into the hole made below.
        let page = s.anonymous(64 << 20, RW)?;
        s.munmap(page + 3 * 4096, (64 << 20) - 3 * 4096)?;
        let result = svm(s, GET, page, 3 * 4096, &mut []);
        s.expect_svm("three pages", result, Ok(()));
        s.munmap(page + 4096, 4096)?;
        let result = svm(s, GET, page, 3 * 4096, &mut []);
        s.expect_svm("the second is not mapped", result, Err(Errno::EFAULT));
        let result = svm(s, GET, page + 4096, 4096, &mut []);
        s.expect_svm("it alone", result, Err(Errno::EFAULT));
        let nowhere = s.untouchable()?;
        let result = svm(s, GET, nowhere, 4096, &mut []);
        s.expect_svm("memory without rights is memory", result, Ok(()));
        s.signal_event(false)?;
        let events = s.mmap(s.kfd, 32768, 2 << 62)?;
        let result = svm(s, GET, events, 32768, &mut []);
        s.expect_svm("a device's mapping", result, Err(Errno::EFAULT));
        let result = svm(s, GET, 0xffff_8000_0000_0000, 4096, &mut []);
        s.expect_svm("the kernel's addresses", result, Err(Errno::EFAULT));
        for (what, start, size) in [
            ("a range beyond 2^64", 0xffff_ffff_ffff_f000u64, 8192u64),
            ("a range that ends at 2^64", 0xffff_ffff_ffff_f000, 4096),
            ("all", 4096, 0xffff_ffff_ffff_f000),
        ] {
            let result = svm(s, GET, start, size, &mut []);
            s.expect_svm(what, result, Err(Errno::EOVERFLOW));
        }
    }

    safe no_gpu defaults "of memory that nobody has set attributes of, the defaults are told" {
        let page = s.anonymous(4096, RW)?;
        let mut attributes = [
            (SVM_ATTR_PREFERRED_LOC, 1),
            (SVM_ATTR_PREFETCH_LOC, 1),
            (SVM_ATTR_SET_FLAGS, 0),
            (SVM_ATTR_CLR_FLAGS, 0),
            (SVM_ATTR_GRANULARITY, 0),
        ];
        let result = svm(s, GET, page, 4096, &mut attributes);
        s.expect_svm("get all", result, Ok(()));
        if !s.has_svm() {
            return Ok(());
        }
        for (what, (kind, value), want) in [
            ("PREFERRED_LOC", attributes[0], (SVM_ATTR_PREFERRED_LOC, SVM_LOCATION_UNDEFINED)),
            ("PREFETCH_LOC", attributes[1], (SVM_ATTR_PREFETCH_LOC, SVM_LOCATION_UNDEFINED)),
            ("SET_FLAGS", attributes[2], (SVM_ATTR_SET_FLAGS, SVM_FLAG_HOST_ACCESS | SVM_FLAG_COHERENT)),
            ("CLR_FLAGS", attributes[3], (SVM_ATTR_CLR_FLAGS, !(SVM_FLAG_HOST_ACCESS | SVM_FLAG_COHERENT))),
            ("GRANULARITY", attributes[4], (SVM_ATTR_GRANULARITY, 9)),
        ] {
            s.value(what, format!("{kind}: {value:#x}"), format!("{}: {:#x}", want.0, want.1));
        }
    }

    safe gpu answers_in_front "what stands in front of an unknown GPU is answered, also when the request fails" {
        if !s.has_svm() {
            return Err(Stop::Skip("the kernel is built without HSA_AMD_SVM".to_string()));
        }
        s.gpu()?;
        let page = s.anonymous(4096, RW)?;
        let mut got = [(SVM_ATTR_GRANULARITY, 0), (SVM_ATTR_ACCESS, NO_GPU), (SVM_ATTR_SET_FLAGS, 0)];
        let result = svm(s, GET, page, 4096, &mut got);
        s.err("get", result, Errno::EINVAL);
        s.value("in front of it", got[0].1, 9);
        s.value("behind it", got[2].1, 0);
    }

    safe gpu set_and_get "what was set is told, and access by GPU" {
        if !s.has_svm() {
            return Err(Stop::Skip("the kernel is built without HSA_AMD_SVM".to_string()));
        }
        let gpu = s.gpu()?;
        let pages = s.anonymous(4 * 4096, RW)?;
        // SAFETY: the case's own memory, touched so that it is there.
        unsafe { (pages as *mut u8).write_bytes(1, 4 * 4096) };
        let result = svm(s, SET, pages, 8192, &mut [
            (SVM_ATTR_ACCESS, gpu.id),
            (SVM_ATTR_SET_FLAGS, SVM_FLAG_GPU_EXEC),
            (SVM_ATTR_GRANULARITY, 12),
            (SVM_ATTR_PREFERRED_LOC, SVM_LOCATION_SYSMEM),
        ]);
        s.ok("set", result);
        let ask = [
            (SVM_ATTR_ACCESS, gpu.id),
            (SVM_ATTR_SET_FLAGS, 0),
            (SVM_ATTR_GRANULARITY, 0),
            (SVM_ATTR_PREFERRED_LOC, 0),
        ];
        let mut got = ask;
        let result = svm(s, GET, pages, 8192, &mut got);
        s.ok("get", result);
        s.value("ACCESS", got[0].0, SVM_ATTR_ACCESS);
        s.value("flags", format!("{:#x}", got[1].1), "0x13");
        s.value("granularity", got[2].1, 12);
        s.value("preferred location", got[3].1, 0);
        let result = svm(s, SET, pages, 4096, &mut [(SVM_ATTR_NO_ACCESS, gpu.id)]);
        s.ok("take access from one page", result);
        let mut got = ask;
        let result = svm(s, GET, pages, 8192, &mut got);
        s.ok("get both pages", result);
        s.value("ACCESS of both", got[0].0, SVM_ATTR_NO_ACCESS);
        let result = gpu.alloc(pages, 4096, SHARED).map(drop);
        s.err("ALLOC at such an address", result, Errno::EADDRINUSE);
        let result = gpu.alloc(pages + 4 * 4096, 4096, SHARED).map(drop);
        s.ok("ALLOC behind it", result);
        let result = svm(s, SET, 4096, 4096, &mut []);
        s.err("memory that is not mapped", result, Errno::EFAULT);
        let buffer = gpu.memory(4096, SHARED)?;
        let result = svm(s, SET, buffer.va, 4096, &mut []);
        s.err("a buffer's mapping", result, Errno::EFAULT);
        // A reservation is ordinary memory, but the GPU has something there.
        let private = gpu.memory(4096, VRAM)?;
        let result = svm(s, SET, private.va, 4096, &mut []);
        s.err("an address where a buffer is mapped on the GPU", result, Errno::EADDRINUSE);
    }
}
