//! One call's side of the protocol.

use super::area::Area;
use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Last {
    Receive,
    Send,
}

/// A call as the server sees it: sends and receives in turn, each a packet of eight words for every lane that takes part.
pub struct Port {
    area: Area,
    index: u32,
    /// Lanes that take part.
    pub mask: u64,
    /// Operation code.
    pub opcode: u32,
    last: Cell<Option<Last>>,
}

/// Most bytes taken for one string or block of one lane. The protocol has no limit of its own.
pub const LARGEST: u64 = 1 << 30;

impl Port {
    /// Opens a port that the server owns.
    pub(super) fn open(area: Area, index: u32) -> Port {
        let (mask, opcode) = area.header(index);
        Port { area, index, mask, opcode, last: Cell::new(None) }
    }

    /// Lanes that take part, lowest first.
    pub fn lanes(&self) -> impl Iterator<Item = u32> + use<> {
        let mask = self.mask;
        (0..64).filter(move |lane| mask >> lane & 1 == 1)
    }

    async fn own(&self) {
        poll_fn(|_| if self.area.server_owns(self.index) { Poll::Ready(()) } else { Poll::Pending }).await;
    }

    /// Waits for the client's packets. After another receive this first hands the port back.
    pub async fn receive(&self) {
        if self.last.get() == Some(Last::Receive) {
            self.area.flip(self.index);
        }
        self.own().await;
        self.last.set(Some(Last::Receive));
    }

    /// A lane's packet, after [`Port::receive`].
    pub fn packet(&self, lane: u32) -> [u64; 8] {
        let bytes = self.area.read(self.index, lane);
        let mut words = [0; 8];
        for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
            *word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        }
        words
    }

    /// Waits until the packets may be filled, fills them and passes the port to the client.
    pub async fn send(&self, mut fill: impl FnMut(u32) -> Vec<u8>) {
        self.own().await;
        for lane in self.lanes() {
            let bytes = fill(lane);
            self.area.write(self.index, lane, &bytes);
        }
        self.area.flip(self.index);
        self.last.set(Some(Last::Send));
    }

    /// Sends one word a lane.
    pub async fn reply(&self, mut word: impl FnMut(u32) -> u64) {
        self.send(|lane| word(lane).to_le_bytes().to_vec()).await;
    }

    /// Receives a block a lane: its size and up to 56 bytes, then 64 bytes a packet until the longest lane is done.
    /// An oversized block is cut at `LARGEST`.
    pub async fn receive_blocks(&self) -> Vec<Vec<u8>> {
        self.receive().await;
        let mut blocks = vec![Vec::new(); 64];
        let mut sizes = [0usize; 64];
        for lane in self.lanes() {
            let packet = self.packet(lane);
            sizes[lane as usize] = packet[0].min(LARGEST) as usize;
            append(&mut blocks[lane as usize], &packet[1..], sizes[lane as usize]);
        }
        let longest = self.lanes().map(|lane| sizes[lane as usize]).max().unwrap_or(0);
        let mut done = 56;
        while done < longest {
            self.receive().await;
            for lane in self.lanes() {
                append(&mut blocks[lane as usize], &self.packet(lane), sizes[lane as usize]);
            }
            done += 64;
        }
        blocks
    }

    /// Sends a block a lane, in the form of [`Port::receive_blocks`].
    pub async fn send_blocks(&self, blocks: &[Vec<u8>]) {
        let block = |lane: u32| blocks.get(lane as usize).map_or(&[][..], |block| block);
        self.send(|lane| {
            let block = block(lane);
            let mut packet = (block.len() as u64).to_le_bytes().to_vec();
            packet.extend_from_slice(&block[..block.len().min(56)]);
            packet
        })
        .await;
        let longest = self.lanes().map(|lane| block(lane).len()).max().unwrap_or(0);
        let mut done = 56;
        while done < longest {
            self.send(|lane| block(lane).iter().skip(done).take(64).copied().collect()).await;
            done += 64;
        }
    }

    /// Ends the call: when the server still owns the port, hands it back.
    pub(super) fn close(&self) {
        if self.last.get() == Some(Last::Receive) {
            self.area.flip(self.index);
        }
        self.area.closed();
    }
}

/// Appends words to a block without exceeding its size.
fn append(block: &mut Vec<u8>, words: &[u64], size: usize) {
    for word in words {
        let room = size.saturating_sub(block.len()).min(8);
        block.extend_from_slice(&word.to_le_bytes()[..room]);
    }
}
