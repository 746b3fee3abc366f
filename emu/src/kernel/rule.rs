//! Checks as tables: what must hold, the error otherwise, and the value to show.
//!
//! The tables are the single statement of the kernel's checks, in its order. When one fails, the trace names the rule
//! and the value that broke it, which the error number alone does not.

use super::Kernel;
use super::call::Call;
use super::process::{DeviceData, Inner};
use kfd::Errno;

/// One check of a request.
pub struct Rule<F: 'static> {
    /// The error when it does not hold.
    pub errno: Errno,
    /// What must hold.
    pub text: &'static str,
    /// The value it is about.
    pub value: fn(&F) -> u64,
    /// Whether it holds.
    pub holds: fn(&F) -> bool,
}

/// A rule without its functions, for listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// The error when it does not hold.
    pub errno: Errno,
    /// What must hold.
    pub text: &'static str,
}

/// Applies rules in order; the first that does not hold decides.
pub fn check<F>(kernel: &Kernel, call: &str, rules: &[Rule<F>], facts: &F) -> Result<(), Errno> {
    let Some(broken) = rules.iter().find(|rule| !(rule.holds)(facts)) else { return Ok(()) };
    kernel.note(|| {
        let value = (broken.value)(facts);
        // Addresses are not for reading in decimal.
        let decimal = if value < 1 << 32 { format!("{value} ({value:#x})") } else { format!("{value:#x}") };
        format!("{call}: {}: {}; it is {decimal}", broken.errno, broken.text)
    });
    Err(broken.errno)
}

/// The rules as texts.
pub fn texts<F>(rules: &[Rule<F>]) -> Vec<RuleText> {
    rules.iter().map(|rule| RuleText { errno: rule.errno, text: rule.text }).collect()
}

/// Writes a table: `ERRNO "what must hold": value => condition;`, both over the facts named behind `for`.
macro_rules! rules {
    ($(
        $(#[$meta:meta])*
        $name:ident for $facts:ident: $ty:ty {
            $($errno:ident $text:literal: $value:expr => $holds:expr;)*
        }
    )*) => {$(
        $(#[$meta])*
        pub const $name: &[$crate::kernel::rule::Rule<$ty>] = &[$(
            $crate::kernel::rule::Rule {
                errno: kfd::Errno::$errno,
                text: $text,
                value: {
                    fn value($facts: &$ty) -> u64 { ($value) as u64 }
                    value
                },
                holds: {
                    fn holds($facts: &$ty) -> bool { $holds }
                    holds
                },
            },
        )*];
    )*};
}

pub(crate) use rules;

/// What requests look at that only name a GPU.
pub struct GpuFacts {
    gpu_id: u32,
    known: bool,
    acquired: bool,
}

rules! {
    /// The GPU exists.
    GPU_KNOWN for f: GpuFacts {
        EINVAL "gpu_id is a GPU of the process": f.gpu_id => f.known;
    }

    /// The GPU is acquired; the kernel says ENODEV here.
    GPU_ACQUIRED for f: GpuFacts {
        EINVAL "gpu_id is a GPU of the process": f.gpu_id => f.known;
        ENODEV "ACQUIRE_VM was called for the GPU": f.gpu_id => f.acquired;
    }

    /// The GPU is acquired; the kernel says ESRCH here.
    GPU_BOUND for f: GpuFacts {
        EINVAL "gpu_id is a GPU of the process": f.gpu_id => f.known;
        ESRCH "ACQUIRE_VM was called for the GPU": f.gpu_id => f.acquired;
    }
}

impl Call<'_> {
    /// The record of a GPU that passes one of the tables `GPU_*`.
    pub fn gpu<'a>(
        &self,
        name: &str,
        rules: &[Rule<GpuFacts>],
        inner: &'a mut Inner,
        gpu_id: u32,
    ) -> Result<&'a mut DeviceData, Errno> {
        let index = inner.index(gpu_id).ok();
        let acquired = index.is_some_and(|index| inner.devices[index].vm.is_some());
        check(self.kernel, name, rules, &GpuFacts { gpu_id, known: index.is_some(), acquired })?;
        inner.device(gpu_id)
    }
}

/// All tables by request, in the order they are applied.
pub fn all() -> Vec<(&'static str, Vec<RuleText>)> {
    use super::{criu, debug, drm, event, memory, misc, mmap, queue, svm};
    let mut all = Vec::new();
    all.extend(misc::rule_texts());
    all.extend(memory::rule_texts());
    all.extend(queue::rule_texts());
    all.extend(event::ioctl::rule_texts());
    all.extend(svm::rule_texts());
    all.extend(debug::rule_texts());
    all.extend(criu::rule_texts());
    all.extend(mmap::rule_texts());
    all.extend(drm::rule_texts());
    all
}

/// What is checked in front of every handler.
const OF_EVERY_REQUEST: [RuleText; 3] = [
    RuleText {
        errno: Errno::ENOTTY,
        text: "the number, the low 8 bits, is in the table of the kernel's version; direction and magic are not looked at",
    },
    RuleText { errno: Errno::EBADF, text: "the process that opened the file is the caller" },
    RuleText { errno: Errno::EFAULT, text: "the argument can be read, as many bytes as the request's size field says" },
];

/// `docs/kfd-rules.md`: all tables, in the order of the request numbers.
pub fn document() -> String {
    use std::fmt::Write;
    let mut text = String::from(INTRODUCTION);
    let names: Vec<&str> = super::version::Rules::ALL.map(|rules| rules.name()).to_vec();
    // Writing to a String cannot fail.
    let _ = writeln!(text, "| | {} |\n|---|---|---|---|---|", names.join(" | "));
    for (what, values) in super::version::differences() {
        let _ = writeln!(text, "| {what} | {} |", values.join(" | "));
    }
    let number = |call: &str| {
        let name = call.split([' ', ',']).next().unwrap_or(call);
        kfd::uapi::IOCTLS.iter().find(|info| info.name == name).map(|info| info.nr)
    };
    let mut tables = all();
    tables.sort_by_key(|(call, _)| number(call).unwrap_or(u8::MAX));
    tables.insert(0, ("Every request", OF_EVERY_REQUEST.to_vec()));
    for (call, rules) in tables {
        let number = number(call).map(|nr| format!(" ({nr:#04x})")).unwrap_or_default();
        let _ = writeln!(text, "\n## {call}{number}\n\n| must hold | else |\n|---|---|");
        for rule in rules {
            let _ = writeln!(text, "| {} | {} |", rule.text.replace('|', "\\|"), rule.errno.name());
        }
    }
    text
}

const INTRODUCTION: &str = "\
# The KFD's rules

What the kernel checks of each request, in its order, and the error when it does not hold. The first rule that does not
hold decides. The emulated machine applies these very tables, and this page is written from them:
`cargo run -p kfdrun-conformance -- rules > docs/kfd-rules.md`. Errors of the host (no memory, no descriptors) come on
top. ENOTSUPP is 524, which is no error number of user space.

A shorter argument than the kernel's is filled up with zeros, of a longer one the rest is not looked at. Arguments of
requests that the kernel writes are copied back also when the request fails. Memory that an argument points to is looked
at where it is needed, EFAULT when it cannot be read or written.

How the rules are checked against a real kernel: [conformance.md](conformance.md).

## What differs by kernel version

`kfdrun --kernel-profile` chooses; 6.12-late is the default. Rules below that depend on the version say so.

";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Target;
    use crate::testing::Client;
    use kfd::uapi::{SetMemoryPolicyArgs, UpdateQueueArgs};
    use trace::Event;

    #[test]
    fn the_document_is_that_of_the_tables() {
        assert!(
            document() == include_str!("../../../docs/kfd-rules.md"),
            "docs/kfd-rules.md is stale: cargo run -p kfdrun-conformance -- rules > docs/kfd-rules.md"
        );
    }

    #[test]
    fn the_trace_names_the_broken_rule() {
        let client = Client::new(&[Target::Gfx1100]);
        client.call(&mut SetMemoryPolicyArgs { default_policy: 7, ..Default::default() }).unwrap_err();
        client.call(&mut UpdateQueueArgs { queue_priority: 16, ..Default::default() }).unwrap_err();
        let notes: Vec<String> = client
            .trace()
            .into_iter()
            .filter_map(|event| match event {
                Event::Note { text } => Some(text),
                _ => None,
            })
            .collect();
        insta::assert_snapshot!(notes.join("\n"));
    }
}
