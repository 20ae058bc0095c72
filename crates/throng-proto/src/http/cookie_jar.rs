//! The cookies of one user agent that talks to one host.

use std::time::Duration;

use throng_base::Instant;

use super::CookieRefusal;
use super::date::unix_seconds;
use super::request::path_of;

/// The most cookies in a jar. The oldest makes room.
pub const COOKIES_MAX: usize = 32;
/// The longest cookie, with its name and its path. A longer one is not stored.
pub const COOKIE_BYTES_MAX: usize = 4 << 10;
/// The most bytes of all cookies of a jar. The oldest make room.
pub const JAR_BYTES_MAX: usize = 8 << 10;

/// The cookies that a host has set (RFC 6265), for requests over plain HTTP to this host alone: it
/// ignores `Domain`, and does not store a cookie with `Secure`, which is never sent.
#[derive(Clone, Debug, Default)]
pub struct CookieJar {
    /// Those with the longest paths first, then the oldest (RFC 6265 section 5.4).
    cookies: Vec<Cookie>,
    /// The number of the next cookie.
    next: u32,
}

#[derive(Clone, Debug)]
struct Cookie {
    /// Name, `=` and value.
    text: Box<str>,
    name_bytes: u16,
    path: Box<str>,
    /// [`Instant::FAR`] for a cookie of the session.
    expires_at: Instant,
    /// Its order of creation.
    number: u32,
}

impl CookieJar {
    /// Creates an empty jar.
    pub const fn new() -> Self {
        Self { cookies: Vec::new(), next: 0 }
    }

    /// Reports whether it holds no cookie.
    pub fn is_empty(&self) -> bool {
        self.cookies.is_empty()
    }

    /// Takes the value of a `set-cookie` field: stores, replaces or deletes a cookie (RFC 6265
    /// section 5.2). `target` is the path of the request, and `date` the `date` field of the
    /// response, against which `Expires` is compared; without it, only dates before the year 2000
    /// are past. Returns why it holds no such cookie afterwards, if so.
    pub fn store(
        &mut self,
        set_cookie: &str,
        target: &str,
        date: Option<&str>,
        now: Instant,
    ) -> Option<CookieRefusal> {
        let mut parts = set_cookie.split(';');
        let Some((name, value)) = parts.next().and_then(|pair| pair.split_once('=')) else {
            return Some(CookieRefusal::Syntax);
        };
        let (name, value) = (name.trim_ascii(), value.trim_ascii());
        let (mut path, mut lifetime) = (default_path(target), Lifetime::Session);
        for part in parts {
            let (attribute, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim_ascii();
            match attribute.trim_ascii().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => path = value,
                "path" => path = default_path(target),
                "max-age" => lifetime = max_age(value).unwrap_or(lifetime),
                // `Max-Age` has precedence.
                "expires" if !matches!(lifetime, Lifetime::MaxAge(_)) => {
                    lifetime = expires(value, date).unwrap_or(lifetime);
                }
                "secure" => return Some(CookieRefusal::Secure),
                _ => {}
            }
        }
        let bytes = name.len() + 1 + value.len() + path.len();
        if name.is_empty() {
            return Some(CookieRefusal::Syntax);
        }
        if bytes > COOKIE_BYTES_MAX {
            return Some(CookieRefusal::TooLong);
        }
        let same = self.cookies.iter().position(|known| known.is(name, path));
        let replaced = same.map(|index| self.cookies.remove(index));
        let left = match lifetime {
            Lifetime::Session => None,
            Lifetime::MaxAge(left) | Lifetime::Expires(left) => Some(left),
        };
        if left.is_some_and(|left| left.is_zero()) {
            let is_held = replaced.is_some_and(|cookie| cookie.expires_at > now);
            return Some(if is_held { CookieRefusal::Deleted } else { CookieRefusal::Expired });
        }
        // Those that have expired make room first (RFC 6265 section 5.3).
        self.cookies.retain(|cookie| cookie.expires_at > now);
        self.make_room(bytes);
        let number = replaced.map_or(self.next, |cookie| cookie.number);
        self.next = self.next.wrapping_add(1);
        self.insert(Cookie {
            text: format!("{name}={value}").into(),
            name_bytes: name.len() as u16,
            path: path.into(),
            expires_at: left.map_or(Instant::FAR, |left| now + left),
            number,
        });
        None
    }

    /// Appends the value of the `cookie` field for a request to `target` at `now`; nothing if no
    /// cookie belongs to it.
    pub fn write(&self, target: &str, now: Instant, out: &mut Vec<u8>) {
        let path = path_of(target);
        let begin = out.len();
        for cookie in &self.cookies {
            if cookie.expires_at > now && cookie.matches(path) {
                if out.len() > begin {
                    out.extend_from_slice(b"; ");
                }
                out.extend_from_slice(cookie.text.as_bytes());
            }
        }
    }

    /// Returns the bytes of all cookies.
    pub fn held_bytes(&self) -> usize {
        self.cookies.iter().map(Cookie::bytes).sum()
    }

    /// Removes the oldest cookies, until one of `bytes` fits.
    fn make_room(&mut self, bytes: usize) {
        while self.cookies.len() >= COOKIES_MAX || self.held_bytes() + bytes > JAR_BYTES_MAX {
            let oldest = (0..self.cookies.len()).min_by_key(|index| self.cookies[*index].number);
            let Some(oldest) = oldest else { return };
            self.cookies.remove(oldest);
        }
    }

    fn insert(&mut self, cookie: Cookie) {
        let precedes = |other: &Cookie| {
            (usize::MAX - other.path.len(), other.number)
                < (usize::MAX - cookie.path.len(), cookie.number)
        };
        let at = self.cookies.partition_point(precedes);
        self.cookies.reserve_exact(1);
        self.cookies.insert(at, cookie);
    }
}

impl Cookie {
    fn is(&self, name: &str, path: &str) -> bool {
        &self.text[..usize::from(self.name_bytes)] == name && &*self.path == path
    }

    fn bytes(&self) -> usize {
        self.text.len() + self.path.len()
    }

    /// Reports whether the cookie belongs to requests with this path (RFC 6265 section 5.1.4).
    fn matches(&self, path: &str) -> bool {
        path.strip_prefix(&*self.path).is_some_and(|rest| {
            rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/')
        })
    }
}

/// The time for which a cookie is kept.
#[derive(Clone, Copy)]
enum Lifetime {
    Session,
    MaxAge(Duration),
    Expires(Duration),
}

/// Reads `Max-Age` (RFC 6265 section 5.2.2); `None` if it is no number.
fn max_age(value: &str) -> Option<Lifetime> {
    let digits = value.strip_prefix('-').unwrap_or(value);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let is_past = digits.len() < value.len();
    let seconds = if is_past { 0 } else { digits.parse().unwrap_or(u64::MAX) };
    Some(Lifetime::MaxAge(Duration::from_secs(seconds.min(LIFETIME_SECONDS_MAX))))
}

/// Reads `Expires` (RFC 6265 section 5.2.1); `None` if it is no date.
fn expires(value: &str, date: Option<&str>) -> Option<Lifetime> {
    let at = unix_seconds(value)?;
    let left = match date.and_then(unix_seconds) {
        Some(now) => at.saturating_sub(now),
        None if at < YEAR_2000 => 0,
        None => return Some(Lifetime::Session),
    };
    let seconds = u64::try_from(left).unwrap_or(0);
    Some(Lifetime::Expires(Duration::from_secs(seconds.min(LIFETIME_SECONDS_MAX))))
}

/// Returns the path of cookies that name none (RFC 6265 section 5.1.4).
fn default_path(target: &str) -> &str {
    let path = path_of(target);
    match path.rfind('/') {
        Some(at) if at > 0 && path.starts_with('/') => &path[..at],
        _ => "/",
    }
}

/// The longest lifetime: 400 days, as in browsers.
const LIFETIME_SECONDS_MAX: u64 = 400 * 86_400;
/// The beginning of the year 2000, in seconds from 1970.
const YEAR_2000: i64 = 946_684_800;

#[cfg(test)]
mod tests {
    use super::super::cookie_name;
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// Stores cookies, each set by a response to its target, and returns the field of a request.
    fn sent(set: &[(&str, &str)], target: &str, now: u64) -> String {
        let mut jar = CookieJar::new();
        for (from, value) in set {
            jar.store(value, from, Some("Thu, 01 Jan 2026 00:00:00 GMT"), at(1));
        }
        let mut out = Vec::new();
        jar.write(target, at(now), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_cookie_is_sent_where_its_path_matches() {
        for (from, set, target, cookie) in [
            ("/", "a=b", "/", "a=b"),
            ("/login?x=/y/z", "a=b; HttpOnly; SameSite=Lax", "/chat?q", "a=b"),
            ("/app/login", "a=b", "/app", "a=b"),
            ("/app/login", "a=b", "/app/", "a=b"),
            ("/app/login", "a=b", "/apple", ""),
            ("/app/login", "a=b", "/", ""),
            ("/app/login", "a=b; Path=/", "/socket/websocket", "a=b"),
            ("/app/login", "a=b; path=x", "/app/me", "a=b"),
            ("/", "a=b; Path=/x/", "/x/y", "a=b"),
            ("/", "a=b; Path=/x/", "/x", ""),
            ("/", " a = b c ;Path=/", "/", "a=b c"),
            ("/", "a=", "/", "a="),
            ("/", "a=b=c", "/", "a=b=c"),
            ("/", "a=b; Domain=elsewhere.example", "/", "a=b"),
            ("/", "a=b; Secure", "/", ""),
            ("/", "no pair", "/", ""),
            ("/", "=b", "/", ""),
        ] {
            assert_eq!(sent(&[(from, set)], target, 2), cookie, "{set} from {from} to {target}");
        }
    }

    #[test]
    fn longer_paths_and_older_cookies_are_first() {
        let set = [("/", "a=1"), ("/", "b=2; Path=/x"), ("/", "c=3"), ("/", "a=4")];
        assert_eq!(sent(&set, "/x/y", 2), "b=2; a=4; c=3");
    }

    #[test]
    fn a_cookie_ends_at_its_time() {
        for (set, now, cookie) in [
            ("a=b; Max-Age=10", 10, "a=b"),
            ("a=b; Max-Age=10", 11, ""),
            ("a=b; Max-Age=0", 1, ""),
            ("a=b; Max-Age=-1", 1, ""),
            ("a=b; Max-Age=x", 1_000, "a=b"),
            ("a=b; Max-Age=99999999999999999999", 1_000, "a=b"),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 1, ""),
            ("a=b; Expires=Thu, 01 Jan 2026 00:00:09 GMT", 9, "a=b"),
            ("a=b; Expires=Thu, 01 Jan 2026 00:00:09 GMT", 10, ""),
            ("a=b; Max-Age=5; Expires=Thu, 01 Jan 1970 00:00:00 GMT", 5, "a=b"),
            ("a=b; Expires=never", 1_000, "a=b"),
        ] {
            assert_eq!(sent(&[("/", set)], "/", now), cookie, "{set} at {now}");
            // It replaces, or deletes, what was there.
            assert_eq!(sent(&[("/", "a=x"), ("/", set)], "/", now), cookie, "{set} at {now}");
        }
    }

    #[test]
    fn a_jar_says_why_it_holds_no_cookie() {
        let mut jar = CookieJar::new();
        let long = format!("a={}", "x".repeat(COOKIE_BYTES_MAX));
        for (set, refusal) in [
            ("a=b; Max-Age=0", Some(CookieRefusal::Expired)),
            ("a=b", None),
            ("a=b; Max-Age=0", Some(CookieRefusal::Deleted)),
            ("a=b; Expires=Thu, 01 Jan 1970 00:00:00 GMT", Some(CookieRefusal::Expired)),
            ("a=b; secure", Some(CookieRefusal::Secure)),
            ("a", Some(CookieRefusal::Syntax)),
            ("=b", Some(CookieRefusal::Syntax)),
            (&long, Some(CookieRefusal::TooLong)),
        ] {
            assert_eq!(jar.store(set, "/", None, at(1)), refusal, "{set:.40}");
        }
        assert_eq!(cookie_name(" sid =x; Secure"), Some("sid"));
        assert_eq!([cookie_name("x; a=b"), cookie_name("=b")], [None; 2]);
    }

    #[test]
    fn a_date_in_the_past_is_past_without_the_date_of_the_response() {
        let mut jar = CookieJar::new();
        jar.store("a=b; Expires=Fri, 01 Jan 2100 00:00:00 GMT", "/", None, at(1));
        assert!(!jar.is_empty());
        jar.store("a=; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "/", None, at(1));
        assert!(jar.is_empty());
    }

    #[test]
    fn cookies_that_have_expired_make_room_before_the_oldest() {
        let mut jar = CookieJar::new();
        jar.store("sid=1", "/", None, at(0));
        for number in 0..2 * COOKIES_MAX as u64 {
            let flash = format!("flash{number}=x; Max-Age=1");
            jar.store(&flash, "/", None, at(2 * number));
        }
        let mut out = Vec::new();
        jar.write("/", at(1000), &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "sid=1");
    }

    #[test]
    fn the_oldest_cookies_make_room() {
        let mut jar = CookieJar::new();
        for number in 0..COOKIES_MAX + 3 {
            jar.store(&format!("c{number}=x"), "/", None, at(0));
        }
        let mut out = Vec::new();
        jar.write("/", at(1), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(jar.cookies.len(), COOKIES_MAX);
        assert!(text.starts_with("c3=x; c4=x"), "{text}");
        let long = "x".repeat(COOKIE_BYTES_MAX - 3);
        for name in ["d", "e", "f", "g"] {
            jar.store(&format!("{name}={long}"), "/", None, at(0));
        }
        assert_eq!(jar.cookies.len(), 2, "two of them fill the jar");
        jar.store(&format!("h={long}x"), "/", None, at(0));
        assert_eq!(jar.cookies.len(), 2, "a cookie that is too long is not stored");
    }
}
