//! Error numbers, with what the KFD means by them.

use super::input::Number;
use super::{Reading, row};
use kfd::{Errno, Error};

/// Numbers that have a name on Linux, and the one of the KFD's that has none in user space.
fn named() -> impl Iterator<Item = Errno> {
    (1..=133).map(Errno::from_raw).filter(|errno| !errno.name().starts_with("errno")).chain([Errno::ENOTSUPP])
}

/// The error with this name, `-EINVAL` for `EINVAL` too.
pub fn find(name: &str) -> Option<Errno> {
    let name = name.trim_start_matches('-');
    let same = |errno: &Errno| errno.name().eq_ignore_ascii_case(name);
    named().find(same).or_else(|| match name.to_ascii_uppercase().as_str() {
        "EWOULDBLOCK" => Some(Errno::EAGAIN),
        "ENOTSUP" => named().find(|errno| errno.name() == "EOPNOTSUPP"),
        _ => None,
    })
}

/// What an error's name means.
pub fn name(name: &str) -> Option<Reading> {
    find(name).map(|errno| reading(errno, 100))
}

/// What a number means as an error: also negative, as the kernel has it.
pub fn number(number: Number) -> Option<Reading> {
    let raw = if number.negative { number.value.wrapping_neg() } else { number.value };
    let raw = i32::try_from(raw).ok()?;
    let errno = named().find(|errno| errno.raw() == raw)?;
    // 40 to 47 are HSA statuses too, which are printed in hexadecimal or by name.
    Some(reading(errno, if number.negative { 100 } else { number.likely(30, 90) }))
}

fn title(errno: Errno) -> String {
    let words = match errno {
        Errno::ENOTSUPP => "not supported; libc has no name for it and prints 'Unknown error 524'",
        errno => nix::errno::Errno::from_raw(errno.raw()).desc(),
    };
    format!("{errno}: {words}")
}

fn reading(errno: Errno, likely: u8) -> Reading {
    let mut rows = Vec::new();
    if let Some((rule, advice)) = of_open(errno) {
        rows.push(row("open /dev/kfd", "", sentence(&rule, &advice)));
    }
    if let Some((rule, advice)) = create_queue(errno) {
        rows.push(row("CREATE_QUEUE", "", sentence(rule, advice)));
    }
    for rule in kfd::error_rules().iter().filter(|rule| rule.errno == errno) {
        let name = if rule.name.is_empty() { "any other ioctl" } else { rule.name };
        rows.push(row(name, "", sentence(rule.rule, rule.advice)));
    }
    let reading = Reading::new("errno", likely, title(errno));
    if rows.is_empty() {
        return reading.note("The KFD gives it no meaning of its own.");
    }
    let note = format!("`explain CREATE_QUEUE {}` and the like list what one ioctl checks.", errno.name());
    reading.section("From the KFD", rows).note(note)
}

fn sentence(rule: &str, advice: &str) -> String {
    if advice.is_empty() { rule.to_owned() } else { format!("{rule} -> {advice}") }
}

/// What `open` of `/dev/kfd` means by it.
fn of_open(errno: Errno) -> Option<(String, String)> {
    let path = || kfd::DEV_KFD.to_owned();
    let error = match errno {
        Errno::ENOMEM => Error::NoUsableGpu,
        Errno::ENOENT => {
            let rule = "there is no device node: no amdgpu module, a container it was not passed to, or WSL";
            return Some((rule.to_owned(), "kfdrun doctor tells which".to_owned()));
        }
        Errno::EACCES | Errno::EPERM => Error::Permission { path: path(), errno, permissions: None },
        errno => Error::Open { path: path(), errno },
    };
    let rule = error.rule().or_else(|| match errno {
        Errno::EACCES => Some("the mode of the node does not let this process in".to_owned()),
        Errno::EPERM => Some("a device cgroup or a security module does not let this process in".to_owned()),
        _ => None,
    })?;
    Some((rule, error.advice().unwrap_or_default()))
}

fn create_queue(errno: Errno) -> Option<(&'static str, &'static str)> {
    match errno {
        Errno::EINVAL => Some((
            "a field breaks one of the rules that `explain CREATE_QUEUE` lists",
            "kfdrun prints each field with its rule when it happens",
        )),
        errno => kfd::create_queue_rule(errno),
    }
}

/// The checks of an ioctl that end in this error, in the order of the kernel; all of them without an error.
pub fn checks(call: &str, errno: Option<Errno>) -> Vec<[String; 3]> {
    let all = emu::kernel::rule::all();
    // Operations of a request have tables of their own, such as `DBG_TRAP ENABLE`.
    let operation = |name: &'static str| name.strip_prefix(call).and_then(|rest| rest.strip_prefix(' '));
    let rules = all.iter().filter_map(|(name, rules)| match operation(name) {
        Some(operation) => Some((format!("{operation}: "), rules)),
        None => (*name == call).then(|| (String::new(), rules)),
    });
    let rules = rules.flat_map(|(operation, rules)| rules.iter().map(move |rule| (operation.clone(), rule)));
    let wanted = rules.filter(|(_, rule)| errno.is_none_or(|errno| rule.errno == errno));
    wanted.map(|(operation, rule)| row(rule.errno.name(), "", format!("{operation}{}", rule.text))).collect()
}

/// What an error means of one ioctl.
pub fn of_call(call: &'static str, errno: Errno) -> Option<Reading> {
    let known = match call {
        "CREATE_QUEUE" => create_queue(errno),
        _ => kfd::find_error_rule(call, errno).map(|rule| (rule.rule, rule.advice)),
    };
    let checks = checks(call, Some(errno));
    let mut reading = Reading::new("errno", 100, format!("{call}: {}", title(errno)));
    match known {
        Some((rule, advice)) => {
            reading = reading.section("", vec![row("rule", "", rule), row("do", "", advice)]);
        }
        None if checks.is_empty() => {
            reading = reading.note(format!("No rule of {call} is known here that ends in {}.", errno.name()));
        }
        None => {}
    }
    let rows = checks.into_iter().map(|[_, _, text]| row("", "", text)).collect();
    Some(reading.section("One of these does not hold (they are checked in this order)", rows))
}
