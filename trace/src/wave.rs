//! What waves do at a moment, for reports of what hangs.

/// What a wave does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// It runs, or waits for its turn.
    Running,
    /// It waits at a barrier for other waves of its work-group.
    Barrier,
    /// It gave its turn away: `s_sleep`, or a loop that polls.
    Yielded,
    /// It has ended.
    Ended,
}

impl Activity {
    /// In a word.
    pub fn name(self) -> &'static str {
        match self {
            Activity::Running => "running",
            Activity::Barrier => "at a barrier",
            Activity::Yielded => "sleeping or polling",
            Activity::Ended => "ended",
        }
    }
}

/// A resident wave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wave {
    /// Queue id within the process.
    pub queue_id: u32,
    /// Index of the dispatch packet.
    pub index: u64,
    /// Work-group id.
    pub workgroup: [u32; 3],
    /// Wave number within the work-group.
    pub wave: u32,
    /// What it does.
    pub activity: Activity,
    /// Address of its next instruction.
    pub pc: u64,
    /// Disassembly of that instruction, when it has been decoded.
    pub instruction: Option<String>,
    /// EXEC.
    pub exec: u64,
    /// The address in memory that it touched last.
    pub touched: Option<u64>,
}
