//! The examples do what they say.

#[path = "../examples/calls.rs"]
mod calls;
#[path = "../examples/launch.rs"]
mod launch;

use loader::program::Ending;
use loader::rpc::Output;
use std::cell::RefCell;
use std::rc::Rc;

#[test]
fn a_kernel_is_launched() {
    let numbers: Vec<f32> = (0..1000).map(|number| number as f32).collect();
    let doubled: Vec<f32> = numbers.iter().map(|number| 2.0 * number).collect();
    assert_eq!(launch::run(&numbers).expect("it runs"), doubled);
}

#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Output for Kept {
    fn stdout(&mut self, bytes: &[u8]) -> usize {
        self.0.borrow_mut().extend_from_slice(bytes);
        bytes.len()
    }
    fn stderr(&mut self, _bytes: &[u8]) -> usize {
        0
    }
}

#[test]
fn own_calls_are_served() {
    let output = Kept::default();
    let outcome = calls::run(Box::new(output.clone())).expect("it runs");
    assert_eq!((outcome.ending, outcome.notes), (Ending::Returned(132), Vec::new()));
    assert_eq!(*output.0.borrow(), b"all of it: 132\n");
}
