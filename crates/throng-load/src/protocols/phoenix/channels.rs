//! Channels that a user has joined.

/// A channel of a user. Its name is a template of the program, so no user stores a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Channel {
    /// Ref of its join, which every later message of the channel carries; 0 for no channel.
    pub(crate) join_ref: u32,
    /// Index of its topic.
    pub(crate) topic: u16,
    /// True once the join was answered ok.
    pub(crate) joined: bool,
    /// True if the probe is delivered in it.
    pub(crate) receives_probe: bool,
}

/// All channels of a user. The first is stored inline, further ones on the heap; almost no user has
/// them.
#[derive(Debug, Default)]
pub(crate) struct Channels {
    first: Channel,
    #[expect(clippy::box_collection, reason = "eight bytes in each of millions of users")]
    more: Option<Box<Vec<Channel>>>,
}

impl Channels {
    /// Adds a channel.
    pub(crate) fn push(&mut self, channel: Channel) {
        if self.first.join_ref == 0 {
            self.first = channel;
        } else {
            self.more.get_or_insert_default().push(channel);
        }
    }

    /// Iterates over all channels.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Channel> {
        let first = (self.first.join_ref != 0).then_some(&self.first);
        first.into_iter().chain(self.more.iter().flat_map(|more| more.iter()))
    }

    /// Returns the channel of topic `topic`.
    pub(crate) fn of_topic(&self, topic: u16) -> Option<Channel> {
        self.iter().find(|channel| channel.topic == topic).copied()
    }

    /// Returns the first joined channel in which the probe is delivered.
    pub(crate) fn with_probe(&self) -> Option<Channel> {
        self.iter().find(|channel| channel.joined && channel.receives_probe).copied()
    }

    /// Returns the channel whose join had this ref.
    pub(crate) fn of_join(&mut self, join_ref: u32) -> Option<&mut Channel> {
        if self.first.join_ref == join_ref && join_ref != 0 {
            return Some(&mut self.first);
        }
        self.more.as_mut()?.iter_mut().find(|channel| channel.join_ref == join_ref)
    }

    /// Removes and returns the channel whose join had this ref.
    pub(crate) fn remove(&mut self, join_ref: u32) -> Option<Channel> {
        let removed = *self.of_join(join_ref)?;
        if self.first.join_ref == join_ref {
            self.first = Channel::default();
        } else if let Some(more) = &mut self.more {
            more.retain(|channel| channel.join_ref != join_ref);
            if more.is_empty() {
                self.more = None;
            }
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(join_ref: u32, topic: u16) -> Channel {
        Channel { join_ref, topic, joined: true, receives_probe: false }
    }

    #[test]
    fn channels_are_found_by_topic_and_by_the_ref_of_their_join() {
        let mut channels = Channels::default();
        assert_eq!(channels.of_topic(0), None);
        assert!(channels.of_join(0).is_none());
        for (join_ref, topic) in [(1, 7), (2, 0), (9, 3)] {
            channels.push(channel(join_ref, topic));
        }
        assert_eq!(channels.iter().count(), 3);
        assert_eq!(channels.of_topic(3), Some(channel(9, 3)));
        assert_eq!(channels.remove(1), Some(channel(1, 7)));
        assert_eq!((channels.remove(1), channels.of_topic(7)), (None, None));
        channels.push(channel(10, 7));
        assert_eq!(channels.of_join(2).map(|found| found.topic), Some(0));
        for join_ref in [2, 9, 10] {
            assert!(channels.remove(join_ref).is_some());
        }
        assert_eq!(channels.iter().count(), 0);
        assert!(channels.more.is_none(), "the heap is given back");
    }
}
