//! The meaning of a status that refuses an upgrade: its name, its usual reason, and what to do.

use throng_measure::LoadCounters;
use throng_report::render::count;

use crate::counted::counted;
use crate::first_error::{FirstError, cut};
use crate::run_view::RunView;

/// The meaning of a status.
pub(super) struct StatusMeaning {
    /// Name of the status and what the first answer adds to it, with a space before it.
    pub(super) name: String,
    /// Usual reason, a sentence.
    pub(super) usually: String,
    pub(super) remedy: String,
}

impl StatusMeaning {
    /// Returns the meaning of a status, given the first answer with it.
    pub(super) fn of(status: &str, answer: Option<FirstError<'_>>, run: &RunView<'_>) -> Self {
        let field = |name: &'static str| answer.and_then(|answer| answer.field(name));
        let row = STATUSES.iter().find(|row| row.statuses.contains(&status)).unwrap_or(&UNKNOWN);
        let [name, usually, remedy] = [row.name, row.usually, row.remedy].map(str::to_owned);
        let usual = Self { name, usually, remedy };
        let usual = match DEFLATE_STATUSES.contains(&status) {
            true => with_deflate(usual, run),
            false => usual,
        };
        match status {
            "400" | "404" | "426" if field("server").is_some_and(is_nginx) => of_nginx(usual),
            "200" | "201" | "204" => answer.map_or(usual, |answer| page(answer, run)),
            "301" | "302" | "303" | "307" | "308" => match field("location") {
                Some(location) => redirect(location, run),
                None => usual,
            },
            "401" | "407" => match field("www-authenticate") {
                Some(scheme) => {
                    Self { name: format!("{} (it asks for {})", usual.name, cut(scheme)), ..usual }
                }
                None => usual,
            },
            _ => match field("retry-after") {
                Some(after) => {
                    Self { name: format!("{} (Retry-After: {})", usual.name, cut(after)), ..usual }
                }
                None => usual,
            },
        }
    }

    /// Returns the meaning for a server that had let so many in before `began_ms`.
    pub(super) fn expired(self, passed: u64, began_ms: u64) -> Self {
        Self {
            name: format!("{}: all after {} s", self.name, count(began_ms as f64 / 1000.0)),
            usually: format!(
                "{} before had passed, so a token or a session has expired.",
                counted(passed, "handshake", "handshakes")
            ),
            remedy: "log in again before each `connect`, so that each has a new token, or let \
                     tokens and sessions live longer than the run"
                .to_owned(),
        }
    }
}

/// Adds to a meaning that the upgrade requests offer compression, if the server agreed to none.
fn with_deflate(usual: StatusMeaning, run: &RunView<'_>) -> StatusMeaning {
    let has_agreed = |counters: &LoadCounters| counters.deflate_agreed > 0;
    let counters = run.counted().map(|load| &load.counters);
    let Some(counters) = counters.filter(|it| it.deflate_offered > 0 && !has_agreed(it)) else {
        return usual;
    };
    let StatusMeaning { name, usually, remedy } = usual;
    let offered = counted(counters.deflate_offered, "request offers", "requests offer");
    StatusMeaning {
        name,
        usually: format!("{usually} {offered} permessage-deflate, and it agreed to none."),
        remedy: format!(
            "try `connect` without `deflate`, then with `deflate: true`, the offer of browsers: a \
             server may refuse a parameter; else {remedy}"
        ),
    }
}

/// Statuses of servers that do not agree to an offer of compression: npm's `ws` answers 400.
const DEFLATE_STATUSES: [&str; 5] = ["400", "406", "426", "500", "501"];

/// Reports whether a field `server` names nginx.
fn is_nginx(server: &str) -> bool {
    server.to_ascii_lowercase().starts_with("nginx")
}

/// Returns the meaning of a status that nginx gave: either itself, or for a server behind it that
/// did not get the upgrade.
fn of_nginx(usual: StatusMeaning) -> StatusMeaning {
    StatusMeaning {
        name: format!("{} (nginx answered)", usual.name),
        usually: "By default nginx does not pass on upgrades: the server behind it gets an \
                  ordinary request."
            .to_owned(),
        remedy: format!(
            "let nginx pass the upgrade on: proxy_http_version 1.1; proxy_set_header Upgrade \
             $http_upgrade; proxy_set_header Connection upgrade; if the server without nginx \
             answers the same, {}",
            usual.remedy
        ),
    }
}

/// Returns the meaning of a page: an ordinary one, or one that asks for a password.
fn page(answer: FirstError<'_>, run: &RunView<'_>) -> StatusMeaning {
    let title = answer.field("title").map(|title| format!(", \u{201c}{}\u{201d}", cut(title)));
    let title = title.unwrap_or_default();
    if answer.field("form") == Some("password") {
        return login(format!(" (a login page{title})"));
    }
    let path = target_path(&run.header.target);
    let ordinary = &STATUSES[0];
    StatusMeaning {
        name: format!(" (an ordinary page{title}: no WebSocket at {path})"),
        usually: ordinary.usually.to_owned(),
        remedy: ordinary.remedy.to_owned(),
    }
}

/// Returns the meaning of a redirect.
fn redirect(location: &str, run: &RunView<'_>) -> StatusMeaning {
    let path = location.split(['?', '#']).next().unwrap_or_default().to_ascii_lowercase();
    let is_login = path.split(['/', '.']).any(|part| LOGIN_PARTS.contains(&part));
    if is_login {
        return login(format!(" (a redirect to a login page, {})", cut(location)));
    }
    let to = absolute(location, run);
    let remedy = format!("load the address that it redirects to: --target {to}");
    StatusMeaning {
        name: format!(" (a redirect to {})", cut(location)),
        usually: "The server is at another address.".to_owned(),
        remedy,
    }
}

fn login(name: String) -> StatusMeaning {
    StatusMeaning {
        name,
        usually: "The server lets in only users with a session.".to_owned(),
        remedy: "log in with a browser or curl, and add the session's cookie or token to the \
                 scenario: connect: {headers, query}"
            .to_owned(),
    }
}

/// Returns the target that a redirect names.
fn absolute(location: &str, run: &RunView<'_>) -> String {
    let target = &run.header.target;
    for (page, socket) in [("http:", "ws:"), ("https:", "wss:")] {
        if let Some(rest) = location.strip_prefix(page) {
            return format!("{socket}{rest}");
        }
    }
    let scheme = if target.starts_with("wss:") { "wss:" } else { "ws:" };
    let authority = target.find("://").map_or(0, |at| at + 3);
    let end = target[authority..].find(['/', '?']).map_or(target.len(), |at| authority + at);
    match location {
        location if location.starts_with("ws:") || location.starts_with("wss:") => {
            location.to_owned()
        }
        location if location.starts_with("//") => format!("{scheme}{location}"),
        location if location.starts_with('/') => format!("{}{location}", &target[..end]),
        location => format!("{}/{location}", &target[..end]),
    }
}

/// Returns the path of a target, without its query.
fn target_path(target: &str) -> &str {
    let authority = target.find("://").map_or(0, |at| at + 3);
    let path = target[authority..].find('/').map_or("/", |at| &target[authority + at..]);
    path.split('?').next().unwrap_or(path)
}

/// A row of the table of statuses.
struct StatusRow {
    statuses: &'static [&'static str],
    name: &'static str,
    usually: &'static str,
    remedy: &'static str,
}

/// Parts of a path that lead to a login page.
const LOGIN_PARTS: &[&str] = &[
    "login",
    "log-in",
    "log_in",
    "signin",
    "sign-in",
    "sign_in",
    "auth",
    "oauth",
    "oauth2",
    "sso",
    "authorize",
    "session",
    "sessions",
];

/// All statuses with a usual meaning.
const STATUSES: &[StatusRow] = &[
    StatusRow {
        statuses: &["200", "201", "204"],
        name: " (an ordinary page)",
        usually: "A web server answers at this path, not a WebSocket server.",
        remedy: "correct the path of the target; many servers have /ws, Phoenix has \
                 /socket/websocket",
    },
    StatusRow {
        statuses: &["301", "302", "303", "307", "308"],
        name: " (a redirect)",
        usually: "The server redirects to another address.",
        remedy: "put the address that it redirects to into the target",
    },
    StatusRow {
        statuses: &["400"],
        name: " Bad Request",
        usually: "The server considers the upgrade malformed: a header or parameter is missing, \
                  or a proxy does not forward upgrades.",
        remedy: "compare the headers and the query with those of a client that succeeds",
    },
    StatusRow {
        statuses: &["401", "407"],
        name: " Unauthorized",
        usually: "The server requires authentication.",
        remedy: "add the token or cookie to the scenario: connect: {headers, query}",
    },
    StatusRow {
        statuses: &["403"],
        name: " Forbidden",
        usually: "Usually the server rejects the origin or a token.",
        remedy: "set the origin with connect: {headers: {origin: ...}}, or allow it in the server \
                 (check_origin)",
    },
    StatusRow {
        statuses: &["404"],
        name: " Not Found",
        usually: "There is no WebSocket at this path.",
        remedy: "correct the path of the target; Phoenix has /socket/websocket",
    },
    StatusRow {
        statuses: &["408", "504"],
        name: " (a time-out)",
        usually: "A service behind the server did not answer in time.",
        remedy: "find the slow service behind the server",
    },
    StatusRow {
        statuses: &["426"],
        name: " Upgrade Required",
        usually: "The server requires another version or protocol.",
        remedy: "check the version and the subprotocols that it requires",
    },
    StatusRow {
        statuses: &["500"],
        name: " Internal Server Error",
        usually: "The server failed during the handshake.",
        remedy: "look for the error in the server's log",
    },
    StatusRow {
        statuses: &["502"],
        name: " Bad Gateway",
        usually: "A proxy in front of the server could not reach it.",
        remedy: "check that the server behind the proxy runs and accepts",
    },
    StatusRow {
        statuses: &["503"],
        name: " Service Unavailable",
        usually: "The server is overloaded or at a limit of its own, or a load balancer has no \
                  server left.",
        remedy: "raise the server's own limit of connections or requests, or add instances",
    },
];

/// The meaning of any other status.
const UNKNOWN: StatusRow = StatusRow {
    statuses: &[],
    name: "",
    usually: "The server's documentation says what it means.",
    remedy: "look for this status in the server's log",
};
