//! Kernel versions whose rules differ, and in what.

/// Whose rules the machine follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rules {
    /// Linux 6.1 to 6.11: next to no checks of a queue's buffers; interface 1.11, as 6.1 has it.
    Linux6_1,
    /// The first 6.12: sizes of end-of-pipe buffer and save area must be equal to the device's.
    Linux6_12Early,
    /// 6.12 with its stable updates: those sizes may be greater, and the topology tells them.
    #[default]
    Linux6_12,
    /// As of 6.17: interface 1.18.
    Current,
}

impl Rules {
    /// All, oldest first.
    pub const ALL: [Rules; 4] = [Rules::Linux6_1, Rules::Linux6_12Early, Rules::Linux6_12, Rules::Current];

    /// Name on a command line.
    pub const fn name(self) -> &'static str {
        match self {
            Rules::Linux6_1 => "6.1",
            Rules::Linux6_12Early => "6.12",
            Rules::Linux6_12 => "6.12-late",
            Rules::Current => "current",
        }
    }

    /// The version with this name.
    pub fn from_name(name: &str) -> Option<Rules> {
        Rules::ALL.into_iter().find(|rules| rules.name() == name)
    }

    /// Minor version that GET_VERSION tells. Requests that came later are ENOTTY.
    pub const fn interface_minor(self) -> u32 {
        match self {
            Rules::Linux6_1 => 11,
            Rules::Linux6_12Early | Rules::Linux6_12 => 17,
            Rules::Current => 18,
        }
    }

    /// First address a buffer may have, as the apertures tell it.
    pub const fn gpuvm_base(self) -> u64 {
        match self {
            Rules::Linux6_1 => 0x4000,
            _ => 0x1_0000,
        }
    }

    /// CREATE_QUEUE looks at all buffers of a queue.
    pub const fn checks_buffers(self) -> bool {
        !matches!(self, Rules::Linux6_1)
    }

    /// Sizes of end-of-pipe buffer and save area must be equal to the device's, not only as great.
    pub const fn exact_sizes(self) -> bool {
        matches!(self, Rules::Linux6_12Early)
    }

    /// Greatest `queue_type`: SDMA by engine came with interface 1.17.
    pub const fn last_queue_type(self) -> u32 {
        use kfd::uapi::{QUEUE_TYPE_SDMA_BY_ENG_ID, QUEUE_TYPE_SDMA_XGMI};
        if self.interface_minor() >= 17 { QUEUE_TYPE_SDMA_BY_ENG_ID } else { QUEUE_TYPE_SDMA_XGMI }
    }

    /// WAIT_EVENTS looks at ages (interface 1.14).
    pub const fn event_ages(self) -> bool {
        self.interface_minor() >= 14
    }

    /// `properties` has `cwsr_size` and `ctl_stack_size`.
    pub const fn save_sizes_in_topology(self) -> bool {
        matches!(self, Rules::Linux6_12 | Rules::Current)
    }

    /// `properties` has `debug_prop` and `num_xcc`, which came with interface 1.13.
    pub const fn debug_properties(self) -> bool {
        self.interface_minor() >= 13
    }

    /// `properties` has `capability2`.
    pub const fn capability2(self) -> bool {
        matches!(self, Rules::Current)
    }
}

/// What differs, one line a subject: its name, and what each version has, in the order of [`Rules::ALL`].
pub fn differences() -> Vec<(&'static str, [String; 4])> {
    fn yes(value: bool) -> String {
        if value { "yes" } else { "no" }.to_string()
    }
    let each = |of: fn(Rules) -> String| Rules::ALL.map(of);
    vec![
        ("interface version", each(|rules| format!("1.{}", rules.interface_minor()))),
        ("CREATE_QUEUE checks all buffers, UPDATE_QUEUE the ring", each(|rules| yes(rules.checks_buffers()))),
        ("save area and end-of-pipe sizes must be equal", each(|rules| yes(rules.exact_sizes()))),
        ("greatest queue_type", each(|rules| rules.last_queue_type().to_string())),
        ("event ages", each(|rules| yes(rules.event_ages()))),
        ("gpuvm_base", each(|rules| format!("{:#x}", rules.gpuvm_base()))),
        ("cwsr_size and ctl_stack_size in the topology", each(|rules| yes(rules.save_sizes_in_topology()))),
        ("debug_prop and num_xcc in the topology", each(|rules| yes(rules.debug_properties()))),
        ("capability2 in the topology", each(|rules| yes(rules.capability2()))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Target;
    use crate::kernel::Options;
    use crate::testing::{Client, SHARED, errno};
    use kfd::uapi::*;
    use kfd::{Driver, Errno};

    fn client(rules: Rules) -> Client {
        let client = Client::with(&[Target::Gfx1100], Options { workers: 1, rules, ..Options::default() });
        client.acquire();
        client
    }

    #[test]
    fn names() {
        for rules in Rules::ALL {
            assert_eq!(Rules::from_name(rules.name()), Some(rules));
        }
        assert_eq!(Rules::from_name("6.2"), None);
    }

    #[test]
    fn requests_came_with_versions() {
        for (rules, minor, export, runtime) in [
            (Rules::Linux6_1, 11, Err(libc::ENOTTY), Err(libc::ENOTTY)),
            (Rules::Linux6_12Early, 17, Err(libc::EINVAL), Ok(())),
            (Rules::Linux6_12, 17, Err(libc::EINVAL), Ok(())),
            (Rules::Current, 18, Err(libc::EINVAL), Ok(())),
        ] {
            let client = client(rules);
            let mut version = GetVersionArgs::default();
            client.call(&mut version).unwrap();
            assert_eq!(version.minor_version, minor);
            assert_eq!(client.call(&mut ExportDmabufArgs::default()), export);
            assert_eq!(client.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() }), runtime);
            // CREATE_PROCESS came with 1.19.
            assert_eq!(errno(client.driver.ioctl(client.kfd, CREATE_PROCESS, &mut [])), Err(libc::ENOTTY));
        }
    }

    #[test]
    fn the_topology_grew() {
        for rules in Rules::ALL {
            let client = client(rules);
            let text = client.driver.read("/sys/class/kfd/kfd/topology/nodes/1/properties").unwrap();
            let text = String::from_utf8(text).unwrap();
            let has = |key: &str| text.lines().any(|line| line.starts_with(&format!("{key} ")));
            assert_eq!(has("cwsr_size") && has("ctl_stack_size"), rules >= Rules::Linux6_12, "{rules:?}");
            assert_eq!(has("num_xcc") && has("debug_prop"), rules >= Rules::Linux6_12Early, "{rules:?}");
            assert_eq!(has("capability2"), rules == Rules::Current, "{rules:?}");
        }
    }

    #[test]
    fn ages_types_and_addresses() {
        for rules in Rules::ALL {
            let client = client(rules);
            let mut event = CreateEventArgs::default();
            client.call(&mut event).unwrap();
            let mut data = [EventData::new(event.event_id)];
            data[0].set_payload(&HsaSignalEventData { last_event_age: 9 });
            let mut args = WaitEventsArgs { events_ptr: data.as_ptr() as u64, num_events: 1, ..Default::default() };
            client.call(&mut args).unwrap();
            assert_eq!(args.wait_result == WAIT_RESULT_COMPLETE, rules.event_ages(), "{rules:?}");

            // Without buffers: 6.1 gets as far as to look for a hardware queue.
            let gpu_id = client.gpus[0];
            for (queue_type, none) in [(1, Errno::ENOMEM), (0, Errno::EBUSY)] {
                let page = client.buffer(4096, SHARED).va;
                let mut args =
                    CreateQueueArgs { gpu_id, queue_type, write_pointer_address: page, ..Default::default() };
                let expected = if rules == Rules::Linux6_1 { none } else { Errno::EINVAL };
                assert_eq!(client.call(&mut args), Err(expected.raw()), "{rules:?}");
            }

            let mut args = CreateQueueArgs { queue_type: 4, ..Default::default() };
            let expected = if rules == Rules::Linux6_1 { Errno::ENOTSUPP } else { Errno::EINVAL };
            assert_eq!(client.call(&mut args), Err(expected.raw()), "{rules:?}");

            let mut record = ProcessDeviceApertures::default();
            let mut args = GetProcessAperturesNewArgs {
                kfd_process_device_apertures_ptr: (&raw mut record) as u64,
                num_of_nodes: 1,
                pad: 0,
            };
            client.call(&mut args).unwrap();
            assert_eq!(record.gpuvm_base, rules.gpuvm_base(), "{rules:?}");
        }
    }

    #[test]
    fn a_ring_is_looked_at_on_update_since_6_12() {
        for rules in Rules::ALL {
            let client = client(rules);
            let queue = client.queue(64, Default::default());
            let elsewhere = client.buffer(8192, SHARED);
            let mut args = UpdateQueueArgs {
                queue_id: queue.parts.args.queue_id,
                ring_base_address: elsewhere.va,
                ring_size: 4096,
                queue_percentage: 100,
                queue_priority: 7,
            };
            let expected = if rules.checks_buffers() { Err(libc::EFAULT) } else { Ok(()) };
            assert_eq!(client.call(&mut args), expected, "{rules:?}");
            queue.destroy().unwrap();
        }
    }
}
