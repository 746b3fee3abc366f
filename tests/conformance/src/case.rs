//! What a case is.

use crate::session::{Session, Stop};

/// One case.
pub struct Case {
    /// Group: kfdtest's name where it has one for the subject.
    pub group: &'static str,
    /// Name within the group.
    pub name: &'static str,
    /// The kernel's rule that it checks.
    pub rule: &'static str,
    /// What it needs.
    pub needs: Needs,
    /// Whether a GPU in use by others may be bothered with it.
    pub safe: bool,
    /// The case.
    pub run: fn(&mut Session) -> Result<(), Stop>,
}

/// What a case needs besides `/dev/kfd`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    /// Nothing: what it checks is decided before a GPU is looked at.
    Kfd,
    /// A machine without GPUs.
    NoGpu,
    /// A GPU.
    Gpu,
}

impl Case {
    /// `group/name`.
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

/// Writes the cases of a module: `safe kfd name "rule" { body }`, where `safe` may be `risky` and `kfd` may be `no_gpu`
/// or `gpu`. The body sees the session by the name that is given in front.
macro_rules! cases {
    ($group:literal, $session:ident: $($safe:ident $needs:ident $name:ident $rule:literal $body:block)*) => {
        /// The cases of the group.
        pub const CASES: &[$crate::case::Case] = &[$(
            $crate::case::Case {
                group: $group,
                name: stringify!($name),
                rule: $rule,
                needs: $crate::case::cases!(@needs $needs),
                safe: $crate::case::cases!(@safe $safe),
                run: {
                    fn $name($session: &mut $crate::session::Session) -> Result<(), $crate::session::Stop> {
                        $body
                        Ok(())
                    }
                    $name
                },
            },
        )*];
    };
    (@needs kfd) => { $crate::case::Needs::Kfd };
    (@needs no_gpu) => { $crate::case::Needs::NoGpu };
    (@needs gpu) => { $crate::case::Needs::Gpu };
    (@safe safe) => { true };
    (@safe risky) => { false };
}

pub(crate) use cases;
