//! Shared virtual memory (`kfd_svm.c`): ranges of the caller's own memory that GPUs use at the same addresses.
//!
//! Memory does not move in this machine, so locations and granularity are only kept. Without retry faults a range is
//! mapped on a GPU as soon as the GPU has access to it.

use super::backing::{PAGE, Pages};
use super::call::Call;
use super::process::{DeviceData, Inner};
use super::rule::{RuleText, check, rules, texts};
use super::user;
use crate::memory::{Rights, Span};
use kfd::Errno;
use kfd::uapi::{
    Pod, SVM_ATTR_ACCESS, SVM_ATTR_ACCESS_IN_PLACE, SVM_ATTR_CLR_FLAGS, SVM_ATTR_GRANULARITY, SVM_ATTR_NO_ACCESS,
    SVM_ATTR_PREFERRED_LOC, SVM_ATTR_PREFETCH_LOC, SVM_ATTR_SET_FLAGS, SVM_FLAG_COHERENT, SVM_FLAG_GPU_ALWAYS_MAPPED,
    SVM_FLAG_GPU_EXEC, SVM_FLAG_GPU_RO, SVM_FLAG_HOST_ACCESS, SVM_LOCATION_SYSMEM, SVM_LOCATION_UNDEFINED,
    SVM_OP_GET_ATTR, SVM_OP_SET_ATTR, SvmArgs, SvmAttribute,
};
use std::collections::{BTreeMap, BTreeSet};

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

    /// The caller unmaps its memory: GPUs lose it. True when a range was hit.
    pub fn user_memory_gone(&mut self, devices: &[DeviceData], addr: u64, len: u64) -> bool {
        let end = addr.saturating_add(len);
        if !self.overlaps(addr, len) {
            return false;
        }
        for (start, range) in self.0.range_mut(..end).rev().take_while(|(_, range)| range.end > addr) {
            range.gone = true;
            for device in std::mem::take(&mut range.mapped) {
                if let Some(vm) = &devices[device].vm {
                    vm.space.unmap(*start);
                }
            }
        }
        true
    }
}

/// What SVM looks at of its argument.
pub struct Facts {
    args: SvmArgs,
    acquired: bool,
}

rules! {
    /// SVM: the range. Attributes, and what is mapped there, are looked at afterwards.
    RULES for f: Facts {
        EINVAL "start_addr is a multiple of 4096": f.args.start_addr => f.args.start_addr.is_multiple_of(PAGE);
        EINVAL "size is a multiple of 4096": f.args.size => f.args.size.is_multiple_of(PAGE);
        EINVAL "start_addr is not 0": f.args.start_addr => f.args.start_addr != 0;
        EINVAL "size is not 0": f.args.size => f.args.size != 0;
        EOVERFLOW "the range ends below 2^64": f.args.start_addr =>
            f.args.start_addr.checked_add(f.args.size).is_some();
        EINVAL "ACQUIRE_VM was called for a GPU": f.args.start_addr => f.acquired;
        EINVAL "op is 0 (set) or 1 (get)": f.args.op => f.args.op <= SVM_OP_GET_ATTR;
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![("SVM", texts(RULES))]
}

/// SVM: the argument with its attributes as bytes.
pub fn ioctl(call: &Call<'_>, bytes: &mut [u8]) -> Result<(), Errno> {
    let args = SvmArgs::from_prefix_or_zero(bytes);
    let (head, tail) = bytes.split_at_mut(size_of::<SvmArgs>().min(bytes.len()));
    debug_assert_eq!(head.len(), size_of::<SvmArgs>());
    let wanted = (args.nattr as usize).checked_mul(size_of::<SvmAttribute>()).ok_or(Errno::EINVAL)?;
    let tail = tail.get_mut(..wanted).ok_or(Errno::EINVAL)?;
    let mut inner = call.process.lock();
    let acquired = inner.devices.iter().any(|data| data.vm.is_some());
    check(call.kernel, "SVM", RULES, &Facts { args, acquired })?;
    let end = args.start_addr.checked_add(args.size).ok_or(Errno::EOVERFLOW)?;
    let mut attributes: Vec<SvmAttribute> =
        tail.chunks_exact(size_of::<SvmAttribute>()).map(SvmAttribute::from_prefix_or_zero).collect();

    match args.op {
        SVM_OP_SET_ATTR => inner.svm_set(args.start_addr, end, &attributes),
        SVM_OP_GET_ATTR => {
            inner.svm_get(args.start_addr, end, &mut attributes)?;
            for (place, attribute) in tail.chunks_exact_mut(size_of::<SvmAttribute>()).zip(&attributes) {
                place.copy_from_slice(attribute.as_bytes());
            }
            Ok(())
        }
        _ => Err(Errno::EINVAL),
    }
}

impl Inner {
    /// `svm_range_check_attr`: every attribute is known, and every GPU it names.
    fn svm_check(&self, attributes: &[SvmAttribute]) -> Result<(), Errno> {
        for attribute in attributes {
            let value = attribute.value;
            let names_gpu = match attribute.attr_type {
                SVM_ATTR_PREFERRED_LOC => value != SVM_LOCATION_SYSMEM && value != SVM_LOCATION_UNDEFINED,
                SVM_ATTR_PREFETCH_LOC => value != SVM_LOCATION_SYSMEM,
                SVM_ATTR_ACCESS | SVM_ATTR_ACCESS_IN_PLACE | SVM_ATTR_NO_ACCESS => true,
                SVM_ATTR_SET_FLAGS | SVM_ATTR_CLR_FLAGS | SVM_ATTR_GRANULARITY => false,
                _ => return Err(Errno::EINVAL),
            };
            if names_gpu {
                self.index(value)?;
            }
        }
        Ok(())
    }

    fn svm_set(&mut self, start: u64, end: u64, attributes: &[SvmAttribute]) -> Result<(), Errno> {
        self.svm_check(attributes)?;
        if !user::is_present(start, end - start) {
            return Err(Errno::EFAULT);
        }
        let taken =
            self.devices.iter().filter_map(|data| data.vm.as_ref()).any(|vm| {
                vm.mappings.range(..end).next_back().is_some_and(|(from, mapping)| from + mapping.size > start)
            });
        if taken {
            return Err(Errno::EADDRINUSE);
        }
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
            let pages = Pages::of_user(start, range.end - start);
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

    fn svm_get(&self, start: u64, end: u64, attributes: &mut [SvmAttribute]) -> Result<(), Errno> {
        self.svm_check(attributes)?;
        let defaults = Attributes::default();
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
            match attribute.attr_type {
                SVM_ATTR_PREFERRED_LOC => attribute.value = same(|a| a.preferred),
                SVM_ATTR_PREFETCH_LOC => attribute.value = same(|a| a.prefetch),
                SVM_ATTR_ACCESS | SVM_ATTR_ACCESS_IN_PLACE | SVM_ATTR_NO_ACCESS => {
                    let gpu = self.index(attribute.value)?;
                    attribute.attr_type = if found.iter().all(|a| a.access.contains(&gpu)) {
                        SVM_ATTR_ACCESS
                    } else if found.iter().all(|a| a.access.contains(&gpu) || a.in_place.contains(&gpu)) {
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
            (SVM_ATTR_GRANULARITY, _) => self.granularity = value.min(0x1b),
            _ => {}
        }
    }
}
