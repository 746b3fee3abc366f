//! RUNTIME_ENABLE and SET_XNACK_MODE.

use crate::case::cases;
use crate::gpu::Gpu;
use kfd::Errno;
use kfd::uapi::*;

cases! { "RuntimeEnable", s:
    safe kfd twice "the runtime is enabled once: EBUSY; disabling never fails" {
        let enable = |mode_mask| RuntimeEnableArgs { r_debug: 0x1000, mode_mask, capabilities_mask: 0x55 };
        let mut args = enable(0);
        let result = s.call(&mut args);
        s.ok("disable what is not enabled", result);
        s.value("capabilities_mask is left", format!("{:#x}", args.capabilities_mask), "0x55");
        let result = s.call(&mut enable(1));
        s.ok("enable", result);
        let result = s.call(&mut enable(1));
        s.err("enable again", result, Errno::EBUSY);
        let result = s.call(&mut enable(3));
        s.err("enable again, with TTMPs", result, Errno::EBUSY);
        let result = s.call(&mut enable(2));
        s.ok("mode 2 alone is disable", result);
        let result = s.call(&mut enable(3));
        s.ok("enable with TTMPs", result);
        let result = s.call(&mut enable(0xffff_fffe));
        s.ok("all bits but the first are disable", result);
        let result = s.call(&mut enable(u32::MAX));
        s.ok("unknown bits do not matter", result);
    }

    safe kfd per_process "the runtime is enabled for the process, not for a file" {
        let second = s.open()?;
        let result = s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.ok("enable on one file", result);
        let result = s.call_on(second, &mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.err("enable on another", result, Errno::EBUSY);
    }

    safe no_gpu xnack "without a GPU nothing speaks against retry faults: they are on, and can be switched" {
        let mut args = SetXnackModeArgs { xnack_enabled: -1 };
        let result = s.call(&mut args);
        s.expect_svm("ask", result, Ok(()));
        let built = s.has_svm();
        s.value("mode", args.xnack_enabled, if built { 1 } else { -1 });
        for mode in [0, 1, 0] {
            let result = s.call(&mut SetXnackModeArgs { xnack_enabled: mode });
            s.expect_svm(format!("set {mode}"), result, Ok(()));
            let mut args = SetXnackModeArgs { xnack_enabled: i32::MIN };
            let result = s.call(&mut args);
            s.expect_svm("ask", result, Ok(()));
            s.value("mode", args.xnack_enabled, if built { mode } else { i32::MIN });
        }
    }

    safe gpu xnack_of_a_gpu "XNACK is chosen for a process where all GPUs are of GC 9.4.2 to 9.4.4: EPERM elsewhere" {
        let mut able = true;
        for n in 0..s.gpu_nodes {
            let gpu = Gpu::nth(s.driver.clone(), s.kfd, n)?;
            able &= matches!(gpu.target.version(), 90010 | 90400..=90402);
        }
        let result = s.call(&mut SetXnackModeArgs { xnack_enabled: 1 });
        s.expect_svm("set 1", result, if able { Ok(()) } else { Err(Errno::EPERM) });
        let mut args = SetXnackModeArgs { xnack_enabled: -1 };
        let result = s.call(&mut args);
        s.ok("ask", result);
        s.value("mode", args.xnack_enabled, i32::from(able));
        let result = s.call(&mut SetXnackModeArgs { xnack_enabled: 0 });
        s.ok("set 0", result);
    }

    safe gpu before_queues "both come before the first queue: EEXIST and EBUSY" {
        let gpu = s.gpu()?;
        let queue = gpu.queue(64)?;
        let result = s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.err("RUNTIME_ENABLE with a queue", result, Errno::EEXIST);
        let result = s.call(&mut SetXnackModeArgs { xnack_enabled: 0 });
        s.err("SET_XNACK_MODE with a queue", result, Errno::EBUSY);
        let mut args = SetXnackModeArgs { xnack_enabled: -1 };
        let result = s.call(&mut args);
        s.ok("asking is fine", result);
        queue.destroy()?;
        let result = s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.ok("RUNTIME_ENABLE after the queue", result);
        let queue = gpu.start(queue.parts)?;
        let result = s.call(&mut RuntimeEnableArgs { mode_mask: 1, ..Default::default() });
        s.err("RUNTIME_ENABLE again, with a queue: EBUSY comes first", result, Errno::EBUSY);
        queue.destroy()?;
    }
}
