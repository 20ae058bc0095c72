//! The bus within one process.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};

use crate::contract::{Bus, BusError, PAYLOAD_BYTES_MAX};
use crate::denial::BusDenial;
use crate::subject;
use crate::subscription::{BusMessage, BusSubscription, Subscriber, SubscriptionId, subscription};

/// A bus within one process. Clones of it are the same bus.
#[derive(Clone, Debug, Default)]
pub struct MemoryBus(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    subscribers: Mutex<Vec<(String, Subscriber)>>,
    is_away: AtomicBool,
    denials: Mutex<Vec<BusDenial>>,
}

impl MemoryBus {
    /// Creates a bus without subscribers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes the bus go away or come back, as a network does. Subscriptions stay.
    pub fn set_reachable(&self, is_reachable: bool) {
        self.0.is_away.store(!is_reachable, SeqCst);
    }

    /// Adds what this bus has not let its user do, as if a server had said so.
    pub fn deny(&self, denial: BusDenial) {
        self.0.denials.lock().unwrap_or_else(PoisonError::into_inner).push(denial);
    }

    fn check_reachable(&self) -> Result<(), BusError> {
        if self.is_reachable() { Ok(()) } else { Err(BusError::Away("it was made so".into())) }
    }
}

impl Bus for MemoryBus {
    fn publish(&self, subject: &str, payload: &[u8]) -> Result<(), BusError> {
        subject::check_subject(subject)?;
        if payload.len() > PAYLOAD_BYTES_MAX {
            return Err(BusError::TooLarge { bytes: payload.len(), bytes_max: PAYLOAD_BYTES_MAX });
        }
        self.check_reachable()?;
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|(pattern, subscriber)| {
            !subject::matches(pattern, subject) || {
                let message =
                    BusMessage { subject: subject.to_owned(), payload: payload.to_owned() };
                subscriber.deliver(message)
            }
        });
        Ok(())
    }

    fn subscribe(&self, pattern: &str) -> Result<BusSubscription, BusError> {
        subject::check_pattern(pattern)?;
        self.check_reachable()?;
        let (subscriber, subscription) = subscription();
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.push((pattern.to_owned(), subscriber));
        Ok(subscription)
    }

    fn extend(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        patterns.iter().try_for_each(|pattern| subject::check_pattern(pattern))?;
        self.check_reachable()?;
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let own = subscribers.iter().find(|(_, subscriber)| subscriber.is_of(subscription));
        if let Some(subscriber) = own.map(|(_, subscriber)| subscriber.clone()) {
            let mut new: HashSet<&str> = patterns.iter().map(String::as_str).collect();
            for (pattern, _) in subscribers.iter().filter(|(_, own)| own.is_of(subscription)) {
                new.remove(pattern.as_str());
            }
            let new = patterns.iter().filter(|pattern| new.remove(pattern.as_str()));
            subscribers.extend(new.map(|pattern| (pattern.clone(), subscriber.clone())));
        }
        Ok(())
    }

    fn reduce(&self, subscription: &SubscriptionId, patterns: &[String]) -> Result<(), BusError> {
        self.check_reachable()?;
        let mut subscribers = self.0.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain(|(pattern, subscriber)| {
            !(subscriber.is_of(subscription) && patterns.contains(pattern))
        });
        Ok(())
    }

    fn is_reachable(&self) -> bool {
        !self.0.is_away.load(SeqCst)
    }

    fn denials_after(&self, told: usize) -> Vec<BusDenial> {
        let denials = self.0.denials.lock().unwrap_or_else(PoisonError::into_inner);
        denials.iter().skip(told).cloned().collect()
    }
}
