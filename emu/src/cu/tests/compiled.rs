//! The repository's own test programs (`tests/programs/images`), as clang compiled them for every target.

use super::*;
use std::path::Path;

pub(super) const IMAGE: u64 = 0x100_0000;
const TARGETS: [Target; 7] = Target::ALL;

/// An image in memory: just enough of a loader for files we built ourselves.
pub struct Image {
    pub memory: Arc<Memory>,
    pub kernels: Vec<(String, u64)>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | *byte as u64)
}

impl Image {
    pub fn load(machine: &Machine, name: &str) -> Image {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/programs/images");
        let file = std::fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let segments: Vec<_> = (0..number(&file, 56, 2) as usize)
            .map(|index| number(&file, 32, 8) as usize + 56 * index)
            .map(|at| {
                let field = |offset| number(&file, at + offset, 8) as usize;
                // Type, offset, virtual address, file and memory size.
                (number(&file, at, 4), field(8), field(16), field(32), field(40))
            })
            .collect();
        let loads = segments.iter().filter(|segment| segment.0 == 1);
        let bytes = loads.clone().map(|(_, _, va, _, size)| va + size).max().unwrap().next_multiple_of(4096);
        let mut image = vec![0u8; bytes];
        for (_, offset, va, size, _) in loads {
            image[*va..va + size].copy_from_slice(&file[*offset..offset + size]);
        }

        let dynamic = segments.iter().find(|segment| segment.0 == 2).unwrap();
        let entries = (dynamic.1..dynamic.1 + dynamic.3).step_by(16);
        let tag = |want: u64| {
            let mut found = entries.clone().filter(|at| number(&file, *at, 8) == want);
            found.next().map_or(0, |at| number(&file, at + 8, 8) as usize)
        };
        for at in (tag(7)..tag(7) + tag(8)).step_by(24) {
            let [place, info, addend] = [0, 8, 16].map(|offset| number(&image, at + offset, 8));
            assert_eq!(info, 13, "R_AMDGPU_RELATIVE64");
            image[place as usize..][..8].copy_from_slice(&(IMAGE + addend).to_le_bytes());
        }
        // DT_HASH: the second word counts the symbols.
        let kernels = (0..number(&image, tag(4) + 4, 4) as usize)
            .map(|index| tag(6) + 24 * index)
            .map(|at| {
                let name = image[tag(5) + number(&image, at, 4) as usize..].iter().take_while(|byte| **byte != 0);
                (String::from_utf8(name.copied().collect()).unwrap(), IMAGE + number(&image, at + 8, 8))
            })
            .collect();

        let memory = Arc::new(Memory(image.chunks(4).map(|word| AtomicU32::new(number(word, 0, 4) as u32)).collect()));
        map(&machine.space, IMAGE, &memory, Rights { write: true, execute: true });
        Image { memory, kernels }
    }

    /// A dispatch of a kernel of this name with one dimension.
    pub fn dispatch(&self, machine: &Machine, kernel: &str, group: u16, grid: u32) -> Dispatch {
        let object = self.kernels.iter().find(|(name, _)| name.strip_suffix(".kd") == Some(kernel)).unwrap().1;
        let mut dispatch = machine.dispatch([group, 1, 1], [grid, 1, 1]);
        dispatch.packet[2] = 1;
        dispatch.packet[32..40].copy_from_slice(&object.to_le_bytes());
        let word = |offset: u64| self.memory.0[((object - IMAGE + offset) / 4) as usize].load(Ordering::Relaxed);
        set_group(&mut dispatch, word(0));
        // Scratch for a few waves, as the target's queue would have it.
        let private = word(4).max(if word(56) & 1 << 11 != 0 { 8192 } else { 0 });
        set_private(&mut dispatch, private);
        if private > 0 {
            let lanes = if word(56) & 1 << 10 != 0 { 32 } else { 64 };
            let late = matches!(machine.target, Target::Gfx1100 | Target::Gfx1201);
            let unit = if late { 256 } else { 1024 };
            let size = (private * lanes).div_ceil(unit);
            dispatch.scratch = Scratch {
                va: SCRATCH,
                wave64_lane_bytes: size * unit / 64,
                tmpring: size << 12 | if late { 1 } else { 2 },
                // Base, swizzle, size, and what ROCR writes into word 3.
                srd: [
                    SCRATCH as u32,
                    1 << 31,
                    SCRATCH_BYTES as u32,
                    if machine.target == Target::Gfx1030 { 0x2181_4fac } else { 0x00ea_4fac },
                ],
            };
        }
        // The dispatch packet and the implicit arguments are read by `group_size`.
        dispatch.packet_va = KERNARG + 0x800;
        for (index, word) in dispatch.packet.chunks(4).enumerate() {
            machine.kernarg.0[0x200 + index].store(number(word, 0, 4) as u32, Ordering::Relaxed);
        }
        dispatch
    }
}

/// Writes the implicit arguments behind `explicit` bytes: block counts, group sizes, remainders, grid dimensions.
pub fn implicit(machine: &Machine, explicit: usize, group: u16, grid: u32) {
    let at = explicit.next_multiple_of(8) / 4;
    let words = [grid / group as u32, 1, 1, group as u32 | 1 << 16, 1 | (grid % group as u32) << 16, 0];
    for (index, word) in words.into_iter().enumerate() {
        machine.kernarg.0[at + index].store(word, Ordering::Relaxed);
    }
    machine.kernarg.0[at + 16].store(1, Ordering::Relaxed);
}

/// Engines with other orders and widths: all must agree.
fn engines(target: Target) -> Vec<Engine> {
    let best = HostLevel::detect();
    let levels = [HostLevel::Base, HostLevel::Avx2, HostLevel::Avx512].into_iter().filter(|level| *level <= best);
    let mut engines: Vec<_> = levels.map(|level| Engine::new(target, 1, level)).collect();
    engines.push(Engine::new(target, 2, best));
    engines.extend((0..3).map(|seed| Engine::deterministic(target, best, seed)));
    engines
}

#[track_caller]
fn run(engine: &Engine, dispatch: &Dispatch, what: &str) {
    if let Err(fault) = engine.run(dispatch, &Idle::default()) {
        panic!("{} {what}: {fault:#?}", engine.target());
    }
}

#[test]
fn vector_addition() {
    for target in TARGETS {
        let machine = Machine::new(target);
        let image = Image::load(&machine, &format!("kernels.{target}"));
        for (index, va) in [DATA, DATA + 0x4000, DATA + 0x8000].into_iter().enumerate() {
            machine.argument(index, va);
        }
        machine.argument(3, 1000);
        implicit(&machine, 28, 96, 1056);
        for engine in engines(target) {
            for i in 0..1000 {
                machine.data.0[i].store((i as f32).to_bits(), Ordering::Relaxed);
                machine.data.0[0x1000 + i].store((0.5 * i as f32).to_bits(), Ordering::Relaxed);
                machine.data.0[0x2000 + i].store(0, Ordering::Relaxed);
            }
            run(&engine, &image.dispatch(&machine, "vecadd", 96, 1056), "vecadd");
            for i in 0..1056 {
                let want = if i < 1000 { (1.5 * i as f32).to_bits() } else { 0 };
                assert_eq!(machine.word(0x2000 + i), want, "{target} element {i}");
            }
        }
    }
}

#[test]
fn reduction_over_lds() {
    for target in TARGETS {
        let machine = Machine::new(target);
        let image = Image::load(&machine, &format!("kernels.{target}"));
        machine.argument(0, DATA);
        machine.argument(1, DATA + 0x8000);
        machine.argument(2, 1000);
        for i in 0..1024 {
            machine.data.0[i].store(i as u32 * 7, Ordering::Relaxed);
        }
        for engine in engines(target) {
            run(&engine, &image.dispatch(&machine, "reduce", 256, 1024), "reduce");
            for group in 0..4u32 {
                let want: u32 = (group * 256..(group * 256 + 256).min(1000)).map(|i| i * 7).sum();
                assert_eq!(machine.word(0x2000 + group as usize), want, "{target} group {group}");
            }
        }
    }
}

#[test]
fn data_stays_between_dispatches() {
    for target in TARGETS {
        let machine = Machine::new(target);
        let image = Image::load(&machine, &format!("kernels.{target}"));
        let engine = Engine::new(target, 1, HostLevel::detect());
        for count in 7..10 {
            run(&engine, &image.dispatch(&machine, "persist", 1, 1), "persist");
            assert_eq!(machine.word(0), count, "{target}");
        }
    }
}

/// Programs whose `_start` takes argc, argv, envp and where to put the result.
fn start(target: Target, name: &str, group: u16, grid: u32) -> u32 {
    let machine = Machine::new(target);
    let image = Image::load(&machine, name);
    // argv of one string, an empty one, at the end of the data.
    let (argv, envp, text) = (DATA + 0x8000, DATA + 0x8010, 0x8020);
    machine.data.0[0x8000 / 4].store((DATA + text) as u32, Ordering::Relaxed);
    machine.argument(0, 1);
    machine.argument(1, argv);
    machine.argument(2, envp);
    machine.argument(3, DATA);
    implicit(&machine, 32, group, grid);
    let engine = Engine::new(target, 2, HostLevel::detect());
    run(&engine, &image.dispatch(&machine, "_start", group, grid), name);
    machine.word(0)
}

#[test]
fn programs_return_their_value() {
    for target in TARGETS {
        assert_eq!(start(target, &format!("sum.{target}"), 1, 1), 0, "sum {target}");
        assert_eq!(start(target, &format!("data.{target}"), 1, 1), 0, "data {target}");
        assert_eq!(start(target, &format!("stack.{target}"), 1, 1), 9, "stack {target}");
        assert_eq!(start(target, &format!("groups.{target}"), 128, 128 * 5), 0, "groups {target}");
    }
    assert_eq!(start(Target::Gfx1100, "groups-wave64.gfx1100", 128, 128 * 5), 0);
}
