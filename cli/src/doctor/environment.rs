//! Limits of this process, and variables that change what ROCR does. kfdrun obeys none of them.

use super::Line;
use super::host::Host;
use super::topology::Reading;
use kfd::{GfxTarget, System};

/// Address space below which reservations fail.
const ADDRESS_SPACE: u64 = 64 << 30;

/// The kernel's own default of `vm.max_map_count`.
const MAP_COUNT: u64 = 65530;

/// Descriptors below which a program with a few GPUs and shared buffers runs out.
const OPEN_FILES: u64 = 256;

/// Variables: name, what ROCR, its thunk or HIP do with it. A name that ends in `_` stands for all that start so.
const VARIABLES: [(&str, &str); 36] = [
    ("HSA_OVERRIDE_GFX_VERSION", "ROCR takes every GPU for another processor"),
    ("HSA_OVERRIDE_GFX_VERSION_", "ROCR takes one GPU for another processor"),
    ("ROCR_VISIBLE_DEVICES", "ROCR shows these GPUs only; the kernel ignores it"),
    ("HIP_VISIBLE_DEVICES", "HIP shows these GPUs only"),
    ("CUDA_VISIBLE_DEVICES", "HIP shows these GPUs only"),
    ("GPU_DEVICE_ORDINAL", "HIP and OpenCL show these GPUs only"),
    ("HSA_XNACK", "ROCR asks for page fault retry on (1) or off (0)"),
    ("HSA_ENABLE_SRAMECC", "ROCR takes SRAM ECC for on (1) or off (0)"),
    ("HSA_ENABLE_SDMA", "0: ROCR copies by kernels, not by copy engines"),
    ("HSA_ENABLE_PEER_SDMA", "0: ROCR copies between GPUs by kernels"),
    ("HSA_ENABLE_INTERRUPT", "0: ROCR polls signals and never sleeps"),
    ("HSA_ENABLE_DEBUG", "1: ROCR has the trap handler save the trap temporaries"),
    ("HSA_ENABLE_VM_FAULT_MESSAGE", "0: ROCR says nothing of a memory fault"),
    ("HSA_ENABLE_QUEUE_FAULT_MESSAGE", "0: ROCR says nothing of a queue error and does not abort"),
    ("HSA_SIGNAL_WAIT_ABORT_TIMEOUT", "ROCR aborts a wait after so many seconds"),
    ("HSA_TOOLS_LIB", "ROCR loads this library into the process"),
    ("HSA_CU_MASK", "ROCR leaves compute units out"),
    ("HSA_MAX_QUEUES", "ROCR makes so many queues at most"),
    ("HSA_SCRATCH_MEM", "ROCR limits scratch"),
    ("HSA_SCRATCH_SINGLE_LIMIT", "ROCR limits the scratch of one dispatch"),
    ("HSA_NO_SCRATCH_RECLAIM", "1: ROCR keeps scratch once it has it"),
    ("HSA_NO_SCRATCH_THREAD_LIMITER", "1: ROCR does not run fewer waves where scratch is short"),
    ("HSA_ALLOCATE_QUEUE_DEV_MEM", "1: ROCR puts rings in device memory"),
    ("HSA_FORCE_FINE_GRAIN_PCIE", "1: ROCR offers fine-grained device memory over PCI Express"),
    ("HSA_DISABLE_CACHE", "the thunk maps memory uncached"),
    ("HSA_DISABLE_FRAGMENT_ALLOCATOR", "1: ROCR allocates each buffer on its own"),
    ("HSA_CHECK_USERPTR", "the thunk checks user memory before it registers it"),
    ("HSA_USE_SVM", "0: the thunk does not use shared virtual memory"),
    ("HSA_ZFB", "1: the thunk uses system memory for device memory"),
    ("HSA_MAX_VA_ALIGN", "the thunk aligns large buffers to this many pages, as a power of two"),
    ("HSA_SVM_GUARD_PAGES", "0: the thunk leaves no pages between buffers"),
    ("HSA_MODEL_LIB", "the thunk talks to this library in place of the kernel"),
    ("HSA_MODEL_TOPOLOGY", "the thunk reads the topology from this folder"),
    ("HSAKMT_DEBUG_LEVEL", "the thunk says more on stderr"),
    ("AMD_LOG_LEVEL", "HIP logs"),
    ("LD_PRELOAD", "a library is loaded before all others and may stand between program and kernel"),
];

/// Names that are looked for, those of single GPUs written out.
pub fn known() -> impl Iterator<Item = String> {
    VARIABLES.iter().flat_map(|(name, _)| match name.ends_with('_') {
        false => vec![(*name).to_owned()],
        true => (0..16).map(|gpu| format!("{name}{gpu}")).collect(),
    })
}

/// RLIMIT_AS, RLIMIT_NOFILE, `vm.max_map_count`.
pub fn limits(system: &System, host: &Host) -> Vec<Line> {
    let facts = host.facts();
    let mut lines = Vec::new();
    lines.push(match facts.address_space {
        None => Line::good("address_space", "address space is not limited (RLIMIT_AS)"),
        Some(bytes) if bytes >= ADDRESS_SPACE => Line::good(
            "address_space",
            format!("address space is limited to {bytes} bytes (RLIMIT_AS), which is enough"),
        ),
        Some(bytes) => Line::warning(
            "address_space",
            format!(
                "address space is limited to {bytes} bytes (RLIMIT_AS): reserving addresses for GPU memory will fail"
            ),
            "ulimit -v unlimited",
        ),
    });
    if let Some(files) = facts.open_files.filter(|files| *files < OPEN_FILES) {
        let text = format!("{files} open files at most (RLIMIT_NOFILE): shared buffers and events take one each");
        lines.push(Line::warning("open_files", text, "ulimit -n 1024"));
    }
    let count = system.read("/proc/sys/vm/max_map_count").ok();
    let count = count.and_then(|bytes| std::str::from_utf8(&bytes).ok()?.trim().parse::<u64>().ok());
    lines.push(match count {
        None => Line::note("map_count", "/proc/sys/vm/max_map_count cannot be read"),
        Some(count) if count < MAP_COUNT => Line::warning(
            "map_count",
            format!("vm.max_map_count is {count}, below the kernel's default {MAP_COUNT}: each buffer is a mapping"),
            format!("sudo sysctl vm.max_map_count={MAP_COUNT}"),
        ),
        Some(count) => Line::good("map_count", format!("{count} mappings at most (vm.max_map_count)")),
    });
    lines
}

/// Variables that are set, and what that does to other runtimes.
pub fn variables(host: &Host, topology: &Reading) -> Vec<Line> {
    let mut lines = Vec::new();
    for (name, value) in host.facts().variables {
        let does = VARIABLES
            .iter()
            .find(|(known, _)| *known == name || known.ends_with('_') && name.starts_with(known))
            .map_or("", |(_, does)| *does);
        if value.is_empty() {
            let others = match name.as_str() {
                "ROCR_VISIBLE_DEVICES" => "; ROCR hides every GPU then",
                "HSA_OVERRIDE_GFX_VERSION" => "; some versions of ROCR take it for 0.0.0 and every GPU for gfx000",
                _ => "",
            };
            lines
                .push(Line::note("variable", format!("{name} is set and empty, which counts as not set here{others}")));
        } else if name.starts_with("HSA_OVERRIDE_GFX_VERSION") {
            lines.push(override_line(&name, &value, topology));
        } else {
            let text = format!("{name}={value}: {does}; kfdrun does not obey it");
            lines.push(Line::warning("variable", text, format!("unset {name}, unless it is meant")));
        }
    }
    if lines.is_empty() {
        lines.push(Line::good("variable", "no variable is set that changes what ROCR does"));
    }
    lines
}

/// The processor a version such as `10.3.0` names.
fn named(value: &str) -> Option<GfxTarget> {
    let numbers: Vec<u32> = value.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
    let [major, minor, stepping] = numbers.as_slice() else { return None };
    let version = major.checked_mul(10_000)?.checked_add(minor.checked_mul(100)?)?.checked_add(*stepping)?;
    GfxTarget::from_version(version).filter(|_| *minor < 16 && *stepping < 16)
}

fn override_line(name: &str, value: &str, topology: &Reading) -> Line {
    let unset = format!("unset {name}; look for it in ~/.profile, /etc/environment and container settings");
    let Some(target) = named(value) else {
        let text = format!("{name}={value} is not major.minor.stepping: what ROCR makes of it is not defined");
        return Line::warning("override", text, unset);
    };
    let real: Vec<GfxTarget> = topology.gpus().filter_map(kfd::Node::target).collect();
    let shown: Vec<String> = real.iter().map(GfxTarget::to_string).collect();
    let what = if shown.is_empty() { "no GPU is here".to_owned() } else { format!("the GPU is {}", shown.join(", ")) };
    let risk = if real.iter().any(|real| real.major() != target.major()) {
        "code of another generation hangs or resets the GPU"
    } else {
        "instructions the GPU does not have would fault"
    };
    let text = format!("{name}={value}: ROCR would take the GPU for {target}; {what}; {risk}; kfdrun does not obey it");
    Line::warning("override", text, unset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        assert_eq!(named("10.3.0").map(|target| target.to_string()), Some("gfx1030".to_owned()));
        assert_eq!(named("9.0.10").map(|target| target.to_string()), Some("gfx90a".to_owned()));
        for bad in ["", "10.3", "10.3.0.0", "0.0.0", "x", "10.3.-1", "4294967295.0.0", "9.0.99"] {
            assert_eq!(named(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_looked_for_once() {
        let mut names: Vec<String> = known().collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}
