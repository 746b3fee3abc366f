//! Development tool: harvests the decode tables from LLVM and compares disassembly with it.

mod fills;
mod harvest;
mod mc;
mod table;
mod text;

use emu::isa::Target;

fn main() {
    let name = std::env::args().nth(1).unwrap_or_default();
    let Some(target) = Target::from_name(&name) else { return };
    match harvest::harvest(target) {
        Ok(harvest) => {
            for note in &harvest.notes {
                eprintln!("NOTE {note}");
            }
            eprintln!("{}", table::counts(&harvest));
            let path = format!("emu/src/isa/tables/{target}.tsv");
            std::fs::write(path, table::write(target, &mc::version().unwrap(), &harvest)).unwrap();
        }
        Err(error) => eprintln!("{error}"),
    }
}
