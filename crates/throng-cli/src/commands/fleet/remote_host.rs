//! A machine that ssh reaches, and the name of its agent.

use std::str::FromStr;

use crate::bus;

/// A machine that ssh reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RemoteHost {
    /// What ssh gets: `host`, `user@host`, or a name of `~/.ssh/config`.
    pub(super) address: String,
    /// The name of its agent: that of the host, as far as it can be a part of a subject.
    pub(super) name: String,
}

impl FromStr for RemoteHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        // ssh would read it as an option, and a shell as several words.
        let is_odd = |c: char| c.is_whitespace() || c.is_control();
        if text.starts_with('-') || text.contains(is_odd) {
            return Err("expected a host, such as web1 or user@10.0.0.7".to_owned());
        }
        let host = text.strip_prefix("ssh://").unwrap_or(text);
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let part = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        let name: String = host.chars().map(part).collect();
        let name = name.trim_matches('-').to_owned();
        bus::group(&name).map_err(|_| format!("`{host}` has no name for an agent"))?;
        Ok(Self { address: text.to_owned(), name })
    }
}

/// Checks that each host has a name of its own.
///
/// # Errors
/// Two have the same. The text says which.
pub(super) fn check_names(hosts: &[RemoteHost]) -> Result<(), String> {
    for (index, host) in hosts.iter().enumerate() {
        if let Some(other) = hosts[..index].iter().find(|other| other.name == host.name) {
            return Err(format!(
                "{} and {} give their agents the same name, {}; ssh knows hosts by other names, \
                 too: `Host` in ~/.ssh/config",
                other.address, host.address, host.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<String> {
        text.parse().ok().map(|host: RemoteHost| host.name)
    }

    #[test]
    fn an_agent_has_the_name_of_its_host() {
        for (text, agent) in [
            ("web1", "web1"),
            ("ada@web_1", "web_1"),
            ("10.0.0.7", "10-0-0-7"),
            ("ssh://ada@web1.example:2222", "web1-example-2222"),
            ("[fe80::1]", "fe80--1"),
        ] {
            assert_eq!(name(text).as_deref(), Some(agent), "{text}");
        }
        for wrong in ["", "-oProxyCommand=x", "a b", "a\nb", "ada@", "...", &"x".repeat(65)] {
            assert_eq!(name(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn two_agents_cannot_have_one_name() {
        let hosts: Vec<RemoteHost> =
            ["web1", "web2", "ada@web1"].map(|text| text.parse().unwrap()).into();
        assert_eq!(check_names(&hosts[..2]), Ok(()));
        let error = check_names(&hosts).unwrap_err();
        assert!(error.starts_with("web1 and ada@web1 "), "{error}");
    }
}
