//! What to ask the compiler, and what its answers must be.

use crate::header::Header;
use kfd::uapi;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Constants that differ between interface versions by design.
const VERSIONED: [&str; 4] = ["KFD_IOCTL_MINOR_VERSION", "AMDKFD_COMMAND_END", "HSA_CAP_RESERVED", "HSA_CAP2_RESERVED"];

/// A question to the compiler: a C expression and the value `uapi` has for it.
#[derive(Debug)]
pub struct Question {
    /// What is compared, for people.
    pub what: String,
    /// C expression of an integer type.
    pub expression: String,
    /// Value in `uapi`.
    pub expected: u64,
    /// Kind, for the count.
    pub kind: Kind,
}

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Size of a structure.
    Structure,
    /// Offset and size of a member.
    Field,
    /// Request number.
    Request,
    /// Constant.
    Constant,
}

/// All questions a header can answer, and the names one of the two sides lacks.
#[derive(Debug, Default)]
pub struct Plan {
    /// Questions.
    pub questions: Vec<Question>,
    /// Names of `uapi` newer than the header: name and minor version.
    pub newer: Vec<(String, u32)>,
    /// Names of `uapi` that the header should have and has not.
    pub missing: Vec<String>,
    /// Names of the header that `uapi` has not.
    pub unknown: Vec<String>,
}

impl Plan {
    /// Makes the plan for a header of interface 1.`minor`.
    pub fn new(header: &Header, minor: u32) -> Plan {
        let mut plan = Plan::default();
        for layout in uapi::STRUCTS.iter().copied().flatten() {
            plan.structure(layout, header, minor);
        }
        let constants = uapi::CONSTANTS.iter().copied().flatten();
        for constant in constants.clone() {
            if header.constants.contains(constant.c_name) {
                // The cast drops the sign that `1 << 31` has in C.
                let ty = if constant.size == 4 { "unsigned int" } else { "unsigned long long" };
                plan.ask(
                    Kind::Constant,
                    constant.c_name.to_string(),
                    format!("({ty})({})", constant.c_name),
                    constant.value,
                );
            } else {
                plan.absent(constant.c_name.to_string(), constant.since, minor);
            }
        }
        for info in uapi::IOCTLS {
            let name = format!("AMDKFD_IOC_{}", info.name);
            if header.constants.contains(&name) {
                let expected = request_in(info, header);
                plan.ask(Kind::Request, name.clone(), name, expected);
            } else {
                plan.absent(name, info.since, minor);
            }
        }
        let last = uapi::IOCTLS.iter().filter(|info| info.since <= minor).map(|info| u64::from(info.nr)).max();
        let end = "AMDKFD_COMMAND_END";
        plan.ask(Kind::Constant, end.to_string(), end.to_string(), last.map_or(0, |last| last + 1));

        let structs: Vec<&str> = uapi::STRUCTS.iter().copied().flatten().map(|layout| layout.c_name).collect();
        plan.unknown.extend(
            header.structs.keys().filter(|name| !structs.contains(&name.as_str())).map(|name| format!("struct {name}")),
        );
        let known = |name: &str| {
            VERSIONED.contains(&name)
                || constants.clone().any(|constant| constant.c_name == name)
                || name
                    .strip_prefix("AMDKFD_IOC_")
                    .is_some_and(|name| uapi::IOCTLS.iter().any(|info| info.name == name))
        };
        plan.unknown.extend(header.constants.iter().filter(|name| !known(name)).cloned());
        plan
    }

    /// Asks about what is used of `drm/amdgpu_drm.h`. Of structures that are there in part, only members are compared.
    pub fn drm(&mut self) {
        for layout in uapi::DRM_STRUCTS {
            for field in layout.fields.iter().filter(|field| !field.c_name.is_empty()) {
                self.member(layout, field, field.c_name);
            }
        }
        let size = "sizeof(struct drm_amdgpu_info)";
        self.ask(
            Kind::Structure,
            "struct drm_amdgpu_info".to_string(),
            size.to_string(),
            size_of::<uapi::DrmInfo>() as u64,
        );
        let request = "DRM_IOCTL_AMDGPU_INFO";
        self.ask(Kind::Request, request.to_string(), request.to_string(), u64::from(uapi::DRM_IOCTL_AMDGPU_INFO));
        let query = "AMDGPU_INFO_DEV_INFO";
        self.ask(Kind::Constant, query.to_string(), query.to_string(), u64::from(uapi::DRM_INFO_DEV_INFO));
    }

    fn structure(&mut self, layout: &uapi::Layout, header: &Header, minor: u32) {
        let name = layout.c_name;
        let Some(members) = header.structs.get(name) else {
            return self.absent(format!("struct {name}"), layout.since, minor);
        };
        self.ask(Kind::Structure, format!("struct {name}"), format!("sizeof(struct {name})"), size_in(layout, header));
        for field in layout.fields.iter().filter(|field| !field.c_name.is_empty()) {
            let member = field.c_name.split('|').find(|c_name| c_name.split('.').all(|part| members.contains(part)));
            let Some(member) = member else {
                // A member that a later version appended or named.
                self.newer.push((format!("{name}.{}", field.name()), uapi::MINOR_VERSION));
                continue;
            };
            self.member(layout, field, member);
        }
    }

    fn member(&mut self, layout: &uapi::Layout, field: &uapi::FieldLayout, member: &str) {
        let name = layout.c_name;
        let expression = format!(
            "(unsigned long long)offsetof(struct {name}, {member}) << 32 | sizeof(((struct {name} *)0)->{member})"
        );
        let expected = (field.offset as u64) << 32 | field.size as u64;
        self.ask(Kind::Field, format!("{name}.{member} (offset << 32 | size)"), expression, expected);
    }

    fn ask(&mut self, kind: Kind, what: String, expression: String, expected: u64) {
        self.questions.push(Question { what, expression, expected, kind });
    }

    fn absent(&mut self, name: String, since: u32, minor: u32) {
        if since > minor {
            self.newer.push((name, since));
        } else {
            self.missing.push(name);
        }
    }

    /// A C program that prints the answers, one a line, in order.
    pub fn program(&self, includes: &[&str]) -> String {
        let mut text = String::from("#include <stddef.h>\n#include <stdio.h>\n");
        for include in includes {
            let _ = writeln!(text, "#include \"{include}\"");
        }
        text.push_str("int main(void)\n{\n");
        for question in &self.questions {
            let _ = writeln!(text, "\tprintf(\"%llx\\n\", (unsigned long long)({}));", question.expression);
        }
        text.push_str("\treturn 0;\n}\n");
        text
    }

    /// Compares the program's output with what `uapi` has: a line a mismatch.
    pub fn mismatches(&self, output: &str) -> Vec<String> {
        let answers: Vec<Option<u64>> = output.lines().map(|line| u64::from_str_radix(line, 16).ok()).collect();
        let mut lines: Vec<String> = Vec::new();
        for (i, question) in self.questions.iter().enumerate() {
            match answers.get(i).copied().flatten() {
                Some(answer) if answer == question.expected => {}
                Some(answer) => {
                    lines.push(format!("{}: header has {answer:#x}, uapi has {:#x}", question.what, question.expected))
                }
                None => lines.push(format!("{}: no answer from the compiled program", question.what)),
            }
        }
        lines.extend(self.missing.iter().map(|name| format!("{name}: in uapi, not in the header")));
        lines
    }

    /// How many questions there are of each kind.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for question in &self.questions {
            *counts.entry(question.kind).or_insert(0) += 1;
        }
        counts
    }
}

/// The size a structure has in a header that lacks its last members: where the first of those would start.
fn size_in(layout: &uapi::Layout, header: &Header) -> u64 {
    let Some(members) = header.structs.get(layout.c_name) else { return layout.size as u64 };
    let has = |c_name: &str| {
        c_name.is_empty() || c_name.split('|').any(|name| name.split('.').all(|part| members.contains(part)))
    };
    let lacking = layout.fields.iter().rev().take_while(|field| !has(field.c_name)).last();
    lacking.map_or(layout.size, |field| field.offset) as u64
}

fn request_in(info: &uapi::IoctlInfo, header: &Header) -> u64 {
    let size = info.layout.map_or(0, |layout| size_in(layout, header));
    u64::from(info.direction.request(info.nr, size as usize))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header;

    /// A header that declares just what `uapi` has up to 1.17, as far as names go.
    fn header() -> Header {
        let mut text = String::from("#define AMDKFD_COMMAND_END 0x27\n");
        for layout in uapi::STRUCTS.iter().copied().flatten() {
            let names: Vec<&str> = layout
                .fields
                .iter()
                .flat_map(|field| field.c_name.split('|').next_back()?.split('.').next_back())
                .collect();
            text += &format!("struct {} {{ {}; wave_state; }};\n", layout.c_name, names.join("; "));
        }
        for constant in uapi::CONSTANTS.iter().copied().flatten().filter(|constant| constant.since <= 17) {
            text += &format!("#define {} 1\n", constant.c_name);
        }
        for info in uapi::IOCTLS.iter().filter(|info| info.since <= 17) {
            text += &format!("#define AMDKFD_IOC_{} 1\n", info.name);
        }
        header::parse(&text)
    }

    fn right_answers(plan: &Plan) -> String {
        plan.questions.iter().map(|question| format!("{:x}\n", question.expected)).collect()
    }

    #[test]
    fn a_header_that_agrees() {
        let plan = Plan::new(&header(), 17);
        assert_eq!((&plan.missing, &plan.unknown), (&vec![], &vec![]));
        assert!(plan.newer.iter().any(|(name, since)| name == "AMDKFD_IOC_CREATE_PROCESS" && *since == 19));
        assert!(plan.mismatches(&right_answers(&plan)).is_empty());
        assert_eq!(plan.counts()[&Kind::Request], 38);
    }

    #[test]
    fn a_wrong_answer_is_named() {
        let plan = Plan::new(&header(), 17);
        let at = plan.questions.iter().position(|question| question.what == "struct kfd_ioctl_create_queue_args");
        let mut answers: Vec<String> = right_answers(&plan).lines().map(str::to_string).collect();
        answers[at.unwrap()] = "58".to_string();
        let expected = ["struct kfd_ioctl_create_queue_args: header has 0x58, uapi has 0x60"];
        assert_eq!(plan.mismatches(&answers.join("\n")), expected);
        assert_eq!(plan.mismatches("").len(), plan.questions.len());
    }

    #[test]
    fn names_only_one_side_has() {
        let mut header = header();
        header.constants.remove("KFD_IOC_QUEUE_TYPE_COMPUTE_AQL");
        header.constants.insert("KFD_IOC_QUEUE_TYPE_NEW".to_string());
        header.structs.insert("kfd_ioctl_new_args".to_string(), Default::default());
        let plan = Plan::new(&header, 17);
        assert_eq!(plan.missing, ["KFD_IOC_QUEUE_TYPE_COMPUTE_AQL"]);
        assert_eq!(plan.unknown, ["struct kfd_ioctl_new_args", "KFD_IOC_QUEUE_TYPE_NEW"]);
        assert_eq!(plan.mismatches(&right_answers(&plan)).len(), 1);
    }

    #[test]
    fn an_older_header_has_shorter_structures() {
        let mut header = header();
        let members = header.structs.get_mut("kfd_ioctl_create_queue_args").unwrap();
        members.remove("sdma_engine_id");
        members.remove("pad");
        let plan = Plan::new(&header, 16);
        let expected = |what: &str| plan.questions.iter().find(|question| question.what == what).unwrap().expected;
        assert_eq!(expected("struct kfd_ioctl_create_queue_args"), 88);
        assert_eq!(expected("AMDKFD_IOC_CREATE_QUEUE"), 0xc058_4b02);
    }
}
