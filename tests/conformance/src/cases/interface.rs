//! Requests: numbers, sizes, directions, what is copied in and back (`kfd_ioctl` in `kfd_chardev.c`).

use super::tools::KERNEL_ADDRESS;
use crate::case::cases;
use kfd::Errno;
use kfd::uapi::*;

/// What each request answers to an argument of zeros.
fn of_zeros(nr: u8) -> Result<(), Errno> {
    match nr {
        0x01 | 0x05 | 0x06 | 0x08 | 0x0c | 0x14 | 0x21 | 0x25 => Ok(()),
        // UPDATE_QUEUE and GET_QUEUE_WAVE_STATE of an unknown queue.
        0x07 | 0x1b => Err(Errno::EFAULT),
        0x0d..=0x10 => Err(Errno::EPERM),
        // DBG_TRAP of process 0.
        0x26 => Err(Errno::ESRCH),
        0x02..=0x24 => Err(Errno::EINVAL),
        _ => Err(Errno::ENOTTY),
    }
}

/// The same request with another size field.
fn sized(request: u32, size: u32) -> u32 {
    request & !(0x3fff << 16) | size << 16
}

cases! { "Interface", s:
    safe kfd version "GET_VERSION tells major version 1; minor versions have grown since 11" {
        let mut args = GetVersionArgs::default();
        let result = s.call(&mut args);
        s.ok("GET_VERSION", result);
        s.value("major version", args.major_version, 1);
        s.value("minor version is 11 or later", args.minor_version >= 11, true);
    }

    safe kfd zeros "each request answers zeros with its own error; 0 and 0x27 and on are ENOTTY" {
        // CRIU_OP depends on the caller's capabilities and has a group of its own.
        for nr in (0..=0x30).filter(|nr| *nr != 0x22) {
            let known = IoctlInfo::of(nr).filter(|info| info.since <= MINOR_VERSION);
            let size = known.map_or(8, |info| IoctlInfo::size_of_request(info.request));
            let name = known.map_or("none", |info| info.name);
            let result = s.zeros(nr as u8, size);
            let what = format!("{nr:#04x} {name}");
            if matches!(nr, 0x20 | 0x21) {
                s.expect_svm(what, result, of_zeros(nr as u8));
            } else {
                s.expect(what, result, of_zeros(nr as u8));
            }
        }
    }

    safe kfd unknown_numbers "numbers above the table are ENOTTY, DKMS' private ones as well" {
        for nr in [0x31u8, 0x40, 0x80, 0x81, 0x83, 0x84, 0x85, 0x86, 0xff] {
            let result = s.zeros(nr, 32);
            s.err(format!("{nr:#04x}"), result, Errno::ENOTTY);
        }
    }

    safe kfd direction_is_ignored "direction and magic of the request are not looked at, only number and size" {
        for (what, direction) in
            [("_IO", Direction::None), ("_IOW", Direction::Write), ("_IOWR", Direction::ReadWrite)]
        {
            let mut bytes = [0xee; 8];
            let result = s.raw(s.kfd, direction.request(0x01, 8), &mut bytes);
            s.ok(format!("GET_VERSION as {what}"), result);
            s.value("major version", bytes[0], 1);
        }
        let mut bytes = [0xee; 8];
        let result = s.raw(s.kfd, 0x8008_7801, &mut bytes);
        s.ok("GET_VERSION with magic 'x'", result);
        s.value("major version", bytes[0], 1);
    }

    safe kfd shorter_arguments "of a shorter argument the rest is taken as zero, and its own bytes are copied back" {
        let mut bytes = [0xee; 8];
        let result = s.raw(s.kfd, sized(GetVersionArgs::REQUEST, 4), &mut bytes);
        s.ok("GET_VERSION with 4 bytes", result);
        s.value("the bytes", format!("{bytes:x?}"), "[1, 0, 0, 0, ee, ee, ee, ee]");
        let mut bytes = [0xee; 8];
        let result = s.raw(s.kfd, sized(GetVersionArgs::REQUEST, 0), &mut bytes);
        s.ok("GET_VERSION with no bytes", result);
        s.value("the bytes", format!("{bytes:x?}"), "[ee, ee, ee, ee, ee, ee, ee, ee]");

        // event_page_offset and event_trigger_data; the type is beyond and so 0.
        let mut bytes = [0; 16];
        let result = s.raw(s.kfd, sized(CreateEventArgs::REQUEST, 12), &mut bytes);
        s.ok("CREATE_EVENT with 12 bytes", result);
        s.value("the bytes", format!("{bytes:x?}"), "[0, 0, 0, 0, 0, 0, 0, 80, 1, 0, 0, 0, 0, 0, 0, 0]");

        // Interface 1.16's CREATE_QUEUE has 88 bytes.
        let mut bytes = [0; 96];
        bytes[88..].fill(0xee);
        let result = s.raw(s.kfd, sized(CreateQueueArgs::REQUEST, 88), &mut bytes);
        s.err("CREATE_QUEUE of interface 1.16", result, Errno::EINVAL);
        s.value("bytes behind", format!("{:x?}", &bytes[88..92]), "[ee, ee, ee, ee]");
    }

    safe kfd longer_arguments "of a longer argument the rest is not looked at, and copied back as it was" {
        let mut bytes = [0xee; 32];
        let result = s.raw(s.kfd, sized(GetVersionArgs::REQUEST, 16), &mut bytes);
        s.ok("GET_VERSION with 16 bytes", result);
        s.value("bytes 8 to 19", format!("{:x?}", &bytes[8..20]), "[0, 0, 0, 0, 0, 0, 0, 0, ee, ee, ee, ee]");
        let mut bytes = [0; 512];
        bytes[32..].fill(0xab);
        let result = s.raw(s.kfd, sized(CreateEventArgs::REQUEST, 512), &mut bytes);
        s.ok("CREATE_EVENT with 512 bytes", result);
        s.value("event_id", bytes[24], 1);
        s.value("bytes behind are left", bytes[32..].iter().all(|byte| *byte == 0xab), true);
        let mut bytes = vec![0; 0x3fff];
        let result = s.raw(s.kfd, sized(CreateEventArgs::REQUEST, 0x3fff), &mut bytes);
        s.ok("CREATE_EVENT with 16383 bytes", result);
        s.value("event_id", bytes[24], 2);
    }

    safe kfd copied_back_on_failure "what a handler has written is copied back also when it fails" {
        let mut args = CreateQueueArgs { ring_size: 64, ..Default::default() };
        let result = s.call(&mut args);
        s.err("CREATE_QUEUE with ring_size 64 and no GPU", result, Errno::EINVAL);
        s.value("ring_size", args.ring_size, 1024);

        let (result, wait_result) = s.wait(&mut [EventData::new(99)], false, 0);
        s.err("WAIT_EVENTS for an unknown event", result, Errno::EINVAL);
        s.value("wait_result", wait_result, WAIT_RESULT_FAIL);
    }

    safe kfd written_requests_are_left "the argument of a request that is only read stays as it is" {
        let id = s.create_event(EVENT_SIGNAL, false)?.event_id;
        let mut args = SetEventArgs { event_id: id, pad: 0xabcd };
        let result = s.call(&mut args);
        s.ok("SET_EVENT", result);
        s.value("pad", format!("{:#x}", args.pad), "0xabcd");
    }

    safe kfd read_request_starts_from_zero "a request that is only written starts from zeros, not from the caller's bytes" {
        let mut bytes = [0xee; 400];
        let result = s.raw(s.kfd, GetProcessAperturesArgs::REQUEST, &mut bytes);
        s.ok("GET_PROCESS_APERTURES", result);
        let unused = 56 * s.gpu_nodes.min(7);
        s.value("unused records are 0", bytes[unused..392].iter().all(|byte| *byte == 0), true);
        s.value("num_of_nodes", bytes[392], s.gpu_nodes.min(7));
    }

    safe kfd clock_counters "GET_CLOCK_COUNTERS never fails; an unknown GPU's counter is 0" {
        let mut args = GetClockCountersArgs { gpu_id: super::tools::NO_GPU, ..Default::default() };
        let result = s.call(&mut args);
        s.ok("GET_CLOCK_COUNTERS", result);
        s.value("gpu_clock_counter", args.gpu_clock_counter, 0);
        s.value("system_clock_freq", args.system_clock_freq, 1_000_000_000u64);
        s.value("host clocks run", args.cpu_clock_counter > 0 && args.system_clock_counter > 0, true);
    }

    safe kfd apertures "GET_PROCESS_APERTURES_NEW with 0 tells the count, and more than the machine's nodes is EINVAL" {
        let mut args = GetProcessAperturesNewArgs::default();
        let result = s.call(&mut args);
        s.ok("num_of_nodes 0", result);
        s.value("num_of_nodes", args.num_of_nodes, s.gpu_nodes);
        let nodes = s.driver.list(&format!("{}/nodes", kfd::topology::TOPOLOGY))?.len() as u32;
        let mut args = GetProcessAperturesNewArgs { num_of_nodes: nodes + 1, ..Default::default() };
        let result = s.call(&mut args);
        s.err("one more than there are nodes", result, Errno::EINVAL);
        s.value("num_of_nodes is left", args.num_of_nodes, nodes + 1);
        let mut records = vec![ProcessDeviceApertures::default(); nodes as usize];
        let array = records.as_mut_ptr() as u64;
        let mut args = GetProcessAperturesNewArgs {
            kfd_process_device_apertures_ptr: array,
            num_of_nodes: nodes,
            ..Default::default()
        };
        let result = s.call(&mut args);
        s.ok("as many as there are nodes", result);
        s.value("num_of_nodes", args.num_of_nodes, s.gpu_nodes);
    }

    safe gpu apertures_to_nowhere "the records go to the caller's array, EFAULT when it cannot be written" {
        for array in [0, s.untouchable()?, KERNEL_ADDRESS] {
            let mut args = GetProcessAperturesNewArgs {
                kfd_process_device_apertures_ptr: array,
                num_of_nodes: 1,
                ..Default::default()
            };
            let result = s.call(&mut args);
            let kind = if array == 0 { "null" } else if array == KERNEL_ADDRESS { "kernel" } else { "untouchable" };
            s.err(format!("{kind} array"), result, Errno::EFAULT);
        }
    }

    safe gpu tile_config "tables of tile modes are written one by one: EFAULT with a count of 0, the rest as it was" {
        let gpu = s.gpu()?;
        let room = [0u32; 64];
        let (good, bad) = (room.as_ptr() as u64, s.untouchable()?);
        for (what, tiles, macros, want, counts) in [
            ("both", good, good, Ok(()), (32, 16)),
            ("the first to nowhere", bad, good, Err(Errno::EFAULT), (0, 60)),
            ("the second to nowhere", good, bad, Err(Errno::EFAULT), (32, 0)),
        ] {
            let mut args = GetTileConfigArgs {
                tile_config_ptr: tiles,
                macro_tile_config_ptr: macros,
                num_tile_configs: 60,
                num_macro_tile_configs: 60,
                gpu_id: gpu.id,
                ..Default::default()
            };
            let result = s.call(&mut args);
            s.expect(what, result, want);
            s.value("counts", format!("{:?}", (args.num_tile_configs, args.num_macro_tile_configs)), format!("{counts:?}"));
        }
        let mut args = GetTileConfigArgs { tile_config_ptr: bad, gpu_id: gpu.id, ..Default::default() };
        let result = s.call(&mut args);
        s.ok("no entries, to nowhere", result);
    }

    safe kfd withdrawn_debugger "DBG_REGISTER, UNREGISTER, ADDRESS_WATCH and WAVE_CONTROL are EPERM for everyone" {
        for nr in 0x0d..=0x10u8 {
            let size = if nr < 0x0f { 8 } else { 16 };
            let mut bytes = vec![0xff; size];
            let result = s.raw(s.kfd, Direction::Write.request(nr, size), &mut bytes);
            s.err(format!("{nr:#04x}"), result, Errno::EPERM);
        }
    }

    safe kfd unknown_gpu "a GPU the process does not have is EINVAL in every request that names one" {
        let gpu_id = super::tools::NO_GPU;
        let result = s.call(&mut SetMemoryPolicyArgs { gpu_id, ..Default::default() });
        s.err("SET_MEMORY_POLICY", result, Errno::EINVAL);
        let result = s.call(&mut SetScratchBackingVaArgs { gpu_id, ..Default::default() });
        s.err("SET_SCRATCH_BACKING_VA", result, Errno::EINVAL);
        let result = s.call(&mut GetTileConfigArgs { gpu_id, ..Default::default() });
        s.err("GET_TILE_CONFIG", result, Errno::EINVAL);
        let result = s.call(&mut SetTrapHandlerArgs { gpu_id, ..Default::default() });
        s.err("SET_TRAP_HANDLER", result, Errno::EINVAL);
        let result = s.call(&mut GetAvailableMemoryArgs { gpu_id, available: 5, pad: 0 });
        s.err("AVAILABLE_MEMORY", result, Errno::EINVAL);
        let result = s.call(&mut AcquireVmArgs { gpu_id, drm_fd: s.kfd as u32 });
        s.err("ACQUIRE_VM", result, Errno::EINVAL);
        let result = s.call(&mut AcquireVmArgs { gpu_id, drm_fd: super::tools::NO_FD });
        s.err("ACQUIRE_VM with a closed descriptor", result, Errno::EINVAL);
        let mut args = AllocMemoryOfGpuArgs { size: 4096, flags: ALLOC_MEM_FLAGS_GTT, gpu_id, ..Default::default() };
        let result = s.call(&mut args);
        s.err("ALLOC_MEMORY_OF_GPU", result, Errno::EINVAL);
        let result = s.call(&mut ImportDmabufArgs { gpu_id, ..Default::default() });
        s.err("IMPORT_DMABUF", result, Errno::EINVAL);
        let result = s.call(&mut SmiEventsArgs { gpuid: gpu_id, anon_fd: 0 });
        s.err("SMI_EVENTS", result, Errno::EINVAL);
    }

    safe kfd memory_policies "SET_MEMORY_POLICY takes 0 and 1 as policies" {
        for (default_policy, alternate_policy) in [(2, 0), (0, 2), (0, 0)] {
            let mut args = SetMemoryPolicyArgs { default_policy, alternate_policy, ..Default::default() };
            let result = s.call(&mut args);
            s.err(format!("policies {default_policy}, {alternate_policy}"), result, Errno::EINVAL);
        }
    }
}
