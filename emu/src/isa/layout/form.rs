//! Forms: formats with their control dwords.

use super::super::{Decoded, Dpp, Format};
use super::named;

named! {
    /// A format with its control dword.
    Form {
        Sop1 = "sop1",
        Sop2 = "sop2",
        Sopk = "sopk",
        Sopc = "sopc",
        Sopp = "sopp",
        Smem = "smem",
        Vop1 = "vop1",
        Vop1Dpp = "vop1.dpp",
        Vop1Dpp8 = "vop1.dpp8",
        Vop1Sdwa = "vop1.sdwa",
        Vop2 = "vop2",
        Vop2Dpp = "vop2.dpp",
        Vop2Dpp8 = "vop2.dpp8",
        Vop2Sdwa = "vop2.sdwa",
        Vopc = "vopc",
        VopcDpp = "vopc.dpp",
        VopcDpp8 = "vopc.dpp8",
        VopcSdwa = "vopc.sdwa",
        Vop3 = "vop3",
        Vop3Dpp = "vop3.dpp",
        Vop3Dpp8 = "vop3.dpp8",
        Vop3p = "vop3p",
        Vop3pDpp = "vop3p.dpp",
        Vop3pDpp8 = "vop3p.dpp8",
        VopdX = "vopd.x",
        VopdY = "vopd.y",
        Ds = "ds",
        Flat = "flat",
        Global = "global",
        Scratch = "scratch",
        Mubuf = "mubuf",
        Mtbuf = "mtbuf",
    }
}

impl Form {
    /// The format it belongs to.
    pub fn format(self) -> Format {
        match self {
            Form::Sop1 => Format::Sop1,
            Form::Sop2 => Format::Sop2,
            Form::Sopk => Format::Sopk,
            Form::Sopc => Format::Sopc,
            Form::Sopp => Format::Sopp,
            Form::Smem => Format::Smem,
            Form::Vop1 | Form::Vop1Dpp | Form::Vop1Dpp8 | Form::Vop1Sdwa => Format::Vop1,
            Form::Vop2 | Form::Vop2Dpp | Form::Vop2Dpp8 | Form::Vop2Sdwa => Format::Vop2,
            Form::Vopc | Form::VopcDpp | Form::VopcDpp8 | Form::VopcSdwa => Format::Vopc,
            Form::Vop3 | Form::Vop3Dpp | Form::Vop3Dpp8 => Format::Vop3,
            Form::Vop3p | Form::Vop3pDpp | Form::Vop3pDpp8 => Format::Vop3p,
            Form::VopdX | Form::VopdY => Format::Vopd,
            Form::Ds => Format::Ds,
            Form::Flat => Format::Flat,
            Form::Global => Format::Global,
            Form::Scratch => Format::Scratch,
            Form::Mubuf => Format::Mubuf,
            Form::Mtbuf => Format::Mtbuf,
        }
    }

    /// The form of a decoded instruction; `second` says that it is the Y half of a VOPD.
    pub fn of(decoded: &Decoded, second: bool) -> Option<Form> {
        let dpp = |plain, dpp, dpp8| match decoded.mods.dpp {
            None => plain,
            Some(Dpp::Dpp16 { .. }) => dpp,
            Some(Dpp::Dpp8 { .. }) => dpp8,
        };
        let sdwa = decoded.mods.sdwa.is_some();
        Some(match decoded.format {
            Format::Sop1 => Form::Sop1,
            Format::Sop2 => Form::Sop2,
            Format::Sopk => Form::Sopk,
            Format::Sopc => Form::Sopc,
            Format::Sopp => Form::Sopp,
            Format::Smem => Form::Smem,
            Format::Vop1 if sdwa => Form::Vop1Sdwa,
            Format::Vop1 => dpp(Form::Vop1, Form::Vop1Dpp, Form::Vop1Dpp8),
            Format::Vop2 if sdwa => Form::Vop2Sdwa,
            Format::Vop2 => dpp(Form::Vop2, Form::Vop2Dpp, Form::Vop2Dpp8),
            Format::Vopc if sdwa => Form::VopcSdwa,
            Format::Vopc => dpp(Form::Vopc, Form::VopcDpp, Form::VopcDpp8),
            Format::Vop3 => dpp(Form::Vop3, Form::Vop3Dpp, Form::Vop3Dpp8),
            Format::Vop3p => dpp(Form::Vop3p, Form::Vop3pDpp, Form::Vop3pDpp8),
            Format::Vopd if second => Form::VopdY,
            Format::Vopd => Form::VopdX,
            Format::Ds => Form::Ds,
            Format::Flat => Form::Flat,
            Format::Global => Form::Global,
            Format::Scratch => Form::Scratch,
            Format::Mubuf => Form::Mubuf,
            Format::Mtbuf => Form::Mtbuf,
            Format::Mimg | Format::Exp | Format::Vintrp | Format::Ldsdir => return None,
        })
    }

    /// The form without its control dword.
    pub fn base(self) -> Form {
        match self.format() {
            Format::Vop1 => Form::Vop1,
            Format::Vop2 => Form::Vop2,
            Format::Vopc => Form::Vopc,
            Format::Vop3 => Form::Vop3,
            Format::Vop3p => Form::Vop3p,
            _ => self,
        }
    }

    /// The control dword that makes this form of its base.
    pub fn extension(self) -> Extension {
        match self {
            Form::Vop1Dpp | Form::Vop2Dpp | Form::VopcDpp | Form::Vop3Dpp | Form::Vop3pDpp => Extension::Dpp16,
            Form::Vop1Dpp8 | Form::Vop2Dpp8 | Form::VopcDpp8 | Form::Vop3Dpp8 | Form::Vop3pDpp8 => Extension::Dpp8,
            Form::Vop1Sdwa | Form::Vop2Sdwa | Form::VopcSdwa => Extension::Sdwa,
            _ => Extension::None,
        }
    }
}

/// What stands in place of source 0 and adds a control dword.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Extension {
    None,
    Dpp16,
    Dpp8,
    Sdwa,
}
