//! Code that nobody meant: random instructions and damaged programs. Each dispatch ends by itself, with a fault, or when it
//! is cancelled; it never panics, never touches memory that is not mapped to the GPU, and never stops polling its host.
//! On one worker, every vector width leaves the same memory behind.
//!
//! `cargo test` runs a modest number of cases. A long run, with its seed printed:
//! `KFDRUN_FUZZ_SECONDS=1200 cargo test -p kfdrun-emu --lib any_code_for_long -- --ignored --nocapture`

use super::compiled::{IMAGE, Image, implicit};
use super::*;
use crate::isa::decode;
use crate::testing::Random;
use proptest::prelude::*;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use trace::FaultKind;

/// Turns of the scheduler a case may take.
const TURNS: u64 = 12;
/// Longest time for a case; anything near it is a hang.
const LIMIT: Duration = Duration::from_secs(60);

/// A host that cancels the dispatch after so many questions.
struct Budget(AtomicU64);

impl Host for Budget {
    fn interrupt(&self, _: u32) {}

    fn cancelled(&self) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed) >= TURNS
    }
}

/// How a case ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// All waves ended, or the budget was used up; instructions executed.
    Ran(u64),
    /// A fault of this kind at this address.
    Fault(FaultKind, Option<u64>),
}

fn end(result: Result<Done, Box<Fault>>) -> End {
    match result {
        Ok(done) => End::Ran(done.instructions),
        Err(fault) => {
            assert!(!fault.detail.is_empty() || fault.va.is_some(), "a fault without words: {fault:?}");
            End::Fault(fault.kind, fault.pc)
        }
    }
}

fn widths() -> impl Iterator<Item = HostLevel> {
    let best = HostLevel::detect();
    [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512].into_iter().filter(move |level| *level <= best)
}

/// One instruction of the target's, valid in most cases, with its operands at random.
fn instruction(target: Target, seed: u64, code: &mut Vec<u32>) {
    let mut random = Random(seed);
    let prefix = random.below(64) as u32;
    let plain = random.below(8) == 0;
    for _ in 0..32 {
        let mut words: [u32; 4] = std::array::from_fn(|_| random.bits() as u32);
        words[0] = words[0] >> 6 | prefix << 26;
        if random.below(2) == 0 {
            // Small offsets and low registers, which are more often valid together.
            words[1] &= 0x1f1f_1f1f;
        }
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        match decode(target, &bytes) {
            // An early end or a trap would hide what follows.
            Ok(decoded) if decoded.mnemonic.starts_with("s_endpgm") || decoded.mnemonic == "s_trap" => {}
            Ok(decoded) => return code.extend(&words[..usize::from(decoded.len) / 4]),
            Err(_) if plain => return code.push(words[0]),
            Err(_) => {}
        }
    }
}

/// A whole program: registers with plausible contents, random instructions, some registers stored.
fn program(target: Target, random: &mut Random, instructions: &[u64]) -> Vec<u32> {
    use crate::isa::Family::*;
    let family = target.family();
    let (s_mov, m0) = match family {
        Gfx9 => (0xbe80_00ff, 124),
        Gfx10 => (0xbe80_03ff, 124),
        Gfx11 | Gfx12 => (0xbe80_00ff, 125),
    };
    let shift: u32 = match family {
        Gfx9 => 0x24,
        Gfx10 => 0x34,
        Gfx11 | Gfx12 => 0x30,
    };
    let mut code = vec![shift << 24 | 255 << 17 | 0x82, shift << 24 | 254 << 17 | 0x84]; // v255 = v0 << 2, v254 = v0 << 4
    // Pairs of SGPRs and VGPRs are addresses of data, odd ones also the zero of a 32-bit offset.
    for register in (8..80).step_by(2) {
        let address = DATA as u32 + random.below(0x8000) as u32 * 2;
        code.extend([s_mov | register << 16, address, s_mov | (register + 1) << 16, random.below(5) as u32 / 4]);
    }
    for register in (0..48u32).step_by(2) {
        let low = match random.below(4) {
            0 => random.bits() as u32,
            _ => DATA as u32 + random.below(0x4000) as u32 * 4,
        };
        code.extend([0x7e00_02ff | register << 17, low]);
        let high = (register + 1) << 17;
        match random.below(4) {
            0 => code.extend([0x7e00_02ff | high, random.bits() as u32]),
            1 => code.push(0x7e00_0300 | high | random.below(256) as u32),
            _ => code.push(0x7e00_0280 | high),
        }
    }
    code.extend([s_mov | m0 << 16, random.bits() as u32 >> random.below(32)]);
    for seed in instructions {
        instruction(target, *seed, &mut code);
    }
    // s[10:11] = data, EXEC = all, then eight registers to [s10 + v255].
    for number in 0..8u32 {
        code.extend([s_mov | 10 << 16, DATA as u32 + number * 0x400, s_mov | 11 << 16, 0]);
        code.extend([s_mov | 126 << 16, u32::MAX, s_mov | 127 << 16, u32::MAX]);
        let data = random.below(64) as u32;
        match family {
            Gfx9 | Gfx10 => code.extend([0xdc70_8000, 0x000a_00ff | data << 8]),
            Gfx11 => code.extend([0xdc6a_0000, 0x000a_00ff | data << 8]),
            Gfx12 => code.extend([0xee06_800a, data << 23, 0xff]),
        }
    }
    code.push(if matches!(family, Gfx9 | Gfx10) { 0xbf81_0000 } else { 0xbfb0_0000 });
    code
}

/// Does the code read clocks or the machine's state anywhere?
fn reads_time(target: Target, code: &[u32]) -> bool {
    (0..code.len()).any(|at| {
        let bytes: Vec<u8> = code[at..].iter().take(4).flat_map(|word| word.to_le_bytes()).collect();
        decode(target, &bytes).is_ok_and(|decoded| {
            let names = ["s_memtime", "s_memrealtime", "s_getreg_b32", "s_sendmsg_rtn"];
            names.iter().any(|name| decoded.mnemonic.starts_with(name))
        })
    })
}

/// Runs random instructions at every vector width. Returns dispatches run.
fn random_code(target: Target, seed: u64, instructions: &[u64]) -> u64 {
    let mut random = Random(seed);
    let code = program(target, &mut random, instructions);
    let mut descriptor = Descriptor::new(target);
    let wave64 = target.family() == crate::isa::Family::Gfx9 || random.below(2) == 0;
    if wave64 {
        descriptor.properties &= !(1 << 10);
    }
    // The most registers, mostly; any MODE.
    let granules = match target {
        Target::Gfx90a | Target::Gfx942 => 63,
        Target::Gfx900 | Target::Gfx906 => 63,
        _ if wave64 => 63,
        _ => 31,
    };
    let mode = if random.below(2) == 0 { 0xaf } else { random.below(256) as u32 };
    let flags = (random.below(2) as u32) << 21 | (random.below(2) as u32) << 23 | (random.below(2) as u32) << 26;
    descriptor.rsrc1 = granules | mode << 12 | if target.family() == crate::isa::Family::Gfx12 { 0 } else { flags };
    // Scratch, the flat scratch registers where a descriptor can ask for them, X ids.
    descriptor.rsrc2 = 1 | 2 << 1 | 1 << 7;
    if target.unified_agprs() {
        descriptor.rsrc3 = 63;
    }
    let group = 1 + random.below(if wave64 { 64 } else { 128 }) as u16;
    let grid = 1 + random.below(2 * u64::from(group)) as u32;
    let lds = random.below(5) as u32 * 1024;

    let compare = !reads_time(target, &code);
    let mut first = None;
    let mut runs = 0;
    for level in widths() {
        let machine = Machine::new(target);
        machine.load(descriptor, &code);
        for (index, word) in machine.data.0.iter().enumerate() {
            word.store((index as u32).wrapping_mul(0x9e37_79b9), Ordering::Relaxed);
        }
        let mut dispatch = machine.dispatch([group, 1, 1], [grid, 1, 1]);
        set_group(&mut dispatch, lds);
        set_private(&mut dispatch, 64);
        let late = matches!(target, Target::Gfx1100 | Target::Gfx1201);
        let unit = if late { 256 } else { 1024 };
        dispatch.scratch = Scratch {
            va: SCRATCH,
            wave64_lane_bytes: 64,
            tmpring: (4096 / unit) << 12 | if late { 4 } else { 8 },
            srd: [SCRATCH as u32, 1 << 31, SCRATCH_BYTES as u32, 0x00ea_4fac],
        };
        let result = Engine::new(target, 1, level).run(&dispatch, &Budget(AtomicU64::new(0)));
        runs += 1;
        if let Err(fault) = &result {
            assert!(!matches!(fault.kind, FaultKind::Packet(_)), "{target}: the case itself is wrong: {fault:?}");
        }
        let memory: Vec<u32> = machine.data.0.iter().map(|word| word.load(Ordering::Relaxed)).collect();
        let state = (end(result), memory);
        match &first {
            _ if !compare => {}
            None => first = Some((level, state)),
            Some((other, expected)) => {
                assert_eq!(state.0, expected.0, "{target} seed {seed:#x}: {level:?} and {other:?} end differently");
                let differs = (0..state.1.len()).find(|at| state.1[*at] != expected.1[*at]);
                assert_eq!(
                    differs.map(|at| (at, state.1[at], expected.1[at])),
                    None,
                    "{target} seed {seed:#x}: {level:?} and {other:?} leave different data\n{}",
                    listing(target, &code)
                );
            }
        }
    }
    runs
}

/// Disassembly of the random part, for a failure's report.
fn listing(target: Target, code: &[u32]) -> String {
    let mut at = 0;
    let mut text = String::new();
    while at < code.len() {
        let bytes: Vec<u8> = code[at..].iter().take(4).flat_map(|word| word.to_le_bytes()).collect();
        match decode(target, &bytes) {
            Ok(decoded) => {
                text += &format!("{:4} {}\n", at, crate::isa::disassemble(target, &decoded, 0));
                at += usize::from(decoded.len) / 4;
            }
            Err(_) => {
                text += &format!("{at:4} {:#010x}\n", code[at]);
                at += 1;
            }
        }
    }
    text
}

/// Runs a program of the repository after `flips` bits of its code changed.
fn damaged_image(target: Target, seed: u64) -> u64 {
    let mut random = Random(seed);
    let machine = Machine::new(target);
    let programs = ["kernels", "sum", "data", "stack", "groups"];
    let name = programs[random.below(programs.len() as u64) as usize];
    let image = Image::load(&machine, &format!("{name}.{target}"));
    let kernels: Vec<&str> = image.kernels.iter().filter_map(|(name, _)| name.strip_suffix(".kd")).collect();
    let kernel = kernels[random.below(kernels.len() as u64) as usize];
    let object = image.kernels.iter().find(|(name, _)| name.strip_suffix(".kd") == Some(kernel)).unwrap().1;
    let word = |offset: u64| image.memory.0[((object - IMAGE + offset) / 4) as usize].load(Ordering::Relaxed);
    let entry = object.wrapping_add(u64::from(word(16)) | u64::from(word(20)) << 32);
    // What follows the entry is code of this kernel or of another.
    let first = ((entry - IMAGE) / 4) as usize;
    let span = (image.memory.0.len() - first).min(1 << random.below(10)) as u64;
    for _ in 0..1 + random.below(8) {
        let at = first + random.below(span) as usize;
        image.memory.0[at].fetch_xor(1 << random.below(32), Ordering::Relaxed);
    }
    let group = 1 + random.below(256) as u16;
    let grid = 1 + random.below(512) as u32;
    for (index, va) in [DATA, DATA + 0x4000, DATA + 0x8000].into_iter().enumerate() {
        machine.argument(index, va);
    }
    machine.argument(3, DATA + 0x100);
    implicit(&machine, 32, group, grid);
    let dispatch = image.dispatch(&machine, kernel, group, grid);
    let level = widths().nth(random.below(widths().count() as u64) as usize).unwrap();
    let engine = match random.below(3) {
        0 => Engine::deterministic(target, level, seed),
        workers => Engine::new(target, workers as usize, level),
    };
    end(engine.run(&dispatch, &Budget(AtomicU64::new(0))));
    1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_instructions_end(
        target in 0..Target::ALL.len(),
        seed: u64,
        instructions in proptest::collection::vec(any::<u64>(), 1..40),
    ) {
        random_code(Target::ALL[target], seed, &instructions);
    }

    #[test]
    fn damaged_programs_end(target in 0..Target::ALL.len(), seed: u64) {
        damaged_image(Target::ALL[target], seed);
    }
}

/// A case of the long run.
fn case(seed: u64) -> u64 {
    let mut random = Random(seed);
    let target = Target::ALL[random.below(Target::ALL.len() as u64) as usize];
    if random.below(4) == 0 {
        return damaged_image(target, random.bits());
    }
    let count = 1 + random.below(48);
    let instructions: Vec<u64> = (0..count).map(|_| random.bits()).collect();
    random_code(target, random.bits(), &instructions)
}

#[test]
#[ignore = "runs for KFDRUN_FUZZ_SECONDS"]
fn any_code_for_long() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seconds = number("KFDRUN_FUZZ_SECONDS").unwrap_or(60);
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let seed = number("KFDRUN_FUZZ_SEED").unwrap_or(clock);
    let cases = number("KFDRUN_FUZZ_CASES").unwrap_or(u64::MAX);
    // The case in progress, for a run that the host ends: KFDRUN_FUZZ_SEED=that KFDRUN_FUZZ_CASES=1 repeats it.
    let place = std::env::temp_dir().join(format!("kfdrun-fuzz-{}", std::process::id()));
    println!("cases from seed {seed}; the case in progress is in {}", place.display());
    let started = Instant::now();
    let (mut count, mut runs) = (0, 0);
    let current = Arc::new(AtomicU64::new(0));
    let watched = current.clone();
    std::thread::spawn(move || {
        let mut last = (0, Instant::now());
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let now = watched.load(Ordering::Relaxed);
            if now != last.0 {
                last = (now, Instant::now());
            } else if last.1.elapsed() > LIMIT {
                println!("case {now} hangs");
                std::process::abort();
            }
        }
    });
    let mut said = 0;
    while count < cases && started.elapsed().as_secs() < seconds {
        let case_seed = seed.wrapping_add(count);
        current.store(case_seed, Ordering::Relaxed);
        std::fs::write(&place, format!("{case_seed}\n")).unwrap();
        match std::panic::catch_unwind(|| case(case_seed)) {
            Ok(more) => runs += more,
            Err(panic) => {
                println!("case {case_seed} fails");
                std::panic::resume_unwind(panic);
            }
        }
        count += 1;
        if started.elapsed().as_secs() / 60 > said {
            said += 1;
            println!("{count} cases, {runs} dispatches in {} s", started.elapsed().as_secs());
        }
    }
    let _ = std::fs::remove_file(&place);
    println!("{count} cases, {runs} dispatches in {} s", started.elapsed().as_secs());
}
