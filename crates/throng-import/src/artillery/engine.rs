//! `engine`: which protocol a scenario speaks.

use throng_load::scenario::HeaderPlace;

/// An engine whose scenarios are imported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Http,
    Ws,
}

impl Engine {
    /// Returns the engine of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "http" => Some(Self::Http),
            "ws" => Some(Self::Ws),
            _ => None,
        }
    }

    /// Returns its name, which is also the scheme of its targets.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Ws => "ws",
        }
    }

    /// Returns what its headers are sent with.
    pub(super) fn header_place(self) -> HeaderPlace {
        match self {
            Self::Http => HeaderPlace::Request,
            Self::Ws => HeaderPlace::Upgrade,
        }
    }

    /// Returns the names of its steps.
    pub(super) fn actions(self) -> &'static [&'static str] {
        match self {
            Self::Http => &[
                "get", "post", "put", "delete", "patch", "head", "options", "think", "loop", "log",
                "function", "parallel",
            ],
            Self::Ws => &["connect", "send", "wait", "think", "loop", "log", "function"],
        }
    }
}
