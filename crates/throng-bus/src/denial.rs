//! What a bus does not let its user do.

use std::fmt;

/// A refusal of the bus: its user may not publish under a subject, or not subscribe to it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusDenial {
    /// What the user may not do.
    pub action: BusAction,
    /// The subject, or the pattern of a subscription.
    pub subject: String,
}

/// What a user of the bus needs a permission for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BusAction {
    /// To publish under a subject.
    Publish,
    /// To subscribe to a subject.
    Subscribe,
}

impl BusDenial {
    /// Reads what a NATS server says: `Permissions Violation for Publish to "a.b"`. `None` if it is
    /// another error.
    pub(crate) fn parse(error: &str) -> Option<Self> {
        let (_, what) = error.split_once(VIOLATION)?;
        let action = match what {
            _ if what.starts_with("Publish") => BusAction::Publish,
            _ if what.starts_with("Subscription") => BusAction::Subscribe,
            _ => return None,
        };
        let subject = what.split('"').nth(1)?.to_owned();
        Some(Self { action, subject })
    }

    /// Returns the subjects that the user needs: the third part of a subject is its kind, and what
    /// follows is the name of a process or of a topic, which is another one the next time. A
    /// process needs no more than to speak under its own name, and to hear what is for it.
    pub fn needed(&self) -> String {
        let parts: Vec<_> = self.subject.split('.').collect();
        match (self.action, parts.as_slice()) {
            (BusAction::Publish, [_, _, "hellos" | "observers" | "samples", _])
            | (BusAction::Subscribe, [_, _, "agent" | "request" | "hellos" | "observers", _]) => {
                self.subject.clone()
            }
            (_, [root, group, kind @ ("coordinator" | "answer"), _, agent]) => {
                format!("{root}.{group}.{kind}.*.{agent}")
            }
            (_, parts) => self.of_all(parts),
        }
    }

    /// Returns the subjects of all processes and topics of a kind.
    fn of_all(&self, parts: &[&str]) -> String {
        match parts {
            [inbox @ "_INBOX", _, ..] => format!("{inbox}.>"),
            [root, group, kind, _, ..] => format!("{root}.{group}.{kind}.>"),
            _ => self.subject.clone(),
        }
    }
}

impl fmt::Display for BusDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, permission) = match self.action {
            BusAction::Publish => ("publish under", "publish"),
            BusAction::Subscribe => ("subscribe to", "subscribe"),
        };
        write!(
            f,
            "the NATS server does not let this user {verb} `{}`: give it the permission \
             {permission}: {{ allow: \"{}\" }}; packaging/nats/nats-server.conf shows what each \
             command needs",
            self.subject,
            self.needed()
        )
    }
}

/// The words of a NATS server before what is not permitted.
const VIOLATION: &str = "Permissions Violation for ";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_a_server_about_permissions_are_read() {
        for (error, action, subject) in [
            (r#"Permissions Violation for Publish to "a.b""#, BusAction::Publish, "a.b"),
            (r#"Permissions Violation for Subscription to "a.*""#, BusAction::Subscribe, "a.*"),
            (
                r#"Permissions Violation for Subscription to "a" using queue "q""#,
                BusAction::Subscribe,
                "a",
            ),
        ] {
            let denial = BusDenial::parse(error).unwrap();
            assert_eq!((denial.action, denial.subject.as_str()), (action, subject), "{error}");
        }
        for other in ["Slow Consumer", "Permissions Violation for Account", ""] {
            assert_eq!(BusDenial::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_permission_is_for_the_process_itself_or_for_all_that_it_speaks_to() {
        let (publish, subscribe) = (BusAction::Publish, BusAction::Subscribe);
        for (action, subject, needed) in [
            (publish, "throng.eu.hellos.web", "throng.eu.hellos.web"),
            (publish, "throng.eu.samples.web", "throng.eu.samples.web"),
            (publish, "throng.eu.coordinator.vm-1.web", "throng.eu.coordinator.*.web"),
            (publish, "throng.eu.answer.vm-1.web", "throng.eu.answer.*.web"),
            (publish, "throng.eu.agent.web", "throng.eu.agent.>"),
            (subscribe, "throng.eu.agent.web", "throng.eu.agent.web"),
            (subscribe, "throng.eu.request.web", "throng.eu.request.web"),
            (subscribe, "throng.eu.hellos.*", "throng.eu.hellos.*"),
            (subscribe, "throng.eu.coordinator.vm-1.*", "throng.eu.coordinator.*.*"),
            (subscribe, "throng.eu.samples.web", "throng.eu.samples.>"),
            (publish, "throng.eu.topics.17.00ff", "throng.eu.topics.>"),
            (publish, "_INBOX.abc", "_INBOX.>"),
        ] {
            let denial = BusDenial { action, subject: subject.to_owned() };
            assert_eq!(denial.needed(), needed);
            let text = denial.to_string();
            assert!(text.contains(subject) && text.contains(needed), "{text}");
        }
    }
}
