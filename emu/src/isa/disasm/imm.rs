//! Immediates of scalar instructions: hardware registers, messages, wait counts.

use super::super::Family;
use super::super::table::{Kind, Names, OperandRow, Type};
use super::super::targets::{Waits, wait_counts};
use super::Printer;

impl Printer<'_> {
    /// An immediate, as the row's type has it.
    pub(super) fn immediate(&mut self, value: i32, row: &OperandRow) {
        let bits = value as u32 & 0xffff;
        if row.kind == Kind::Msg {
            return self.message(bits, Names::SendmsgRtn);
        }
        match row.ty {
            Type::Hex => self.push(format_args!("{bits:#x}")),
            Type::Hwreg => self.hwreg(bits),
            Type::Sendmsg => self.message(bits, Names::Sendmsg),
            Type::Waitcnt => self.waitcnt(bits),
            Type::Depctr => self.depctr(bits),
            Type::Delay => self.delay(bits),
            Type::Version => self.version(bits),
            Type::GprIdx => self.gpr_idx(bits),
            Type::U16 if bits > 64 => self.push(format_args!("{bits:#x}")),
            _ => self.push(format_args!("{bits}")),
        }
    }

    /// `simm16` of `s_getreg`: id in bits 5:0, offset in 10:6, size minus one in 15:11.
    fn hwreg(&mut self, bits: u32) {
        let (id, offset, size) = (bits & 63, bits >> 6 & 31, (bits >> 11) + 1);
        match self.table.name(Names::Hwreg, id) {
            Some(name) => self.push(format_args!("hwreg({name}")),
            None => self.push(format_args!("hwreg({id}")),
        }
        if (offset, size) != (0, 32) {
            self.push(format_args!(", {offset}, {size}"));
        }
        self.text.push(')');
    }

    fn message(&mut self, bits: u32, group: Names) {
        // GFX11 widened the message and dropped operation and stream.
        let (known, id, op, stream) = match self.family {
            Family::Gfx9 | Family::Gfx10 => (bits & 0x37f, bits & 15, bits >> 4 & 7, bits >> 8 & 3),
            _ => (bits & 0xff, bits & 0xff, 0, 0),
        };
        match self.table.name(group, known) {
            Some(name) => self.push(format_args!("sendmsg({})", name.replace(',', ", "))),
            None if known == bits => self.push(format_args!("sendmsg({id}, {op}, {stream})")),
            None => self.push(format_args!("{bits}")),
        }
    }

    /// Counters that are waited for; all of them when none is.
    fn waitcnt(&mut self, bits: u32) {
        let (waits, limits) = (wait_counts(self.target, bits as u16), Waits::none(self.target));
        let counters =
            [("vmcnt", waits.vm, limits.vm), ("expcnt", waits.exp, limits.exp), ("lgkmcnt", waits.lgkm, limits.lgkm)];
        let all = counters.iter().all(|(_, count, limit)| count == limit);
        let shown: Vec<String> = counters
            .iter()
            .filter(|(_, count, limit)| all || count != limit)
            .map(|(name, count, _)| format!("{name}({count})"))
            .collect();
        self.text.push_str(&shown.join(" "));
    }

    fn depctr(&mut self, bits: u32) {
        // Name, first bit, width; in the order they are printed.
        const FIELDS: [(&str, u32, u32); 7] = [
            ("hold_cnt", 7, 1),
            ("sa_sdst", 0, 1),
            ("va_vdst", 12, 4),
            ("va_sdst", 9, 3),
            ("va_ssrc", 8, 1),
            ("va_vcc", 1, 1),
            ("vm_vsrc", 2, 3),
        ];
        const UNUSED: u32 = 0x60;
        if bits & UNUSED != 0 {
            return self.push(format_args!("{bits:#x}"));
        }
        let value = |lo: u32, width: u32| bits >> lo & ((1 << width) - 1);
        let is_default = |lo: u32, width: u32| value(lo, width) == (1 << width) - 1;
        let all = FIELDS.iter().all(|(_, lo, width)| is_default(*lo, *width));
        let shown: Vec<String> = FIELDS
            .iter()
            .filter(|(_, lo, width)| all || !is_default(*lo, *width))
            .map(|(name, lo, width)| format!("depctr_{name}({})", value(*lo, *width)))
            .collect();
        self.text.push_str(&shown.join(" "));
    }

    fn delay(&mut self, bits: u32) {
        const INSTID: [&str; 12] = [
            "",
            "VALU_DEP_1",
            "VALU_DEP_2",
            "VALU_DEP_3",
            "VALU_DEP_4",
            "TRANS32_DEP_1",
            "TRANS32_DEP_2",
            "TRANS32_DEP_3",
            "FMA_ACCUM_CYCLE_1",
            "SALU_CYCLE_1",
            "SALU_CYCLE_2",
            "SALU_CYCLE_3",
        ];
        const SKIP: [&str; 6] = ["", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"];
        let name = |names: &[&'static str], value: u32, invalid: &'static str| {
            names.get(value as usize).copied().unwrap_or(invalid)
        };
        let parts = [
            ("instid0", name(&INSTID, bits & 15, "/* invalid instid value */")),
            ("instskip", name(&SKIP, bits >> 4 & 7, "/* invalid instskip value */")),
            ("instid1", name(&INSTID, bits >> 7 & 15, "/* invalid instid value */")),
        ];
        let shown: Vec<String> =
            parts.iter().filter(|(_, name)| !name.is_empty()).map(|(field, name)| format!("{field}({name})")).collect();
        if shown.is_empty() {
            self.text.push('0');
        }
        self.text.push_str(&shown.join(" | "));
    }

    /// `s_version`: a generation, and flags from bit 13.
    fn version(&mut self, bits: u32) {
        const FLAGS: [(u32, &str); 3] =
            [(0x2000, "UC_VERSION_W64_BIT"), (0x4000, "UC_VERSION_W32_BIT"), (0x8000, "UC_VERSION_MDP_BIT")];
        let number = bits & 0xff;
        if bits & 0x1f00 != 0 {
            return self.push(format_args!("{bits:#x}"));
        }
        let mut text = match number {
            0 => "UC_VERSION_GFX7".to_owned(),
            4 => "UC_VERSION_GFX10".to_owned(),
            6 => "UC_VERSION_GFX11".to_owned(),
            9 => "UC_VERSION_GFX12".to_owned(),
            _ => number.to_string(),
        };
        for (flag, name) in FLAGS.into_iter().filter(|(flag, _)| bits & flag != 0) {
            // Each flag is an operator on what stands before it.
            let before = if bits & 0xe000 & (flag - 1) != 0 { format!("({text})") } else { text };
            text = format!("{before}|{name}");
        }
        self.text.push_str(&text);
    }

    fn gpr_idx(&mut self, bits: u32) {
        if bits > 15 {
            return self.push(format_args!("{bits:#x}"));
        }
        let names: Vec<&str> = ["SRC0", "SRC1", "SRC2", "DST"]
            .into_iter()
            .enumerate()
            .filter(|(bit, _)| bits >> bit & 1 != 0)
            .map(|(_, name)| name)
            .collect();
        self.push(format_args!("gpr_idx({})", names.join(",")));
    }
}
