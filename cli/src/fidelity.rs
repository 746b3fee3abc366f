//! `--fidelity`: which operations that are not exact a run met.

use crate::output::say;
use emu::cu::fidelity::{Fidelity, Met, MetOperation};

/// Says it on stderr.
pub fn tell(met: &Met) {
    say(report(&met.operations()).trim_end());
}

/// The report.
fn report(operations: &[MetOperation]) -> String {
    let (no_ops, inexact): (Vec<&MetOperation>, Vec<&MetOperation>) =
        operations.iter().partition(|operation| matches!(operation.fidelity, Fidelity::NoOp(_)));
    let mut text = match inexact.len() {
        0 => "fidelity: every operation with a result that this run met is exact\n".to_owned(),
        n => format!(
            "fidelity: this run met {n} operation{} that {} not exact\n",
            if n == 1 { "" } else { "s" },
            if n == 1 { "is" } else { "are" }
        ),
    };
    for group in [inexact, no_ops] {
        let mut last = None;
        for operation in group {
            if last != Some(operation.fidelity) {
                text += &format!("  {}\n", operation.fidelity);
                last = Some(operation.fidelity);
            }
            text += &format!(
                "    {:28} executed {} at {}\n",
                operation.mnemonic,
                times(operation.executed, "time"),
                times(operation.places, "place")
            );
        }
    }
    text
}

fn times(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use emu::cu::fidelity::{ULP, WAIT};

    fn met(mnemonic: &'static str, fidelity: Fidelity, places: u64, executed: u64) -> MetOperation {
        MetOperation { mnemonic, fidelity, places, executed }
    }

    #[test]
    fn operations_are_grouped_by_fidelity() {
        let operations = [
            met("s_waitcnt", WAIT, 3, 30),
            met("v_exp_f32", ULP, 1, 1),
            met("v_rcp_f32", ULP, 2, 100),
            met("s_sleep", Fidelity::Approximated("lets other waves run, for no certain time"), 1, 7),
        ];
        insta::assert_snapshot!(report(&operations));
    }

    #[test]
    fn nothing_is_met() {
        insta::assert_snapshot!(report(&[]), @"fidelity: every operation with a result that this run met is exact");
    }
}
