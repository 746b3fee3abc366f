use super::*;
use crate::errno::Errno;
use crate::event::{EventKind, Events};
use crate::testing::{Script, edit, steps};
use crate::types::GpuId;

const PROPERTIES: &str = "/sys/class/kfd/kfd/topology/nodes/1/properties";

/// The fixture's GPU as another architecture.
fn machine(version: u32, xccs: u32) -> Script {
    let lines = format!(
        "simd_count {}\nsimd_per_cu 4\nmax_waves_per_simd 8\narray_count {}\nsimd_arrays_per_engine 1\nnum_xcc {xccs}\n\
         gfx_target_version {version}\ndrm_render_minor 128\nlds_size_in_kb 64\n",
        152 * xccs,
        4 * xccs
    );
    Script::machine().file(PROPERTIES, &lines)
}

#[test]
fn a_life_in_order() {
    let (device, collector) = Script::machine().device();
    drop(Queue::create(&device, &QueueConfig::default()).unwrap());
    drop(device);
    insta::assert_snapshot!(steps(&collector, &["open", "mmap", "munmap", "close"]).join("\n"), @"
    open /dev/kfd
    open /dev/dri/renderD128
    mmap address range for buffers
    mmap ring
    mmap amd_queue_t
    mmap context save area
    mmap doorbells
    munmap 73728
    munmap 12288
    munmap 12288
    munmap 48246784
    munmap 1025396736
    munmap 8192
    close     fd 101
    close     fd 100
    ");
    let ioctls = steps(&collector, &["GET", "ACQUIRE", "ALLOC", "MAP", "CREATE", "DESTROY", "UNMAP", "FREE"]);
    insta::assert_snapshot!(ioctls.join("\n"), @"
    GET_VERSION
    ACQUIRE_VM
    GET_PROCESS_APERTURES_NEW
    ALLOC_MEMORY_OF_GPU
    MAP_MEMORY_TO_GPU
    ALLOC_MEMORY_OF_GPU
    MAP_MEMORY_TO_GPU
    ALLOC_MEMORY_OF_GPU
    MAP_MEMORY_TO_GPU
    ALLOC_MEMORY_OF_GPU
    MAP_MEMORY_TO_GPU
    CREATE_QUEUE
    DESTROY_QUEUE
    UNMAP_MEMORY_FROM_GPU
    FREE_MEMORY_OF_GPU
    UNMAP_MEMORY_FROM_GPU
    FREE_MEMORY_OF_GPU
    UNMAP_MEMORY_FROM_GPU
    FREE_MEMORY_OF_GPU
    UNMAP_MEMORY_FROM_GPU
    FREE_MEMORY_OF_GPU
    ");
    let opens_to_ready = ioctls.iter().position(|name| name == "CREATE_QUEUE").unwrap() + 1;
    assert_eq!(opens_to_ready, 12);
}

#[test]
fn the_amd_queue_is_complete_before_create_queue() {
    let (device, _) = Script::machine().device();
    let events = Events::new(&device).unwrap();
    let event = events.create(EventKind::Signal).unwrap();
    let config = QueueConfig { packets: 128, profiling: true, error_event: Some(&event), ..Default::default() };
    let queue = Queue::create(&device, &config).unwrap();
    assert_eq!(queue.id(), QueueId(3));

    let mut bytes = [0; field::V1_BYTES];
    queue.buffers.queue.read_bytes(0, &mut bytes).unwrap();
    let amd_queue = aql::AmdQueue::from_bytes(&bytes).unwrap();
    assert_eq!((amd_queue.size, amd_queue.base_address), (128, queue.ring_va().0));
    assert_eq!(
        (amd_queue.group_segment_aperture_base_hi, amd_queue.private_segment_aperture_base_hi),
        (0x1_0000, 0x2_0000)
    );
    assert_eq!((amd_queue.max_cu_id, amd_queue.max_wave_id), (95, 31));
    assert_eq!(amd_queue.queue_properties.into_bits(), 0xa);
    assert_eq!(amd_queue.queue_inactive_signal, queue.amd_queue_va().0 + INACTIVE_SIGNAL);
    // The packet processor finds the structure through the word behind the read index.
    assert_eq!(queue.buffers.queue.atomic_u32(136).unwrap().load(Ordering::Relaxed), 128);

    let mut signal = [0; signal::SIGNAL_BYTES];
    queue.buffers.queue.read_bytes(INACTIVE_SIGNAL, &mut signal).unwrap();
    let word = |at: usize| u64::from_le_bytes(signal[at..at + 8].try_into().unwrap());
    assert_eq!((word(0), word(8), word(16), word(24)), (1, 0, event.mailbox().unwrap().0, 1));

    let mut headers = [0; 128 * 64];
    queue.buffers.ring.read_bytes(0, &mut headers).unwrap();
    assert!(headers.chunks(64).all(|slot| slot[..2] == [1, 0]), "every slot is INVALID");
}

#[test]
fn the_argument_of_create_queue() {
    let (device, collector) = Script::machine().device();
    let queue = Queue::create(&device, &QueueConfig { priority: 15, ..Default::default() }).unwrap();
    let records = collector.records();
    let fields = records.iter().find_map(|record| match &record.event {
        trace::Event::Ioctl { name: "CREATE_QUEUE", fields, .. } => Some(fields.clone()),
        _ => None,
    });
    let fields = fields.unwrap();
    let value = |name: &str| fields.iter().find(|field| field.name == name).unwrap().value;
    assert_eq!(value("ring_base_address"), queue.ring_va().0);
    assert_eq!(value("write_pointer_address"), queue.amd_queue_va().0 + 56);
    assert_eq!(value("read_pointer_address"), queue.amd_queue_va().0 + 128);
    assert_eq!((value("ring_size"), value("queue_type"), value("gpu_id")), (65536, 2, 56387));
    assert_eq!((value("queue_percentage"), value("queue_priority")), (100, 15));
    assert_eq!((value("eop_buffer_size"), value("sdma_engine_id")), (4096, 0));
    assert_eq!((value("ctx_save_restore_size"), value("ctl_stack_size")), (46047232, 40960));
    assert_eq!(queue.buffers.context.size(), 46145536);
    for address in ["ring_base_address", "eop_buffer_address", "ctx_save_restore_address"] {
        assert_eq!(value(address) % PAGE_SIZE, 0, "{address}");
    }
}

#[test]
fn gfx942_has_no_end_of_pipe_buffer_and_a_header_an_xcc() {
    let (device, collector) = machine(90402, 8).device();
    let queue = Queue::create(&device, &QueueConfig { report_exceptions: true, ..Default::default() }).unwrap();
    assert!(queue.buffers.eop.is_none());
    assert_eq!(steps(&collector, &["ALLOC"]).len(), 3);
    assert_eq!(queue.buffers.context.size(), 186019840);
    for xcc in 0..8u64 {
        let mut bytes = [0; 40];
        queue.buffers.context.read_bytes(xcc * 23203840, &mut bytes).unwrap();
        let header = uapi::ContextSaveAreaHeader::from_prefix(&bytes).unwrap();
        assert_eq!(u64::from(header.debug_offset), (8 - xcc) * 23203840);
        assert_eq!((header.debug_size, header.err_event_id), (48640 * 8, 0));
        assert_eq!(header.err_payload_addr, queue.amd_queue_va().0 + EXCEPTIONS);
    }
    // gfx950 does have one.
    assert_eq!(
        (eop_size(GfxTarget::from_version(90402).unwrap()), eop_size(GfxTarget::from_version(90500).unwrap())),
        (0, 4096)
    );
}

#[test]
fn packets_then_doorbell() {
    let (device, collector) = Script::machine().device();
    let mut queue = Queue::create(&device, &QueueConfig { packets: 64, ..Default::default() }).unwrap();
    let packet = [[2; 64]];
    let index = queue.publish(&packet, "k", |_| false).unwrap();
    queue.ring_doorbell(index);
    // The first packet rings with 0, in the slot the low 13 bits of the offset name.
    let doorbells = device.doorbells(0).unwrap() as *const u64;
    // SAFETY: the doorbell mapping is 8192 bytes.
    assert_eq!(unsafe { doorbells.add(3).read_volatile() }, 0);
    for _ in 1..64 {
        queue.publish(&packet, "k", |_| false).unwrap();
    }
    queue.ring_doorbell(63);
    // SAFETY: as above.
    assert_eq!(unsafe { doorbells.add(3).read_volatile() }, 63);
    assert_eq!((queue.write_index(), queue.read_index()), (64, 0));

    let before = collector.records().len();
    let error = queue.publish(&packet, "k", |_| false).unwrap_err();
    insta::assert_snapshot!(error, @"the ring stayed full: 64 of 64 slots in use (write index 64, read index 0), 1 wanted");
    assert!(queue.publish(&[[0; 64]; 65], "k", |_| false).is_err());
    assert_eq!(collector.records().len(), before, "nothing is traced that did not happen");
    let lines = steps(&collector, &["reserve", "publish", "doorbell"]);
    assert_eq!(
        lines[..3],
        [
            "reserve   queue 3 packet 0",
            "publish   queue 3 packet 0 header 0x0202 setup 514 k",
            "doorbell  queue 3 value 0"
        ]
    );
}

#[test]
fn two_queues_share_the_doorbell_mapping() {
    let (device, collector) = Script::machine().device();
    let queues = [(); 2].map(|()| Queue::create(&device, &QueueConfig::default()).unwrap());
    assert_eq!(steps(&collector, &["mmap doorbells"]).len(), 1);
    drop((queues, device));
    assert_eq!(steps(&collector, &["munmap 8192"]).len(), 1);
}

#[test]
fn stopped_and_going_on() {
    let (device, _) = Script::machine().device();
    let queue = Queue::create(&device, &QueueConfig::default()).unwrap();
    assert_eq!((queue.inactive_value().unwrap(), queue.exceptions().unwrap()), (0, 0));
    let value = queue.buffers.queue.atomic_u64(INACTIVE_SIGNAL + 8).unwrap();
    value.store(0x401, Ordering::Relaxed);
    assert_eq!(queue.inactive_value().unwrap(), 0x401);
    let layout = crate::ScratchLayout::new(device.node(), device.target(), 100, 32, u64::MAX).unwrap();
    queue.set_scratch(&layout.registers(GpuVa(0x7000_0000_0000)), true).unwrap();
    queue.clear_inactive().unwrap();
    assert_eq!(queue.inactive_value().unwrap(), 0);

    let mut bytes = [0; field::V1_BYTES];
    queue.buffers.queue.read_bytes(0, &mut bytes).unwrap();
    let amd_queue = aql::AmdQueue::from_bytes(&bytes).unwrap();
    let registers = layout.registers(GpuVa(0x7000_0000_0000));
    assert_eq!(amd_queue.scratch_resource_descriptor, registers.resource_descriptor);
    assert_eq!(amd_queue.compute_tmpring_size, registers.tmpring_size);
    assert_eq!(amd_queue.scratch_backing_memory_location, 0x7000_0000_0000);
    assert_eq!(amd_queue.scratch_wave64_lane_byte_size, registers.wave64_lane_bytes);
    assert_eq!(amd_queue.queue_properties.into_bits(), 0x12);
}

#[test]
fn rings_that_cannot_be() {
    let (device, collector) = Script::machine().device();
    for packets in [0, 63, 65, 32, 1 << 26, u32::MAX] {
        let result = Queue::create(&device, &QueueConfig { packets, ..Default::default() });
        assert!(matches!(result, Err(Error::Size { .. })), "{packets}");
    }
    assert!(steps(&collector, &["ALLOC"]).is_empty());
}

fn refused(script: Script, errno: Errno) -> (String, Vec<String>) {
    let (device, collector) = script.fail("CREATE_QUEUE", errno).device();
    let error = Queue::create(&device, &QueueConfig::default()).unwrap_err();
    assert_eq!(error.errno(), Some(errno));
    // Addresses differ from run to run, and all have twelve digits.
    let hide = |text: String| -> String {
        let address = |word: &str| word.trim().strip_prefix("0x").is_some_and(|digits| digits.len() == 12);
        let same = |word: &str| if address(word) { word.replace(word.trim(), "0x7f0000000000") } else { word.into() };
        text.split_inclusive(char::is_whitespace).map(same).collect()
    };
    (hide(error.report()), steps(&collector, &["CREATE", "DESTROY", "UNMAP", "FREE"]))
}

#[test]
fn refused_for_its_arguments() {
    let (report, undone) = refused(Script::machine(), Errno::EINVAL);
    insta::assert_snapshot!(report);
    assert_eq!(undone[0], "CREATE_QUEUE EINVAL (22)");
    assert_eq!(undone.len(), 9, "four buffers are unmapped and freed, and no queue is destroyed: {undone:?}");
    let (report, _) = refused(machine(90402, 2), Errno::EINVAL);
    insta::assert_snapshot!(report);
}

#[test]
fn the_topology_and_the_formula_disagree() {
    const GPU: &str = include_str!("../../tests/fixtures/node1-gfx1100");
    let lines = GPU.replace("cwsr_size 46047232", "cwsr_size 46051328");
    assert_ne!(lines, GPU);
    insta::assert_snapshot!(refused(Script::machine().file(PROPERTIES, &lines), Errno::EINVAL).0);
}

#[test]
fn refused_for_other_reasons() {
    for errno in [Errno::ENOSPC, Errno::ENOMEM, Errno::ETIME, Errno::ENOTSUPP, Errno::from_raw(libc::EXDEV)] {
        insta::assert_snapshot!(format!("create_queue-{}", errno.name()), refused(Script::machine(), errno).0);
    }
}

#[test]
fn a_field_that_breaks_a_rule_is_marked() {
    let save = {
        let (device, _) = Script::machine().device();
        ContextSave::of(device.node(), device.target()).unwrap()
    };
    let mapping = |va: u64, size: u64| Mapping { va: GpuVa(va), size };
    let buffers = Buffers {
        ring: mapping(0x10000, 65536),
        queue: mapping(0x1000, 8192),
        eop: Some(mapping(0x2000, 4096)),
        context: mapping(0x100000, save.total - 4096),
        save: &save,
    };
    let args = CreateQueueArgs {
        ring_base_address: 0x11000,
        write_pointer_address: 0x1038,
        read_pointer_address: 0x3080,
        ring_size: 1000,
        gpu_id: GpuId(1).0,
        queue_type: 5,
        queue_percentage: 101,
        queue_priority: 16,
        eop_buffer_address: 0x2000,
        eop_buffer_size: 8192,
        ctx_save_restore_address: 0x100000,
        ctx_save_restore_size: save.slice - 4096,
        ctl_stack_size: save.control_stack,
        ..Default::default()
    };
    let checks = check::checks(&args, &buffers);
    let error = CreateQueueError { errno: Errno::EINVAL, args, checks };
    insta::assert_snapshot!(Error::from(Box::new(error)).report());
}

#[test]
fn a_doorbell_that_cannot_be_mapped_destroys_the_queue() {
    let script = Script::machine().on_ioctl(|name, arg| {
        (name == "CREATE_QUEUE").then(|| {
            edit(arg, |args: &mut CreateQueueArgs| args.queue_id = 9);
            Ok(0)
        })
    });
    let (device, collector) = script.refuse_doorbells(Errno::EINVAL).device();
    let error = Queue::create(&device, &QueueConfig::default()).unwrap_err();
    insta::assert_snapshot!(error.report(), @"
    mmap of 8192 bytes for doorbells: EINVAL (22)
      rule: the length must be the kernel's own, and the process the one that opened /dev/kfd
      do: a forked child has to open /dev/kfd itself
    ");
    assert_eq!(steps(&collector, &["DESTROY"]), ["DESTROY_QUEUE"]);
}

#[test]
fn a_process_that_leaves_destroys_its_queue_only() {
    let (device, collector) = Script::machine().device();
    let queue = Queue::create(&device, &QueueConfig::default()).unwrap();
    device.kfd().leave();
    drop((queue, device));
    assert_eq!(steps(&collector, &["DESTROY", "UNMAP", "munmap", "FREE", "close"]), ["DESTROY_QUEUE"]);
}
