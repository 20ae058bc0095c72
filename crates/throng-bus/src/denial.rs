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
    /// follows is the name of a process or of a topic, which is another one the next time.
    pub fn needed(&self) -> String {
        let parts: Vec<_> = self.subject.split('.').collect();
        match parts.as_slice() {
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
    fn a_permission_holds_for_all_processes_and_topics_of_the_group() {
        for (subject, needed) in [
            ("throng.eu.hellos", "throng.eu.hellos"),
            ("throng.eu.samples.web", "throng.eu.samples.>"),
            ("throng.eu.topics.17.00ff", "throng.eu.topics.>"),
            ("_INBOX.abc", "_INBOX.>"),
        ] {
            let denial = BusDenial { action: BusAction::Publish, subject: subject.to_owned() };
            assert_eq!(denial.needed(), needed);
            let text = denial.to_string();
            assert!(text.contains(subject) && text.contains(needed), "{text}");
        }
    }
}
