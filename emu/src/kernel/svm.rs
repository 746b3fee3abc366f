//! Shared virtual memory (`kfd_svm.c`): ranges of the caller's own memory that GPUs use at the same addresses.
//!
//! Memory does not move in this machine, so locations and granularity are only kept. Without retry faults a range is
//! mapped on a GPU as soon as the GPU has access to it.

use super::Kernel;
use super::backing::{PAGE, Pages};
use super::call::Call;
use super::process::{DeviceData, Inner};
use super::rule::{RuleText, check, rules, texts};
use super::user;
use crate::memory::{Rights, Span};
use kfd::Errno;
use kfd::uapi::{
    Pod, QUEUE_EVICTION_TRIGGER_SVM, SVM_ATTR_ACCESS, SVM_ATTR_ACCESS_IN_PLACE, SVM_ATTR_CLR_FLAGS,
    SVM_ATTR_GRANULARITY, SVM_ATTR_NO_ACCESS, SVM_ATTR_PREFERRED_LOC, SVM_ATTR_PREFETCH_LOC, SVM_ATTR_SET_FLAGS,
    SVM_FLAG_COHERENT, SVM_FLAG_GPU_ALWAYS_MAPPED, SVM_FLAG_GPU_EXEC, SVM_FLAG_GPU_RO, SVM_FLAG_HOST_ACCESS,
    SVM_LOCATION_SYSMEM, SVM_LOCATION_UNDEFINED, SVM_OP_GET_ATTR, SVM_OP_SET_ATTR, SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU,
    SvmArgs, SvmAttribute,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;

/// What is known of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Attributes {
    preferred: u32,
    prefetch: u32,
    flags: u32,
    granularity: u32,
    /// GPUs, by position, with access.
    access: BTreeSet<usize>,
    /// GPUs with access that keeps pages where they are.
    in_place: BTreeSet<usize>,
}

impl Default for Attributes {
    fn default() -> Attributes {
        Attributes {
            preferred: SVM_LOCATION_UNDEFINED,
            prefetch: SVM_LOCATION_UNDEFINED,
            flags: SVM_FLAG_HOST_ACCESS | SVM_FLAG_COHERENT,
            // log2 of the pages that move together: 2 MiB.
            granularity: 9,
            access: BTreeSet::new(),
            in_place: BTreeSet::new(),
        }
    }
}

#[derive(Clone, Debug)]
struct Range {
    end: u64,
    attributes: Attributes,
    /// GPUs it is mapped on.
    mapped: BTreeSet<usize>,
    /// Live queues whose save area it is.
    uses: u32,
    /// The caller unmapped it; zero pages stand in until the process ends or maps it anew.
    gone: bool,
}

/// The ranges of a process by start address; they do not overlap.
#[derive(Default)]
pub struct Ranges(BTreeMap<u64, Range>);

impl Ranges {
    fn within(&self, start: u64, end: u64) -> impl Iterator<Item = (&u64, &Range)> {
        let first = self.0.range(..=start).next_back().map_or(start, |(first, _)| *first);
        self.0.range(first..end.max(first)).filter(move |(_, range)| range.end > start)
    }

    /// Whether a range lies over `addr..addr + size`.
    pub fn overlaps(&self, addr: u64, size: u64) -> bool {
        self.within(addr, addr.saturating_add(size)).next().is_some()
    }

    /// Cuts ranges so that none crosses `at`.
    fn split(&mut self, at: u64) {
        let Some((_, range)) = self.0.range_mut(..at).next_back() else { return };
        if range.end > at {
            let upper = range.clone();
            range.end = at;
            self.0.insert(at, upper);
        }
    }

    /// Whether all of a range is registered, always mapped, and mapped on this GPU: what a save area needs.
    pub fn always_mapped(&self, addr: u64, size: u64, device: usize) -> bool {
        let Some(end) = addr.checked_add(size) else { return false };
        let mut reached = addr;
        for (start, range) in self.within(addr, end) {
            let usable = range.mapped.contains(&device) && range.attributes.flags & SVM_FLAG_GPU_ALWAYS_MAPPED != 0;
            if *start > reached || !usable {
                return false;
            }
            reached = range.end;
        }
        reached >= end
    }

    /// Counts a live queue's use of the ranges over `addr..addr + size`.
    pub fn use_ranges(&mut self, addr: u64, size: u64, more: bool) {
        let end = addr.saturating_add(size);
        for (_, range) in self.0.range_mut(..end).rev().take_while(|(_, range)| range.end > addr) {
            range.uses = if more { range.uses.saturating_add(1) } else { range.uses.saturating_sub(1) };
        }
    }

    /// The caller unmaps its memory: GPUs lose it. True when a range was hit. When it was a live queue's save area, the
    /// process' queues are stopped and never run again.
    pub fn user_memory_gone(&mut self, kernel: &Kernel, devices: &[DeviceData], addr: u64, len: u64) -> bool {
        let end = addr.saturating_add(len);
        if !self.overlaps(addr, len) {
            return false;
        }
        let mut vital = false;
        for (start, range) in self.0.range_mut(..end).rev().take_while(|(_, range)| range.end > addr) {
            range.gone = true;
            vital |= range.uses != 0;
            for device in std::mem::take(&mut range.mapped) {
                if let Some(vm) = &devices[device].vm {
                    vm.space.unmap(*start);
                }
                let gpu_id = devices[device].device.gpu_id;
                let (from, to) = ((*start).max(addr), range.end.min(end));
                kernel.smi_unmap(gpu_id, from, to - from, SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU);
            }
        }
        if vital {
            kernel.note(|| format!("the save area of a live queue at {addr:#x} is unmapped: the queues stop for good"));
            kernel.smi_eviction(QUEUE_EVICTION_TRIGGER_SVM);
            devices.iter().for_each(|data| data.evicted.store(true, Ordering::Release));
        }
        true
    }
}

/// What SVM looks at of its argument.
pub struct Facts {
    args: SvmArgs,
    /// Bytes of the argument, by the request number.
    bytes: usize,
    /// The kernel has shared virtual memory.
    built: bool,
}

/// What setting attributes looks at besides.
pub struct SetFacts {
    attribute: Option<SvmAttribute>,
    acquired: bool,
}

/// What both operations look at of the range.
pub struct RangeFacts {
    start: u64,
    end: Option<u64>,
    present: bool,
    free: bool,
}

rules! {
    /// SVM: the argument.
    RULES for f: Facts {
        EINVAL "the argument's size covers nattr attributes": f.args.nattr =>
            size_of::<SvmArgs>() as u64 + 8 * u64::from(f.args.nattr) <= f.bytes as u64;
        EPERM "the kernel is built with HSA_AMD_SVM": f.args.op => f.built;
        EINVAL "start_addr and size are multiples of 4096": f.args.start_addr | f.args.size =>
            (f.args.start_addr | f.args.size).is_multiple_of(PAGE);
        EINVAL "start_addr and size are not 0": f.args.start_addr.min(f.args.size) =>
            f.args.start_addr != 0 && f.args.size != 0;
        EINVAL "op is 0 (set) or 1 (get)": f.args.op => f.args.op <= SVM_OP_GET_ATTR;
    }

    /// SVM: setting attributes.
    SET for f: SetFacts {
        EINVAL "every attribute is of a type from 0 to 7, and names a GPU of the process where its value is one":
            f.attribute.map_or(0, |attribute| attribute.value) => f.attribute.is_none();
        EINVAL "ACQUIRE_VM was called for a GPU": f.acquired => f.acquired;
    }

    /// SVM: the range.
    RANGE for f: RangeFacts {
        EOVERFLOW "the range ends below 2^64": f.start => f.end.is_some();
        EFAULT "all of the range is ordinary memory of the process": f.start => f.present;
        EADDRINUSE "no buffer is mapped there on a GPU": f.start => f.free;
    }

    /// SVM: getting attributes, after the range.
    GET for attribute: Option<SvmAttribute> {
        EINVAL "every attribute is of a type from 0 to 2 or 5 to 7":
            attribute.map_or(0, |attribute| attribute.attr_type) => attribute.is_none();
    }

    /// SVM: getting one attribute; those in front of it have their values by then.
    GET_ONE for f: (SvmAttribute, bool) {
        EINVAL "ACCESS names a GPU of the process": f.0.value => f.0.attr_type != SVM_ATTR_ACCESS || f.1;
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![
        ("SVM", texts(RULES)),
        ("SVM SET_ATTR", [texts(SET), texts(RANGE)].concat()),
        ("SVM GET_ATTR", [texts(RANGE), texts(GET), texts(GET_ONE)].concat()),
    ]
}

const NAME: &str = "SVM";

/// SVM: the argument with its attributes as bytes.
pub fn ioctl(call: &Call<'_>, bytes: &mut [u8]) -> Result<(), Errno> {
    let args = SvmArgs::from_prefix_or_zero(bytes);
    check(call.kernel, NAME, RULES, &Facts { args, bytes: call.user_size, built: call.kernel.options.svm })?;
    let wanted = size_of::<SvmArgs>() + args.nattr as usize * size_of::<SvmAttribute>();
    let tail = bytes.get_mut(size_of::<SvmArgs>()..wanted).ok_or(Errno::EINVAL)?;
    let mut inner = call.process.lock();
    let mut attributes: Vec<SvmAttribute> =
        tail.chunks_exact(size_of::<SvmAttribute>()).map(SvmAttribute::from_prefix_or_zero).collect();
    if args.op == SVM_OP_SET_ATTR {
        let acquired = inner.devices.iter().any(|data| data.vm.is_some());
        check(call.kernel, NAME, SET, &SetFacts { attribute: inner.svm_unknown(&attributes), acquired })?;
    }
    let end = args.start_addr.checked_add(args.size);
    let range = args.start_addr..end.unwrap_or(u64::MAX);
    let facts = RangeFacts {
        start: args.start_addr,
        end,
        present: end.is_some() && user::is_present(range.start, args.size),
        free: inner.svm_is_free(&range),
    };
    check(call.kernel, NAME, RANGE, &facts)?;
    if args.op == SVM_OP_SET_ATTR {
        inner.svm_set(range.start, range.end, &attributes)?;
        return Ok(());
    }
    let answers = |kind| !matches!(kind, SVM_ATTR_ACCESS_IN_PLACE | SVM_ATTR_NO_ACCESS) && kind <= SVM_ATTR_GRANULARITY;
    let unknown = attributes.iter().find(|attribute| !answers(attribute.attr_type));
    check(call.kernel, NAME, GET, &unknown.copied())?;
    let got = inner.svm_get(call, range.start, range.end, &mut attributes);
    for (place, attribute) in tail.chunks_exact_mut(size_of::<SvmAttribute>()).zip(&attributes) {
        place.copy_from_slice(attribute.as_bytes());
    }
    got
}

impl Inner {
    /// `svm_range_check_attr`: an attribute that is not known, or names a GPU that is not.
    fn svm_unknown(&self, attributes: &[SvmAttribute]) -> Option<SvmAttribute> {
        let known = |attribute: &SvmAttribute| {
            let value = attribute.value;
            let names_gpu = match attribute.attr_type {
                SVM_ATTR_PREFERRED_LOC => value != SVM_LOCATION_SYSMEM && value != SVM_LOCATION_UNDEFINED,
                SVM_ATTR_PREFETCH_LOC => value != SVM_LOCATION_SYSMEM,
                SVM_ATTR_ACCESS | SVM_ATTR_ACCESS_IN_PLACE | SVM_ATTR_NO_ACCESS => true,
                SVM_ATTR_SET_FLAGS | SVM_ATTR_CLR_FLAGS | SVM_ATTR_GRANULARITY => false,
                _ => return false,
            };
            !names_gpu || self.index(value).is_ok()
        };
        attributes.iter().find(|attribute| !known(attribute)).copied()
    }

    /// Whether no GPU has a buffer mapped in a range.
    fn svm_is_free(&self, range: &std::ops::Range<u64>) -> bool {
        self.devices.iter().filter_map(|data| data.vm.as_ref()).all(|vm| {
            let last = vm.mappings.range(..range.end).next_back();
            last.is_none_or(|(from, mapping)| from + mapping.size <= range.start)
        })
    }

    fn svm_set(&mut self, start: u64, end: u64, attributes: &[SvmAttribute]) -> Result<(), Errno> {
        // Ranges that stick out are cut, and both parts mapped anew.
        let low = self.svm.within(start, start + 1).next().map_or(start, |(from, _)| *from);
        let high = self.svm.within(end - 1, end).next().map_or(end, |(_, range)| range.end);
        for (from, _) in self.svm.0.range(low..high) {
            for vm in self.devices.iter().filter_map(|data| data.vm.as_ref()) {
                vm.space.unmap(*from);
            }
        }
        self.svm.split(start);
        self.svm.split(end);
        let mut gaps = Vec::new();
        let mut reached = start;
        for (from, range) in self.svm.within(start, end) {
            if *from > reached {
                gaps.push((reached, *from));
            }
            reached = range.end;
        }
        if reached < end {
            gaps.push((reached, end));
        }
        for (from, to) in gaps {
            let (attributes, mapped) = (Attributes::default(), BTreeSet::new());
            self.svm.0.insert(from, Range { end: to, attributes, mapped, uses: 0, gone: false });
        }
        let positions: Vec<Option<usize>> = attributes.iter().map(|a| self.index(a.value).ok()).collect();
        for (_, range) in self.svm.0.range_mut(start..end) {
            range.gone = false;
            for (attribute, gpu) in attributes.iter().zip(&positions) {
                range.attributes.apply(attribute, *gpu);
            }
        }
        let parts: Vec<(u64, Range)> =
            self.svm.0.range(low..high).map(|(from, range)| (*from, range.clone())).collect();
        for (from, range) in parts {
            let mapped = self.svm_map(from, &range);
            if let Some(range) = self.svm.0.get_mut(&from) {
                range.mapped = mapped;
            }
        }
        Ok(())
    }

    /// Maps a range, which is mapped nowhere, on the GPUs with access to it, and returns them.
    fn svm_map(&self, start: u64, range: &Range) -> BTreeSet<usize> {
        let mut now = BTreeSet::new();
        if range.gone || !user::is_writable(start, range.end - start) {
            return now;
        }
        for (position, data) in self.devices.iter().enumerate() {
            let Some(vm) = &data.vm else { continue };
            let attributes = &range.attributes;
            if !attributes.access.contains(&position) && !attributes.in_place.contains(&position) {
                continue;
            }
            let pages = Pages::of_user(start, range.end - start, None);
            let span = Span {
                start,
                end: range.end,
                host: pages.host(),
                rights: Rights {
                    write: attributes.flags & SVM_FLAG_GPU_RO == 0,
                    execute: attributes.flags & SVM_FLAG_GPU_EXEC != 0,
                },
                backing: pages,
            };
            if vm.space.map(span) {
                now.insert(position);
            }
        }
        now
    }

    fn svm_get(&self, call: &Call<'_>, start: u64, end: u64, attributes: &mut [SvmAttribute]) -> Result<(), Errno> {
        let defaults = Attributes {
            access: if self.xnack { (0..self.devices.len()).collect() } else { BTreeSet::new() },
            ..Attributes::default()
        };
        let mut found: Vec<&Attributes> = self.svm.within(start, end).map(|(_, range)| &range.attributes).collect();
        if found.is_empty() {
            found.push(&defaults);
        }
        let same = |of: fn(&Attributes) -> u32| {
            let first = of(found[0]);
            if found.iter().all(|a| of(a) == first) { first } else { SVM_LOCATION_UNDEFINED }
        };
        let all = found.iter().fold(u32::MAX, |flags, a| flags & a.flags);
        let any = found.iter().fold(0, |flags, a| flags | a.flags);
        for attribute in attributes {
            check(call.kernel, NAME, GET_ONE, &(*attribute, self.index(attribute.value).is_ok()))?;
            match attribute.attr_type {
                SVM_ATTR_PREFERRED_LOC => attribute.value = same(|a| a.preferred),
                SVM_ATTR_PREFETCH_LOC => attribute.value = same(|a| a.prefetch),
                SVM_ATTR_ACCESS => {
                    let gpu = self.index(attribute.value)?;
                    attribute.attr_type = if found.iter().all(|a| a.access.contains(&gpu)) {
                        SVM_ATTR_ACCESS
                    } else if found.iter().all(|a| a.in_place.contains(&gpu)) {
                        SVM_ATTR_ACCESS_IN_PLACE
                    } else {
                        SVM_ATTR_NO_ACCESS
                    };
                }
                SVM_ATTR_SET_FLAGS => attribute.value = all,
                SVM_ATTR_CLR_FLAGS => attribute.value = !any,
                SVM_ATTR_GRANULARITY => {
                    attribute.value = found.iter().map(|a| a.granularity).min().unwrap_or_default();
                }
                _ => return Err(Errno::EINVAL),
            }
        }
        Ok(())
    }
}

impl Attributes {
    fn apply(&mut self, attribute: &SvmAttribute, gpu: Option<usize>) {
        let value = attribute.value;
        match (attribute.attr_type, gpu) {
            (SVM_ATTR_PREFERRED_LOC, _) => self.preferred = value,
            (SVM_ATTR_PREFETCH_LOC, _) => self.prefetch = value,
            (SVM_ATTR_ACCESS, Some(gpu)) => {
                self.access.insert(gpu);
                self.in_place.remove(&gpu);
            }
            (SVM_ATTR_ACCESS_IN_PLACE, Some(gpu)) => {
                self.access.remove(&gpu);
                self.in_place.insert(gpu);
            }
            (SVM_ATTR_NO_ACCESS, Some(gpu)) => {
                self.access.remove(&gpu);
                self.in_place.remove(&gpu);
            }
            (SVM_ATTR_SET_FLAGS, _) => self.flags |= value,
            (SVM_ATTR_CLR_FLAGS, _) => self.flags &= !value,
            (SVM_ATTR_GRANULARITY, _) => self.granularity = value.min(0x3f),
            _ => {}
        }
    }
}
