//! What a function of a session does, beside what it computes: whether it may send or close.

use crate::source::{Source, Span};

use super::lexer::{Piece, Token, TokenKind, tokens};

/// Reports whether the function at `span` may send or close, or wait, or call what this module does
/// not know. `socket` is the name of the session's socket. At the end of a session, timers may be
/// stopped: they send nothing any more.
pub(super) fn may_send(source: &Source<'_>, span: &Span, socket: &str, is_end: bool) -> bool {
    let words = Words { source, socket, is_end };
    !tokens(source.text, span.clone()).is_ok_and(|tokens| words.are_harmless(&tokens))
}

/// Reports whether a function stops a timer.
pub(super) fn stops_timer(name: &str) -> bool {
    ["clearTimeout", "clearInterval"].contains(&name)
}

/// What the words of a function are judged by.
struct Words<'a> {
    source: &'a Source<'a>,
    socket: &'a str,
    is_end: bool,
}

impl Words<'_> {
    fn is_harmless_function(&self, name: &str) -> bool {
        FUNCTIONS.contains(&name) || (self.is_end && stops_timer(name))
    }

    fn are_harmless(&self, words: &[Token]) -> bool {
        let sign = |at: usize| match words.get(at).map(|token| &token.kind) {
            Some(TokenKind::Sign(sign)) => *sign,
            _ => "",
        };
        words.iter().enumerate().all(|(at, token)| match &token.kind {
            TokenKind::Name(name) => {
                let is_member = at > 0 && [".", "?."].contains(&sign(at - 1));
                let is_called = sign(at + 1) == "(" || (sign(at + 1), sign(at + 2)) == ("?.", "(");
                let before = at.checked_sub(1).map(|at| &words[at].kind);
                let is_own = matches!(before, Some(TokenKind::Name(word)) if word == "function");
                match (is_member, is_called) {
                    // The name of a function that stands here.
                    _ if is_own => true,
                    (true, true) => METHODS.contains(&&**name),
                    (true, false) => true,
                    (false, true) => self.is_harmless_function(name),
                    (false, false) => name != self.socket && !OBJECTS_OF_TRAFFIC.contains(&&**name),
                }
            }
            TokenKind::Template(pieces) => pieces.iter().all(|piece| match piece {
                Piece::Text(_) => true,
                Piece::Expression(span) => tokens(self.source.text, span.clone())
                    .is_ok_and(|words| self.are_harmless(&words)),
            }),
            // The value of an expression is called: nothing says what it is.
            TokenKind::Sign("(") => {
                let is_optional = at > 0 && sign(at - 1) == "?.";
                let before = at.checked_sub(if is_optional { 2 } else { 1 });
                before.is_none_or(|before| ![")", "]"].contains(&sign(before)))
            }
            TokenKind::Sign(_) | TokenKind::Number(_) | TokenKind::Text(_) => true,
        })
    }
}

/// Words before a parenthesis that send nothing, and the functions that a script calls to compute
/// or to check.
const FUNCTIONS: [&str; 25] = [
    "if",
    "for",
    "while",
    "switch",
    "catch",
    "function",
    "return",
    "typeof",
    "check",
    "String",
    "Number",
    "Boolean",
    "Array",
    "Object",
    "Date",
    "Map",
    "Set",
    "Error",
    "parseInt",
    "parseFloat",
    "isNaN",
    "isFinite",
    "randomString",
    "randomIntBetween",
    "in",
];

/// Methods that compute, count or log. A method of any other name may send.
const METHODS: [&str; 47] = [
    "parse",
    "stringify",
    "log",
    "info",
    "warn",
    "error",
    "debug",
    "add",
    "push",
    "pop",
    "shift",
    "concat",
    "slice",
    "join",
    "split",
    "trim",
    "includes",
    "indexOf",
    "startsWith",
    "endsWith",
    "match",
    "test",
    "replace",
    "substring",
    "charAt",
    "charCodeAt",
    "padStart",
    "toLowerCase",
    "toUpperCase",
    "toString",
    "toFixed",
    "json",
    "keys",
    "values",
    "entries",
    "isArray",
    "isInteger",
    "now",
    "getTime",
    "toISOString",
    "floor",
    "ceil",
    "round",
    "random",
    "min",
    "max",
    "abs",
];

/// Objects whose methods make traffic, and words that change what a session does.
const OBJECTS_OF_TRAFFIC: [&str; 13] = [
    "http",
    "ws",
    "grpc",
    "browser",
    "WebSocket",
    "this",
    "globalThis",
    "await",
    "async",
    "throw",
    "yield",
    "import",
    "eval",
];
