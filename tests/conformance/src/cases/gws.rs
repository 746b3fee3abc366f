//! ALLOC_QUEUE_GWS.

use crate::case::cases;
use crate::session::Stop;
use kfd::Errno;
use kfd::uapi::*;

cases! { "KFDGWSTest", s:
    safe gpu one_queue "one queue of a process on a GPU has global wave sync, also when it asks again: EBUSY" {
        let gpu = s.gpu()?;
        if gpu.node.properties.num_gws.unwrap_or(0) == 0 {
            return Err(Stop::Skip("the GPU has no global wave sync".to_string()));
        }
        let (a, b) = (gpu.queue(64)?, gpu.queue(64)?);
        let ask = |queue_id, num_gws| {
            let mut args = AllocQueueGwsArgs { queue_id, num_gws, first_gws: 77, pad: 0 };
            (s.call(&mut args), args.first_gws)
        };
        let answers = [
            ("no queue has it: give back", ask(a.id(), 0), Err(Errno::EINVAL), 0),
            ("take", ask(a.id(), 64), Ok(()), 0),
            ("take again", ask(a.id(), 64), Err(Errno::EBUSY), 0),
            ("the other queue", ask(b.id(), 1), Err(Errno::EBUSY), 0),
            ("no queue", ask(99, 1), Err(Errno::EINVAL), 77),
            ("give back", ask(a.id(), 0), Ok(()), 0),
            ("the other queue then", ask(b.id(), 1), Ok(()), 0),
        ];
        let destroyed = b.destroy();
        let last = ask(a.id(), 1).0;
        for (what, (result, first), want, first_want) in answers {
            s.expect(what, result, want);
            s.value("first_gws", first, first_want);
        }
        s.ok("DESTROY_QUEUE of who has it", destroyed);
        s.ok("take", last);
        s.ok("DESTROY_QUEUE", a.destroy());
    }
}
