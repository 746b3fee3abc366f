//! CRIU_OP: dumping a process for a later restore. Who may is checked as in the kernel; a process with GPUs cannot be
//! dumped here.

use super::call::Call;
use super::misc::Access;
use super::rule::{RuleText, check, rules, texts};
use kfd::Errno;
use kfd::uapi::*;

/// What CRIU_OP is checked for.
pub struct Facts {
    args: CriuArgs,
    privileged: bool,
    /// GPUs of the process.
    gpus: usize,
}

/// The part of the private data that RESTORE reads first: version and XNACK mode.
const PROCESS_DATA_BYTES: u64 = 8;
/// Its version.
const PRIVATE_VERSION: u32 = 1;

rules! {
    /// CRIU_OP.
    RULES for f: Facts {
        EACCES "the caller has CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN": f.args.op => f.privileged;
        EINVAL "op is at most 4": f.args.op => f.args.op <= CRIU_OP_RESUME;
        EINVAL "devices, bos and priv_data are not 0, with CHECKPOINT": f.args.devices =>
            f.args.op != CRIU_OP_CHECKPOINT || (f.args.devices != 0 && f.args.bos != 0 && f.args.priv_data != 0);
        EINVAL "devices, num_devices, priv_data and its size are not 0, and bos only with num_bos 0, with RESTORE":
            f.args.devices => f.args.op != CRIU_OP_RESTORE || (f.args.devices != 0 && f.args.num_devices != 0
                && f.args.priv_data != 0 && f.args.priv_data_size != 0 && (f.args.bos != 0 || f.args.num_bos == 0));
        ENODEV "the process has a GPU, with PROCESS_INFO and CHECKPOINT": f.gpus =>
            f.args.op > CRIU_OP_CHECKPOINT || f.gpus != 0;
        EINVAL "PROCESS_INFO paused the queues before, with CHECKPOINT and UNPAUSE": f.args.op =>
            f.args.op != CRIU_OP_CHECKPOINT && f.args.op != CRIU_OP_UNPAUSE;
        ESRCH "pid is a process that has opened the KFD, with RESUME": f.args.pid => f.args.op != CRIU_OP_RESUME;
        EACCES "the process has no GPU: an emulated one cannot be dumped or restored": f.gpus => f.gpus == 0;
    }

    /// CRIU_OP RESTORE, without GPUs: nothing that was dumped fits.
    RESTORE for f: (u64, u32) {
        EINVAL "priv_data_size is at least 8": f.0 => f.0 >= PROCESS_DATA_BYTES;
        EINVAL "the data's version is 1": f.1 => f.0 < PROCESS_DATA_BYTES || f.1 == PRIVATE_VERSION;
    }

    /// CRIU_OP RESTORE, at last.
    DEVICES for count: u32 {
        EINVAL "num_devices is the process' number of GPUs, which is 0": *count => *count == 0;
    }
}

/// The tables of this module.
pub fn rule_texts() -> Vec<(&'static str, Vec<RuleText>)> {
    vec![("CRIU_OP", texts(RULES)), ("CRIU_OP RESTORE", [texts(RESTORE), texts(DEVICES)].concat())]
}

/// CRIU_OP.
pub fn criu(call: &Call<'_>, args: &mut CriuArgs) -> Result<(), Errno> {
    const NAME: &str = "CRIU_OP";
    let mut inner = call.process.lock();
    check(
        call.kernel,
        NAME,
        RULES,
        &Facts { args: *args, privileged: Access::of_caller().checkpoint, gpus: inner.devices.len() },
    )?;
    // Only RESTORE is left.
    let size = args.priv_data_size;
    let data: [u32; 2] = if size < PROCESS_DATA_BYTES { [0; 2] } else { call.kernel.user.get(args.priv_data)? };
    check(call.kernel, NAME, RESTORE, &(size, data[0]))?;
    // The mode is set before the devices are found not to fit.
    inner.xnack = data[1] != 0;
    check(call.kernel, NAME, DEVICES, &args.num_devices)
}
