//! Code in its executable form: tables of [`Inst`]s, filled when an instruction is first reached.
//!
//! A [`Code`] stands for a window of one executable mapping and one [`Shape`]. It keeps a copy of the bytes it decoded:
//! a later dispatch compares them with memory, as an instruction cache is invalidated when a dispatch begins, and makes
//! a new [`Code`] when they differ.

use super::fidelity::{Fidelity, Met};
use super::inst::{Handler, Inst};
use super::level::HostLevel;
use super::lower::{ConstantPool, Lowering, Unsupported};
use super::wave::{Wave, scalar};
use super::{mem, refusal, salu, valu};
use crate::isa::{self, Decoded, Format, Mods, Operand, Special, Target};
use crate::memory::{AddressSpace, Span};
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace::FaultKind;

/// Bytes a window covers: it bounds a table at twelve times as much address space.
const WINDOW: u64 = 16 << 20;
/// Bytes compared at a time when code is checked for changes.
const BLOCK: u64 = 256;
/// Empty entries behind the last, so that stepping over the longest instruction stays inside the table.
const GUARD: usize = 4;
/// Codes an engine keeps.
const KEEP: usize = 64;

/// What lowering depends on besides the code itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Target.
    pub target: Target,
    /// Lanes of a wave.
    pub lanes: u32,
    /// Rows VGPR operands may name.
    pub vgprs: u32,
    /// Row of AccVGPR 0.
    pub agpr_base: u32,
    /// Rows allocated.
    pub rows: u32,
    /// Vector width to pick handlers for.
    pub level: HostLevel,
}

/// Executable code.
pub struct Code {
    /// Mapping it lies in.
    span: Span,
    shape: Shape,
    /// Where operations that are not exact are counted, if they are.
    met: Option<Arc<Met>>,
    /// Address of the first entry.
    pub start: u64,
    /// Entries, one every four bytes.
    pub slots: usize,
    table: *mut Inst,
    constants: *const u32,
    filling: Mutex<Filling>,
}

#[derive(Default)]
struct Filling {
    constants: ConstantPool,
    /// Entries filled, to drop them.
    filled: Vec<u32>,
    /// Bytes decoded from, by block number.
    blocks: BTreeMap<u64, [u32; BLOCK as usize / 4]>,
}

// SAFETY: entries are written once, under the lock of `filling`, and published by a release store of their handler;
// whoever reads an entry saw its handler with an acquire load. Constant rows never move or change once made, and are
// named only by entries published later.
unsafe impl Send for Code {}
// SAFETY: as above.
unsafe impl Sync for Code {}

impl Code {
    fn new(span: Span, shape: Shape, met: Option<Arc<Met>>, pc: u64) -> Code {
        let base = span.start.max(pc & !(WINDOW - 1));
        let end = span.end.min((pc & !(WINDOW - 1)).saturating_add(WINDOW));
        let slots = ((end - base) / 4) as usize;
        let layout = Code::layout(slots);
        // SAFETY: the layout is not empty: it has the guard entries at least.
        let table = unsafe { alloc_zeroed(layout) }.cast::<Inst>();
        if table.is_null() {
            handle_alloc_error(layout);
        }
        let mut filling = Filling::default();
        let constants = filling.constants.as_ptr();
        Code { span, shape, met, start: base, slots, table, constants, filling: Mutex::new(filling) }
    }

    fn layout(slots: usize) -> Layout {
        // A window bounds the size, so this cannot overflow.
        Layout::array::<Inst>(slots + GUARD).unwrap_or(Layout::new::<Inst>())
    }

    /// The table: zeroed entries are not decoded yet.
    #[inline(always)]
    pub fn table(&self) -> *const Inst {
        self.table
    }

    /// Rows of constants its instructions use.
    pub fn constants(&self) -> *const u32 {
        self.constants
    }

    /// Handler of an entry, None when it is not decoded yet.
    ///
    /// # Safety
    /// `entry` lies in a table, guard entries included.
    #[inline(always)]
    pub unsafe fn handler(entry: *const Inst) -> Option<Handler> {
        // SAFETY: the field is only written by the atomic store in `fill`; a null pointer is None.
        unsafe {
            let run =
                AtomicPtr::from_ptr((&raw const (*entry).run).cast_mut().cast::<*mut ()>()).load(Ordering::Acquire);
            std::mem::transmute::<*mut (), Option<Handler>>(run)
        }
    }

    /// Decodes and lowers the entry at `index`, unless another worker did. False: the index is beyond the code.
    pub fn fill(&self, index: usize) -> bool {
        if index >= self.slots {
            return false;
        }
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the index is within the table.
        let entry = unsafe { self.table.add(index) };
        // SAFETY: as above.
        if unsafe { Code::handler(entry) }.is_some() {
            return true;
        }
        let inst = self.lower(&mut filling, index);
        filling.filled.push(index as u32);
        let Inst { run, dst, dst2, src, imm, len, flags, aux, extra } = inst;
        let run = run.unwrap_or(illegal);
        // SAFETY: nobody reads these fields before the handler is published, and the lock keeps other writers out.
        unsafe {
            (&raw mut (*entry).dst).write(dst);
            (&raw mut (*entry).dst2).write(dst2);
            (&raw mut (*entry).src).write(src);
            (&raw mut (*entry).imm).write(imm);
            (&raw mut (*entry).len).write(len);
            (&raw mut (*entry).flags).write(flags);
            (&raw mut (*entry).aux).write(aux);
            (&raw mut (*entry).extra).write(extra);
            AtomicPtr::from_ptr((&raw mut (*entry).run).cast::<*mut ()>()).store(run as *mut (), Ordering::Release);
        }
        true
    }

    /// The decoded entry at an address, for reports.
    pub fn decoded(&self, pc: u64) -> Option<&Decoded> {
        let index = (pc.checked_sub(self.start)? / 4) as usize;
        if index >= self.slots {
            return None;
        }
        // SAFETY: within the table, and published when it has a handler.
        unsafe {
            let entry = self.table.add(index);
            Code::handler(entry)?;
            (*entry).extra.as_ref().map(|extra| &extra.decoded)
        }
    }

    /// Lowers a vector instruction with VGPR indexing on, for this M0: index 7:0, and in 15:12 whether source 0, 1, 2 and
    /// the destination are indexed.
    pub fn lower_indexed(&self, decoded: &Decoded, m0: u32) -> Inst {
        let mut filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        let indexed = index(decoded, m0);
        match lower(&indexed, &mut self.lowering(&mut filling.constants)) {
            Ok(inst) => self.watch(inst, false),
            Err(reason) => refused(indexed, format!("with register index {}: {reason}", m0 & 0xff)),
        }
    }

    fn watch(&self, inst: Inst, place: bool) -> Inst {
        match &self.met {
            Some(met) => met.watch(inst, place),
            None => inst,
        }
    }

    fn lowering<'a>(&self, constants: &'a mut ConstantPool) -> Lowering<'a> {
        let Shape { target, lanes, vgprs, agpr_base, rows, level } = self.shape;
        Lowering { target, lanes, level, vgprs, agpr_base, rows, constants }
    }

    fn lower(&self, filling: &mut Filling, index: usize) -> Inst {
        let pc = self.start + index as u64 * 4;
        let mut bytes = [0u8; 16];
        let available = (self.span.end - pc).min(16) as usize;
        for (word, at) in bytes[..available].chunks_exact_mut(4).zip((pc..).step_by(4)) {
            word.copy_from_slice(&self.word(filling, at).to_le_bytes());
        }
        let decoded = match isa::decode(self.shape.target, &bytes[..available]) {
            Ok(decoded) => decoded,
            Err(reason) => return refused(undecodable(&bytes), reason.to_string()),
        };
        match lower(&decoded, &mut self.lowering(&mut filling.constants)) {
            Ok(inst) => self.watch(inst, true),
            Err(reason) => refused(decoded, reason.to_string()),
        }
    }

    /// The code's word at an address, from the copy that is compared later.
    fn word(&self, filling: &mut Filling, at: u64) -> u32 {
        let offset = at - self.span.start;
        let block = filling.blocks.entry(offset / BLOCK).or_insert_with(|| self.read_block(offset / BLOCK));
        block[(offset % BLOCK / 4) as usize]
    }

    fn read_block(&self, number: u64) -> [u32; BLOCK as usize / 4] {
        let from = number * BLOCK;
        let words = ((self.span.end - self.span.start - from).min(BLOCK) / 4) as usize;
        let mut block = [0; BLOCK as usize / 4];
        for (index, word) in block[..words].iter_mut().enumerate() {
            // SAFETY: inside the span, which `backing` keeps alive; spans are page aligned, so the word is aligned.
            // Memory shared with a device is read as volatile.
            *word = unsafe { self.span.host.add(from as usize).cast::<u32>().add(index).read_volatile() };
        }
        block
    }

    /// Does memory still hold what was decoded?
    fn unchanged(&self) -> bool {
        let filling = self.filling.lock().unwrap_or_else(PoisonError::into_inner);
        filling.blocks.iter().all(|(number, block)| self.read_block(*number) == *block)
    }

    /// Is it still what the page tables say?
    pub fn mapped(&self, space: &AddressSpace) -> bool {
        space.lookup(self.span.start).is_some_and(|span| self.lies_in(&span))
    }

    fn lies_in(&self, span: &Span) -> bool {
        (self.span.start, self.span.end, self.span.host) == (span.start, span.end, span.host)
            && span.rights.execute
            && Arc::ptr_eq(&self.span.backing, &span.backing)
    }

    /// Does it hold this address?
    #[inline(always)]
    pub fn holds(&self, pc: u64) -> bool {
        pc.wrapping_sub(self.start) / 4 < self.slots as u64
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let filling = self.filling.get_mut().unwrap_or_else(PoisonError::into_inner);
        for index in &filling.filled {
            // SAFETY: filled entries are whole, and nobody else refers to the table any more.
            unsafe { self.table.add(*index as usize).drop_in_place() };
        }
        // SAFETY: allocated with this layout.
        unsafe { dealloc(self.table.cast(), Code::layout(self.slots)) };
    }
}

/// Why no code can be had at an address.
pub struct NoCode {
    /// Fault to raise.
    pub kind: FaultKind,
    /// The rule that broke.
    pub detail: String,
}

/// Codes of an engine, kept across dispatches.
#[derive(Default)]
pub struct CodeCache {
    /// Where operations that are not exact are counted, if they are.
    pub met: Option<Arc<Met>>,
    codes: Mutex<Vec<Arc<Code>>>,
}

impl CodeCache {
    /// Code at `pc` as memory holds it now.
    pub fn get(&self, space: &AddressSpace, shape: Shape, pc: u64) -> Result<Arc<Code>, NoCode> {
        let Some(span) = space.lookup(pc) else {
            return Err(NoCode { kind: FaultKind::NotPresent, detail: "no page is mapped there".into() });
        };
        if !span.rights.execute {
            let detail = format!("the mapping {:#x}..{:#x} is not executable", span.start, span.end);
            return Err(NoCode { kind: FaultKind::NoExecute, detail });
        }
        let mut codes = self.codes.lock().unwrap_or_else(PoisonError::into_inner);
        let found = codes.iter().position(|code| code.shape == shape && code.holds(pc) && code.lies_in(&span));
        if let Some(index) = found {
            let code = codes.remove(index);
            if code.unchanged() {
                codes.push(code.clone());
                return Ok(code);
            }
        }
        if codes.len() >= KEEP {
            codes.remove(0);
        }
        let code = Arc::new(Code::new(span, shape, self.met.clone(), pc));
        codes.push(code.clone());
        Ok(code)
    }
}

/// The instruction with M0's index added to its VGPRs.
fn index(decoded: &Decoded, m0: u32) -> Decoded {
    let offset = (m0 & 0xff) as u16;
    let moved = |operand: Operand, which: u32| match operand {
        Operand::Vgpr { reg, dwords, hi } if m0 >> (12 + which) & 1 != 0 => {
            Operand::Vgpr { reg: reg.saturating_add(offset), dwords, hi }
        }
        other => other,
    };
    let mut indexed = decoded.clone();
    // The accumulator of `v_mac` is its destination.
    let tied = decoded.mnemonic.contains("mac_");
    for (slot, operand) in indexed.src.iter_mut().take(3).enumerate() {
        *operand = moved(*operand, if slot == 2 && tied { 3 } else { slot as u32 });
    }
    indexed.dst = moved(indexed.dst, 3);
    indexed
}

/// Is it an operation that VGPR indexing changes?
pub fn is_vector(decoded: &Decoded) -> bool {
    matches!(decoded.format, Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p)
}

/// Mnemonic of bytes that are no instruction.
const LONG: &str = ".long";

/// Text of an instruction, for reports.
pub fn text(target: Target, decoded: &Decoded, pc: u64) -> String {
    if decoded.mnemonic == LONG {
        let [a, b, c, d, ..] = decoded.bytes;
        return format!("{LONG} {:#010x}", u32::from_le_bytes([a, b, c, d]));
    }
    isa::disassemble(target, decoded, pc)
}

/// Is it an operation that MODE.VSKIP skips?
pub fn is_skipped(decoded: &Decoded) -> bool {
    !matches!(decoded.format, Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc | Format::Sopp | Format::Smem)
}

/// Stands for bytes that are no instruction.
fn undecodable(bytes: &[u8; 16]) -> Decoded {
    let mut kept = [0; 16];
    kept[..4].copy_from_slice(&bytes[..4]);
    Decoded {
        mnemonic: LONG,
        format: Format::Sopp,
        opcode: 0,
        len: 4,
        bytes: kept,
        dst: Operand::None,
        dst2: Operand::None,
        src: [Operand::None; 4],
        mods: Mods::default(),
        second: None,
    }
}

/// An entry that faults when it is reached.
fn refused(decoded: Decoded, reason: String) -> Inst {
    let mut inst = Inst::new(illegal, &decoded, Fidelity::Exact);
    if let Some(extra) = &mut inst.extra {
        extra.data = Some(Box::new(reason));
    }
    inst
}

/// Raises an illegal-instruction exception.
unsafe fn illegal(wave: &mut Wave, inst: &Inst) {
    let extra = inst.extra.as_ref();
    let reason = extra.and_then(|extra| extra.data.as_ref()?.downcast_ref::<String>());
    let detail = match (extra, reason) {
        (Some(extra), Some(reason)) if extra.decoded.mnemonic == LONG => reason.clone(),
        (Some(extra), Some(reason)) => format!("{}: {reason}", extra.decoded.mnemonic),
        _ => "no handler".to_string(),
    };
    let exec = wave.exec;
    wave.fault_at(inst, FaultKind::IllegalInstruction, None, exec, detail);
}

/// Lowers an instruction of any format.
pub fn lower(decoded: &Decoded, lowering: &mut Lowering) -> Result<Inst, Unsupported> {
    if lowering.target.unified_agprs() && operands(decoded).any(|operand| is_odd_tuple(*operand)) {
        return Err(Unsupported::Operand("operands of 64 bits and more begin at an even register on this target"));
    }
    let lowered = match decoded.format {
        Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc | Format::Sopp => salu::lower(decoded, lowering),
        Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vopd => {
            valu::lower(decoded, lowering)
        }
        Format::Smem | Format::Ds | Format::Flat | Format::Global | Format::Scratch | Format::Mubuf | Format::Mtbuf => {
            mem::lower(decoded, lowering)
        }
        Format::Mimg | Format::Exp | Format::Vintrp | Format::Ldsdir => Err(Unsupported::Operation),
    };
    let mut inst = lowered.map_err(|error| refusal::explain(decoded.mnemonic, error))?;
    inst.len = decoded.len;
    if reads_condition(decoded) || decoded.second.as_ref().is_some_and(|second| reads_condition(second)) {
        let fidelity = inst.extra.as_ref().map_or(Fidelity::Exact, |extra| extra.fidelity);
        let mut outer = Inst::new(with_conditions, decoded, fidelity);
        if let Some(extra) = &mut outer.extra {
            extra.data = Some(Box::new(inst));
        }
        return Ok(outer);
    }
    Ok(inst)
}

/// Destinations and sources.
fn operands(decoded: &Decoded) -> impl Iterator<Item = &Operand> {
    [&decoded.dst, &decoded.dst2].into_iter().chain(&decoded.src)
}

/// Is it two vector registers or more, the first of them odd?
fn is_odd_tuple(operand: Operand) -> bool {
    matches!(operand, Operand::Vgpr { reg, dwords: 2.., .. } | Operand::Agpr { reg, dwords: 2.. } if reg % 2 != 0)
}

fn reads_condition(decoded: &Decoded) -> bool {
    let condition = |operand: &Operand| {
        matches!(operand, Operand::Special { reg: Special::Vccz | Special::Execz | Special::Scc, .. })
    };
    decoded.src.iter().any(condition)
}

/// Runs an instruction that names VCCZ, EXECZ or SCC as a source.
unsafe fn with_conditions(wave: &mut Wave, inst: &Inst) {
    let vcc = wave.scalar64(scalar::VCC) & wave.full_mask();
    wave.scalar[scalar::VCCZ as usize] = (vcc == 0) as u32;
    wave.scalar[scalar::EXECZ as usize] = (wave.exec == 0) as u32;
    wave.scalar[scalar::SCC as usize] = wave.scc as u32;
    let data = inst.extra.as_ref().and_then(|extra| extra.data.as_ref());
    if let Some(inner) = data.and_then(|data| data.downcast_ref::<Inst>())
        && let Some(run) = inner.run
    {
        // SAFETY: lowered for this wave, as the outer instruction was.
        unsafe { run(wave, inner) }
    }
}
