//! Batches: the publications of a node under one subject, on their way over the bus.

use std::collections::HashMap;

use super::id::NodeId;
use super::packet::{Header, PacketKind};
use super::subjects::{NodeSubjects, TopicSubject, hash};
use super::wire::{Decoder, Encode};

/// The publications of a node that are on their way to the bus, by subject. Each batch has a
/// number, so that no node takes it twice.
#[derive(Debug)]
pub struct PublicationBatches {
    from: NodeId,
    subjects: NodeSubjects,
    /// The number of the latest batch.
    number: u64,
    /// The batches in the order in which they began.
    batches: Vec<OpenBatch>,
    /// The place in `batches` of the batch of a topic's hash that takes further publications.
    open: HashMap<u64, usize>,
}

#[derive(Debug)]
struct OpenBatch {
    hash: u64,
    payload: Vec<u8>,
    publications: u32,
}

/// Publications under one subject, encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationBatch {
    /// The subject under which to publish it.
    pub subject: String,
    /// Its bytes.
    pub payload: Vec<u8>,
    /// The number of publications in it.
    pub publications: u32,
}

/// A publication of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedPublication<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// Its body, in the form that its handler has given it.
    pub body: &'a [u8],
}

impl PublicationBatches {
    /// Makes batches of the node `from`.
    pub fn new(from: NodeId, subjects: NodeSubjects) -> Self {
        Self { from, subjects, number: 0, batches: Vec::new(), open: HashMap::new() }
    }

    /// Adds a publication, whose body `encode` appends. Publications of one topic keep their order.
    pub fn add(&mut self, topic: &str, encode: impl FnOnce(&mut Vec<u8>)) {
        let hash = hash(topic);
        let place = *self.open.entry(hash).or_insert_with(|| {
            self.number += 1;
            let mut payload = Vec::new();
            Header { kind: PacketKind::Batch, from: self.from.clone() }.encode(&mut payload);
            payload.put_u64(self.number);
            self.batches.push(OpenBatch { hash, payload, publications: 0 });
            self.batches.len() - 1
        });
        let OpenBatch { payload, publications, .. } = &mut self.batches[place];
        payload.put_bytes(topic.as_bytes());
        let start = payload.len();
        payload.put_u32(0);
        encode(payload);
        let len = u32::try_from(payload.len() - start - 4).expect("a body has less than 4 GiB");
        payload[start..start + 4].copy_from_slice(&len.to_le_bytes());
        *publications += 1;
        if payload.len() >= BATCH_BYTES {
            self.open.remove(&hash);
        }
    }

    /// Reports whether there is nothing to publish.
    pub fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Takes all batches, in the order in which to publish them.
    pub fn take(&mut self) -> impl Iterator<Item = PublicationBatch> + use<> {
        self.open.clear();
        let subjects = self.subjects.clone();
        std::mem::take(&mut self.batches).into_iter().map(move |batch| {
            let OpenBatch { hash, payload, publications } = batch;
            let subject = subjects.pattern(TopicSubject::Topic(hash));
            PublicationBatch { subject, payload, publications }
        })
    }
}

/// Reads the number and the publications of a batch, behind its header.
pub(super) fn decode<'a>(rest: &mut Decoder<'a>) -> Option<(u64, Vec<SharedPublication<'a>>)> {
    let number = rest.u64()?;
    let mut publications = Vec::new();
    while !rest.is_empty() {
        publications.push(SharedPublication { topic: rest.text()?, body: rest.bytes()? });
    }
    Some((number, publications))
}

/// The bytes beyond which a batch takes no further publication. A single one may be longer.
const BATCH_BYTES: usize = 64 << 10;
