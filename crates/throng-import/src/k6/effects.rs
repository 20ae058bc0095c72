//! What a function of a session does, beside what it computes: whether it may send or close.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use super::lexer::tokens;
use crate::lexer::{Piece, Token, TokenKind};
use crate::source::{Source, Span};

/// Reports whether the function at `span` may send or close, or wait, or call what this module does
/// not know. `socket` is the name of the session's socket. At the end of a session, timers may be
/// stopped: they send nothing any more.
pub(super) fn may_send(source: &Source<'_>, span: &Span, socket: &str, is_end: bool) -> bool {
    let words = Words { source, socket, is_end, collections: OnceCell::new() };
    !tokens(source.text, span).is_ok_and(|tokens| words.are_harmless(&tokens))
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
    /// The names of the script's collections, once they are asked for.
    collections: OnceCell<BTreeSet<String>>,
}

impl Words<'_> {
    fn is_harmless_function(&self, name: &str) -> bool {
        FUNCTIONS.contains(&name) || (self.is_end && stops_timer(name))
    }

    fn are_harmless(&self, words: &[Token]) -> bool {
        let sign = |at: usize| sign(words, at);
        words.iter().enumerate().all(|(at, token)| match &token.kind {
            TokenKind::Word(name) => {
                let is_member = is_member(words, at);
                let is_called = sign(at + 1) == "(" || (sign(at + 1), sign(at + 2)) == ("?.", "(");
                let before = at.checked_sub(1).map(|at| &words[at].kind);
                let is_own = matches!(before, Some(TokenKind::Word(word)) if word == "function");
                match (is_member, is_called) {
                    // The name of a function that stands here.
                    _ if is_own => true,
                    (true, true) => self.is_harmless_method(words, at, name),
                    (true, false) => true,
                    (false, true) => self.is_harmless_function(name),
                    (false, false) => name != self.socket && !OBJECTS_OF_TRAFFIC.contains(&&**name),
                }
            }
            TokenKind::Template(pieces) => pieces.iter().all(|piece| match piece {
                Piece::Text(_) => true,
                Piece::Expression(span) => {
                    tokens(self.source.text, span).is_ok_and(|words| self.are_harmless(&words))
                }
            }),
            // The value of an expression is called: nothing says what it is.
            TokenKind::Sign("(") => {
                let is_optional = at > 0 && sign(at - 1) == "?.";
                let before = at.checked_sub(if is_optional { 2 } else { 1 });
                before.is_none_or(|before| ![")", "]"].contains(&sign(before)))
            }
            _ => true,
        })
    }

    /// Reports whether the method that is called at `at` sends nothing. Other objects than lists
    /// and collections have methods of the same names: `client.get(key)` of Redis, and
    /// `channel.push(event, message)` and `channel.join()` of Phoenix.
    fn is_harmless_method(&self, words: &[Token], at: usize, name: &str) -> bool {
        let open = if sign(words, at + 1) == "?." { at + 2 } else { at + 1 };
        let object = at.checked_sub(2).filter(|at| !is_member(words, *at));
        let object = object.and_then(|at| self::name(words, at)).unwrap_or_default();
        match name {
            "assign" => object == "Object",
            "push" => arguments(words, open).len() == 1,
            "join" => match arguments(words, open)[..] {
                [[Token { kind: TokenKind::Text(separator), .. }]] => {
                    !separator.contains(char::is_alphanumeric)
                }
                _ => false,
            },
            _ if ITERATORS.contains(&name) => {
                arguments(words, open).first().is_some_and(|first| self.is_function(first))
            }
            _ if METHODS_OF_COLLECTIONS.contains(&name) => self.is_collection(object),
            _ => METHODS.contains(&name),
        }
    }

    /// Reports whether an argument is a function that stands here, so that its words are judged, or
    /// one that is known. A function of another name may send.
    fn is_function(&self, argument: &[Token]) -> bool {
        match (name(argument, 0), sign(argument, 0)) {
            (Some("function"), _) => true,
            (Some(name), _) if argument.len() == 1 => self.is_harmless_function(name),
            (Some(_), _) => sign(argument, 1) == "=>",
            (None, "(") => sign(argument, end(argument, 0) + 1) == "=>",
            _ => false,
        }
    }

    /// Reports whether a name of the script is that of a `Map` or a `Set`.
    fn is_collection(&self, name: &str) -> bool {
        self.collections.get_or_init(|| collections(self.source.text)).contains(name)
    }
}

/// Returns the names to which a script gives a `new Map(...)` or `new Set(...)`, and nothing else.
fn collections(script: &str) -> BTreeSet<String> {
    let words = tokens(script, &(0..script.len())).unwrap_or_default();
    let is_new = |at: usize| {
        name(&words, at) == Some("new")
            && matches!(name(&words, at + 1), Some("Map" | "Set"))
            && sign(&words, at + 2) == "("
            && ![".", "?.", "["].contains(&sign(&words, end(&words, at + 2) + 1))
    };
    let (mut collections, mut others) = (BTreeSet::new(), BTreeSet::new());
    for at in 0..words.len() {
        let Some(name) = name(&words, at) else { continue };
        if sign(&words, at + 1) == "=" && !is_member(&words, at) {
            let names = if is_new(at + 2) { &mut collections } else { &mut others };
            names.insert(name.to_owned());
        }
    }
    &collections - &others
}

/// Returns the sign at `at`; an empty text if there is none.
fn sign(words: &[Token], at: usize) -> &'static str {
    match words.get(at).map(|token| &token.kind) {
        Some(TokenKind::Sign(sign)) => sign,
        _ => "",
    }
}

fn name(words: &[Token], at: usize) -> Option<&str> {
    match words.get(at).map(|token| &token.kind) {
        Some(TokenKind::Word(name)) => Some(name),
        _ => None,
    }
}

/// Reports whether the word at `at` names a part of what stands before it.
fn is_member(words: &[Token], at: usize) -> bool {
    at > 0 && [".", "?."].contains(&sign(words, at - 1))
}

/// Returns the place of the bracket that ends the one at `open`, or the number of words.
fn end(words: &[Token], open: usize) -> usize {
    let mut depth = 0;
    for at in open..words.len() {
        match sign(words, at) {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    words.len()
}

/// Returns the arguments in the parentheses that begin at `open`. A comma at their end adds none.
fn arguments(words: &[Token], open: usize) -> Vec<&[Token]> {
    let end = end(words, open);
    let mut arguments = Vec::new();
    let mut begin = open + 1;
    let mut at = begin;
    while at < end {
        match sign(words, at) {
            "(" | "[" | "{" => at = self::end(words, at),
            "," => {
                arguments.push(&words[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    if begin < end {
        arguments.push(&words[begin..end]);
    }
    arguments
}

/// Words before a parenthesis that send nothing, and the functions that a script calls to compute
/// or to check.
const FUNCTIONS: &[&str] = words![
    "if" "for" "while" "switch" "catch" "function" "return" "typeof" "check" "String" "Number"
    "Boolean" "Array" "Object" "Date" "Map" "Set" "Error" "parseInt" "parseFloat" "isNaN" "isFinite"
    "randomString" "randomIntBetween" "in"
];

/// Methods that compute, count or log. A method of any other name may send.
const METHODS: &[&str] = words![
    "parse" "stringify" "log" "info" "warn" "error" "debug" "add" "pop" "shift" "concat" "slice"
    "split" "trim" "includes" "indexOf" "startsWith" "endsWith" "match" "test" "replace" "substring"
    "charAt" "charCodeAt" "padStart" "toLowerCase" "toUpperCase" "toString" "toFixed" "json" "keys"
    "values" "entries" "isArray" "isInteger" "now" "getTime" "toISOString" "floor" "ceil" "round"
    "random" "min" "max" "abs"
];

/// Methods that call the function they get for each item.
const ITERATORS: [&str; 8] =
    ["forEach", "map", "filter", "find", "findIndex", "some", "every", "reduce"];

/// Methods of a `Map` or a `Set`. The clients of databases have methods of these names, too.
const METHODS_OF_COLLECTIONS: [&str; 5] = ["get", "has", "set", "delete", "clear"];

/// Objects whose methods make traffic, and words that change what a session does.
const OBJECTS_OF_TRAFFIC: &[&str] = words![
    "http" "ws" "grpc" "browser" "WebSocket" "this" "globalThis" "await" "async" "throw" "yield"
    "import" "eval"
];
