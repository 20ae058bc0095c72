//! The channels of a connection beside its first one.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use super::topic::Topic;

/// The second channel of a connection and all later ones. A message costs the same for a client of
/// few channels and of many: few are searched, many are in a map.
pub(crate) enum MoreChannels<J> {
    /// At most [`SEARCHED_MAX`]; or any number, once the connection ends and takes all of them out.
    Few(Vec<J>),
    /// In a box: an idle connection pays for a list alone.
    #[expect(clippy::box_collection, reason = "the enum must not be larger than a list")]
    Many(Box<HashMap<TopicName, J>>),
}

/// A channel of a connection, which has one of each topic.
pub(crate) trait OfTopic {
    /// Returns its topic.
    fn topic(&self) -> &Rc<Topic>;

    /// Reports whether it is the channel of this topic.
    fn is_of(&self, topic: &str) -> bool {
        *self.topic().name == *topic
    }
}

impl<J> Default for MoreChannels<J> {
    fn default() -> Self {
        Self::Few(Vec::new())
    }
}

impl<J: OfTopic> MoreChannels<J> {
    /// Returns the channel of a topic.
    pub(super) fn find(&self, topic: &str) -> Option<&J> {
        match self {
            Self::Few(list) => list.iter().find(|it| it.is_of(topic)),
            Self::Many(map) => map.get(topic),
        }
    }

    /// Takes out the channel of a topic.
    pub(super) fn take(&mut self, topic: &str) -> Option<J> {
        match self {
            Self::Few(list) => {
                let place = list.iter().position(|it| it.is_of(topic))?;
                Some(list.swap_remove(place))
            }
            Self::Many(map) => map.remove(topic),
        }
    }

    /// Adds a channel of a topic that has none here.
    pub(super) fn put(&mut self, joined: J) {
        match self {
            Self::Few(list) if list.len() < SEARCHED_MAX => list.push(joined),
            Self::Few(list) => {
                let all = list.drain(..).chain([joined]);
                *self = Self::Many(Box::new(all.map(|it| (TopicName::of(&it), it)).collect()));
            }
            Self::Many(map) => _ = map.insert(TopicName::of(&joined), joined),
        }
    }

    /// Takes out any channel: all of them end, one after another.
    pub(super) fn take_any(&mut self) -> Option<J> {
        if let Self::Many(map) = self {
            *self = Self::Few(map.drain().map(|(_, joined)| joined).collect());
        }
        match self {
            Self::Few(list) => list.pop(),
            Self::Many(_) => None,
        }
    }

    /// Returns their number.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Few(list) => list.len(),
            Self::Many(map) => map.len(),
        }
    }
}

/// A topic by its name, as a key of a map.
pub(crate) struct TopicName(Rc<Topic>);

impl TopicName {
    fn of(joined: &impl OfTopic) -> Self {
        Self(Rc::clone(joined.topic()))
    }
}

impl Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0.name
    }
}

impl Hash for TopicName {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Borrow::<str>::borrow(self).hash(state);
    }
}

impl PartialEq for TopicName {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for TopicName {}

/// The most channels that are searched one by one: beyond them a map is as fast, and larger.
const SEARCHED_MAX: usize = 32;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static NAMES_COMPARED: Cell<usize> = const { Cell::new(0) };
    }

    /// A channel that counts how often its name is compared.
    struct Counted(Rc<Topic>);

    impl OfTopic for Counted {
        fn topic(&self) -> &Rc<Topic> {
            &self.0
        }

        fn is_of(&self, topic: &str) -> bool {
            NAMES_COMPARED.set(NAMES_COMPARED.get() + 1);
            *self.0.name == *topic
        }
    }

    fn name(number: usize) -> String {
        format!("room:{number}")
    }

    fn with(channels: usize) -> MoreChannels<Counted> {
        let mut more = MoreChannels::default();
        for number in 0..channels {
            more.put(Counted(Rc::new(Topic { name: name(number).into(), route: 0 })));
        }
        more
    }

    #[test]
    fn a_message_costs_no_more_with_many_channels() {
        for channels in [1, 32, 33, 10_000] {
            let mut more = with(channels);
            for number in (0..channels).rev() {
                let before = NAMES_COMPARED.get();
                let taken = more.take(&name(number)).unwrap();
                assert!(taken.topic().name.ends_with(&number.to_string()));
                assert!(more.find(&name(number)).is_none());
                more.put(taken);
                assert!(more.find(&name(number)).is_some());
                let compared = NAMES_COMPARED.get() - before;
                assert!(compared <= 3 * SEARCHED_MAX, "{compared} of {channels}");
            }
            assert_eq!(more.len(), channels);
        }
    }

    #[test]
    fn each_channel_ends_once() {
        for channels in [0, 1, 32, 33, 1_000] {
            let mut more = with(channels);
            let ended: std::collections::BTreeSet<_> =
                std::iter::from_fn(|| more.take_any()).map(|it| it.0.name.to_string()).collect();
            assert_eq!((ended.len(), more.len()), (channels, 0));
        }
    }

    #[test]
    fn an_idle_connection_pays_for_a_list_alone() {
        assert_eq!(size_of::<MoreChannels<Counted>>(), size_of::<Vec<Counted>>());
    }
}
