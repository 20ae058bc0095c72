//! The operations of users that are measured, each in one row: constant, name in run files and
//! thresholds, its words, from which time on it is slow, how its waits are counted, and the
//! counters whose sum closes: begun, ended as expected, ended otherwise, without an end, and where
//! it is so without asking for an answer.
//!
//! What counts, shows, compares or explains operations walks this table. A value for each of them
//! is a [`PerOperation`].

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::counters::LoadCounters;
use crate::error_kind::ErrorKind;
use crate::histogram::Histogram;

/// How often an operation began, and how it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct OperationCounts {
    /// Begun.
    pub started: u64,
    /// Ended as expected.
    pub ok: u64,
    /// Ended otherwise.
    pub failed: u64,
    /// Without an end when the user was stopped.
    pub waiting: u64,
    /// Begun without asking for an answer: they have no other end.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_answer: u64,
}

/// Functions that count one operation more.
#[derive(Clone, Copy, Debug)]
pub struct OperationCounting {
    /// Counts one that begins.
    pub started: fn(&mut LoadCounters),
    /// Counts one that ended otherwise than expected.
    pub failed: fn(&mut LoadCounters),
    /// Counts one without an end when its user is stopped.
    pub waiting: fn(&mut LoadCounters),
}

impl OperationCounts {
    /// Reports whether each operation that began has ended in exactly one way.
    pub fn is_closed(&self) -> bool {
        self.started == self.ok + self.failed + self.waiting + self.without_answer
    }

    /// Returns the sum of both.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.with(other, u64::saturating_add)
    }

    /// Returns what has happened since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.with(earlier, u64::saturating_sub)
    }

    fn with(self, other: Self, of: fn(u64, u64) -> u64) -> Self {
        Self {
            started: of(self.started, other.started),
            ok: of(self.ok, other.ok),
            failed: of(self.failed, other.failed),
            waiting: of(self.waiting, other.waiting),
            without_answer: of(self.without_answer, other.without_answer),
        }
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

macro_rules! operations {
    ($(
        $(#[doc = $doc:literal])+
        $operation:ident = $name:literal, $many:literal, $done:literal,
        short $short:literal $short_many:literal, slow $slow_us:expr, $waits:ident
        $(, $started:ident = $ok:ident + $failed:ident + $waiting:ident $(+ $without:ident)?)?;
    )+) => {
        /// What a user does and waits for, and what is counted and timed of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Operation {
            $( $(#[doc = $doc])+ $operation, )+
        }

        impl Operation {
            /// All operations, in the order of the run file.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$operation),+];

            /// Returns the name in run files and thresholds.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$operation => $name, )+ }
            }

            /// Returns the word for many of them, in sentences.
            pub const fn plural(self) -> &'static str {
                match self { $( Self::$operation => $many, )+ }
            }

            /// Returns the word for the end as expected.
            pub const fn done(self) -> &'static str {
                match self { $( Self::$operation => $done, )+ }
            }

            /// Returns the words for one and for many of what is counted, where room is short.
            pub const fn short(self) -> [&'static str; 2] {
                match self { $( Self::$operation => [$short, $short_many], )+ }
            }

            /// Returns the latency in microseconds above which it is slow.
            pub const fn slow_us(self) -> u64 {
                match self { $( Self::$operation => $slow_us, )+ }
            }

            /// Returns where its waits without an end are counted.
            pub const fn waits(self) -> OperationWaits {
                match self { $( Self::$operation => OperationWaits::$waits, )+ }
            }

            /// Returns how often it began and how it ended; `None` if other counters say that.
            pub const fn counts(self, counters: &LoadCounters) -> Option<OperationCounts> {
                match self {
                    $( Self::$operation => operations!(
                        @counts counters $(, $started $ok $failed $waiting $($without)?)?
                    ), )+
                }
            }

            /// Returns the functions that count it; `None` if it is not counted.
            pub const fn counting(self) -> Option<OperationCounting> {
                match self {
                    $( Self::$operation => operations!(
                        @counting $($started $failed $waiting)?
                    ), )+
                }
            }

            /// Returns the counter of those that ended as expected; `None` if it is not counted.
            pub const fn ok_mut(self, counters: &mut LoadCounters) -> Option<&mut u64> {
                match self { $( Self::$operation => operations!(@ok counters $(, $ok)?), )+ }
            }
        }
    };
    (@ok $counters:ident) => { None };
    (@ok $counters:ident, $ok:ident) => { Some(&mut $counters.$ok) };
    (@counting) => { None };
    (@counting $started:ident $failed:ident $waiting:ident) => {
        Some(OperationCounting {
            started: |counters| counters.$started += 1,
            failed: |counters| counters.$failed += 1,
            waiting: |counters| counters.$waiting += 1,
        })
    };
    (@counts $counters:ident) => { None };
    (@counts $c:ident, $started:ident $ok:ident $failed:ident $waiting:ident $($other:ident)?) => {
        Some(OperationCounts {
            started: $c.$started,
            ok: $c.$ok,
            failed: $c.$failed,
            waiting: $c.$waiting,
            without_answer: 0 $(+ $c.$other)?,
        })
    };
}

/// Where the waits for an operation that no answer ended are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationWaits {
    /// Users wait for it: each wait without an end is among the unanswered ones.
    Unanswered,
    /// The probe counts its missing deliveries itself.
    Probe,
}

/// A person notices a tenth of a second. On one machine or in one data centre, a healthy system
/// takes a hundredth of it.
const SLOW_US: u64 = 100_000;

operations! {
    /// A connect, the upgrade of a WebSocket included.
    Connect = "connect", "connects", "connected", short "connect" "connects",
        slow SLOW_US, Unanswered,
        connects_started = connects_ok + connects_failed + connects_waiting;
    /// The part of a connect until TCP is established; of WebSockets and over TLS only.
    Tcp = "tcp", "TCP handshakes", "established", short "handshake" "handshakes",
        slow SLOW_US, Unanswered;
    /// The part of a connect from TCP until the handshake of TLS is complete; of targets over TLS
    /// only.
    Tls = "tls", "TLS handshakes", "secured", short "TLS handshake" "TLS handshakes",
        slow SLOW_US, Unanswered,
        tls_started = tls_ok + tls_failed + tls_waiting;
    /// A message and its answer.
    Message = "message", "messages", "answered", short "message" "messages",
        slow SLOW_US, Unanswered,
        messages_expected = messages_answered + messages_failed + messages_waiting;
    /// A join of a channel.
    Join = "join", "joins", "joined", short "join" "joins",
        slow SLOW_US, Unanswered,
        joins_started = joins_ok + joins_failed + joins_waiting;
    /// A push that asks for a reply.
    Push = "push", "pushes", "pushed", short "push" "pushes",
        slow SLOW_US, Unanswered,
        pushes_sent = pushes_ok + pushes_failed + pushes_waiting + pushes_without_reply;
    /// An HTTP request.
    Http = "http", "HTTP requests", "answered", short "request" "requests",
        slow SLOW_US, Unanswered,
        http_started = http_ok + http_failed + http_waiting;
    /// A probe: one message to all users of a topic. A delivery to all users takes as long as
    /// sending to all does, which for many users is more than an answer takes.
    Broadcast = "broadcast", "broadcasts", "delivered", short "broadcast" "deliveries",
        slow 10 * SLOW_US, Probe;
}

impl Operation {
    /// The operations that a load can be about: where it has several, it is about the first.
    pub const BY_WEIGHT: [Self; 6] =
        [Self::Message, Self::Push, Self::Http, Self::Broadcast, Self::Join, Self::Connect];

    /// Returns the operation of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|operation| operation.name() == name)
    }

    /// Returns the operations whose beginnings and ends are counted.
    pub fn counted() -> impl Iterator<Item = Self> {
        let none = LoadCounters::default();
        Self::ALL.into_iter().filter(move |operation| operation.counts(&none).is_some())
    }

    /// Returns the operations whose waits without an answer are counted.
    pub fn with_waits() -> impl Iterator<Item = Self> {
        let waits = |operation: &Self| operation.waits() == OperationWaits::Unanswered;
        Self::ALL.into_iter().filter(waits)
    }

    /// Returns the operations that are answered on an open connection.
    pub fn answered() -> impl Iterator<Item = Self> {
        let is_connect = |operation: Self| operation == Self::Connect || operation.is_part();
        Self::ALL.into_iter().filter(move |operation| !is_connect(*operation))
    }

    /// Reports whether it is a part of a connect.
    pub const fn is_part(self) -> bool {
        matches!(self, Self::Tcp | Self::Tls)
    }

    /// Returns the operations that users ask on an open connection and wait for, the weightiest
    /// first.
    pub fn requests() -> impl Iterator<Item = Self> {
        let is_request = |operation: &Self| !matches!(operation, Self::Connect | Self::Broadcast);
        Self::BY_WEIGHT.into_iter().filter(is_request)
    }

    /// Returns the requests that carry what users say, the weightiest first: messages, pushes and
    /// HTTP requests.
    pub fn messages() -> impl Iterator<Item = Self> {
        Self::requests().filter(|operation| *operation != Self::Join)
    }

    /// Returns the kinds of errors that end it.
    pub fn errors(self) -> impl Iterator<Item = ErrorKind> {
        ErrorKind::all().filter(move |kind| kind.operation() == Some(self))
    }
}

impl LoadCounters {
    /// Returns the number of requests that users have sent: messages, pushes and HTTP requests.
    pub fn requests_begun(&self) -> u64 {
        // Messages count as begun only where an answer is expected.
        let others = Operation::messages().filter(|operation| *operation != Operation::Message);
        let begun = others.filter_map(|operation| Some(operation.counts(self)?.started));
        self.messages_sent + begun.sum::<u64>()
    }

    /// Returns the number of requests that were answered as expected: messages, pushes and HTTP
    /// requests.
    pub fn requests_answered(&self) -> u64 {
        self.requests().map(|of| of.ok).sum()
    }

    /// Returns the number of requests whose users wait for an answer now.
    pub fn requests_waiting(&self) -> u64 {
        let ended = |of: &OperationCounts| of.ok + of.failed + of.without_answer;
        self.requests().map(|of| of.started.saturating_sub(ended(&of))).sum()
    }

    fn requests(&self) -> impl Iterator<Item = OperationCounts> {
        Operation::messages().filter_map(|operation| operation.counts(self))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A value for each operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PerOperation<T>([T; Operation::ALL.len()]);

impl<T> PerOperation<T> {
    /// Makes the value of each operation.
    pub fn of(value: impl FnMut(Operation) -> T) -> Self {
        Self(Operation::ALL.map(value))
    }

    /// Returns each operation with its value, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &T)> {
        Operation::ALL.into_iter().zip(&self.0)
    }

    /// Returns each operation with its value, to be changed.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Operation, &mut T)> {
        Operation::ALL.into_iter().zip(&mut self.0)
    }
}

impl<T> Index<Operation> for PerOperation<T> {
    type Output = T;

    fn index(&self, operation: Operation) -> &T {
        &self.0[operation as usize]
    }
}

impl<T> IndexMut<Operation> for PerOperation<T> {
    fn index_mut(&mut self, operation: Operation) -> &mut T {
        &mut self.0[operation as usize]
    }
}

impl PerOperation<Histogram> {
    /// Reports whether all histograms are empty.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Histogram::is_empty)
    }

    /// Adds every value that `other` recorded.
    pub fn merge(&mut self, other: &Self) {
        for (operation, histogram) in self.iter_mut() {
            histogram.merge(&other[operation]);
        }
    }
}

/// JSON has the histograms that are not empty, by the names of their operations.
impl Serialize for PerOperation<Histogram> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let recorded = self.iter().filter(|(_, histogram)| !histogram.is_empty());
        to.collect_map(recorded.map(|(operation, histogram)| (operation.name(), histogram)))
    }
}

/// Operations that only a newer version knows are passed over.
impl<'de, T: Deserialize<'de> + Default> Deserialize<'de> for PerOperation<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct ByName<T>(PerOperation<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ByName<T> {
            type Value = PerOperation<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("values by operation")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let Self(mut values) = self;
                while let Some(name) = map.next_key::<String>()? {
                    match Operation::named(&name) {
                        Some(operation) => values[operation] = map.next_value()?,
                        None => _ = map.next_value::<IgnoredAny>()?,
                    }
                }
                Ok(values)
            }
        }
        from.deserialize_map(ByName(Self::of(|_| T::default())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_its_own_place_and_name() {
        for (index, operation) in Operation::ALL.into_iter().enumerate() {
            assert_eq!(operation as usize, index);
            assert_eq!(Operation::named(operation.name()), Some(operation));
            let is_weighed = Operation::BY_WEIGHT.contains(&operation);
            assert_eq!(is_weighed, !operation.is_part(), "{operation}");
        }
    }

    #[test]
    fn what_begins_ends_in_one_way() {
        // The counters of one operation, and of no other, close its sum.
        let counters = LoadCounters {
            connects_started: 6,
            connects_ok: 3,
            connects_failed: 2,
            connects_waiting: 1,
            messages_expected: 60,
            messages_answered: 30,
            messages_failed: 20,
            messages_waiting: 10,
            joins_started: 600,
            joins_ok: 300,
            joins_failed: 200,
            joins_waiting: 100,
            pushes_sent: 6_000 + 7,
            pushes_without_reply: 7,
            pushes_ok: 3_000,
            pushes_failed: 2_000,
            pushes_waiting: 1_000,
            http_started: 60_000,
            http_ok: 30_000,
            http_failed: 20_000,
            http_waiting: 10_000,
            tls_started: 600_000,
            tls_ok: 300_000,
            tls_failed: 200_000,
            tls_waiting: 100_000,
            ..LoadCounters::default()
        };
        let counted = Operation::ALL
            .into_iter()
            .filter_map(|operation| Some((operation, operation.counts(&counters)?)));
        let mut started = Vec::new();
        for (operation, counts) in counted {
            assert!(counts.is_closed(), "{operation}: {counts:?}");
            started.push(counts.started);
        }
        assert_eq!(started, [6, 600_000, 60, 600, 6_007, 60_000]);
        assert!(!OperationCounts { started: 1, ..OperationCounts::default() }.is_closed());
    }

    #[test]
    fn histograms_come_back_from_json_by_name() {
        let mut all = PerOperation::<Histogram>::default();
        assert_eq!(serde_json::to_string(&all).unwrap(), "{}");
        all[Operation::Push].record_us(7);
        let json = serde_json::to_string(&all).unwrap();
        assert!(json.starts_with("{\"push\":\"HISTF"), "{json}");
        assert_eq!(serde_json::from_str::<PerOperation<Histogram>>(&json).unwrap(), all);
        let newer = json.replace('{', "{\"later\":[1],");
        assert_eq!(serde_json::from_str::<PerOperation<Histogram>>(&newer).unwrap(), all);
    }
}
