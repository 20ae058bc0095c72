//! Variables: what may stand between `${` and `}`.
//!
//! A variable is a small expression: the number of the user, a value that a step has stored, a cell
//! of a data file, a function. It means the same wherever a text may have variables. Computing one
//! appends to the caller's buffer and allocates nothing else.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};
use throng_base::Prng;

use super::data::DataTable;
use super::value_bytes::{
    DIGITS_MAX, HEX, UUID_BYTES, VARINT_BYTES_MAX, read_hex, write_integer, write_number,
    write_uuid, write_varint,
};

/// A parsed variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `user.id`: the number of the user over all cores, from 0.
    UserId,
    /// `counter`: the number of earlier messages of this user with a counter, from 0.
    Counter,
    /// A whole number.
    Number(u64),
    /// A text in quotes, or the value of an environment variable.
    Text(Box<str>),
    /// A value that a step has stored.
    Stored {
        /// Its place among the user's values.
        slot: u16,
        /// Its name.
        name: Box<str>,
        /// True if each step above that stores it stores a whole number.
        is_number: bool,
    },
    /// `probe`: the mark of the probe that is sent.
    Probe,
    /// A cell of the user's row of a data file.
    Cell {
        /// Index of the data file.
        table: u16,
        /// Index of the column.
        column: u16,
        /// Longest cell of the column, in bytes.
        bytes_max: usize,
        /// Name of the file and of the column.
        name: Box<str>,
    },
    /// `random(a,b)`: a random integer from a to b, both included.
    Random(u64, u64),
    /// `choice(a, b, ...)`: one of these, at random.
    Choice(Box<[Self]>),
    /// `uuid()`: a random UUID (RFC 9562, version 4).
    Uuid,
    /// `time()`: the time since 1970, in this many nanoseconds.
    Time(u64),
    /// `base64(x)`: x in Base64 (RFC 4648 section 4).
    Base64(Box<Self>),
    /// `json(x)`: x as a string of JSON, in its quotes.
    Json(Box<Self>),
    /// `sha256(x)`: the SHA-256 of x, in hexadecimal.
    Sha256(Box<Self>),
    /// `raw(x)`: x without the form that its place needs. It is the whole value.
    Raw(Box<Self>),
    /// `length(x)`: the number of bytes of x.
    Length(Box<Self>),
    /// `u16(x)` and the like: x as a whole number of this many bytes.
    Integer {
        /// 1, 2, 4 or 8.
        bytes: u8,
        /// True if the lowest byte is the first: `u16(x, 'le')`.
        is_little: bool,
        /// x.
        value: Box<Self>,
    },
    /// `varint(x)`: x in groups of seven bits, the lowest first, as MQTT and Protocol Buffers have
    /// it.
    Varint(Box<Self>),
    /// `from_hex(x)`: the bytes that x names in hexadecimal.
    FromHex(Box<Self>),
    /// `from_base64(x)`: the bytes of which x is the Base64.
    FromBase64(Box<Self>),
    /// `a + b` and the like.
    Arithmetic(Box<Arithmetic>),
}

/// A sum, difference, product, quotient or remainder of whole numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arithmetic {
    pub(super) left: Variable,
    pub(super) operator: Operator,
    pub(super) right: Variable,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Plus,
    Minus,
    Times,
    /// The right side is a number of at least 1.
    Over,
    /// The right side is a number of at least 1.
    Modulo,
}

/// The values from which a user's variables are computed.
#[derive(Clone, Copy, Debug)]
pub struct VariableScope<'a> {
    /// Number of the user.
    pub user_id: u64,
    /// Messages with a counter so far.
    pub counter: u64,
    /// Random numbers of the user.
    pub prng: Prng,
    /// Values that steps have stored.
    pub stored: &'a [Vec<u8>],
    /// Data files of the scenario.
    pub tables: &'a [DataTable],
    /// Mark of the probe that is sent; empty for all other messages.
    pub probe: &'a [u8],
    /// Seed of the run, from which the random numbers of topics follow.
    pub seed: u64,
    /// The first value that could not be written.
    pub fault: Option<&'static str>,
}

impl<'a> VariableScope<'a> {
    /// Creates the scope of a user that has stored nothing, without data files.
    pub fn new(user_id: u64, prng: Prng) -> Self {
        Self {
            user_id,
            counter: 0,
            prng,
            stored: &[],
            tables: &[],
            probe: &[],
            seed: 0,
            fault: None,
        }
    }

    /// Returns the values from which topics are rendered: the same ones each time.
    pub(crate) fn of_topic(self) -> Self {
        let prng = Prng::derive(self.seed ^ TOPIC_SEED, self.user_id);
        Self { counter: 0, prng, ..self }
    }
}

impl VariableScope<'_> {
    /// Notes that a value cannot be written.
    pub(super) fn fail(&mut self, fault: &'static str) {
        self.fault.get_or_insert(fault);
    }
}

impl Variable {
    /// Appends the value. If it has none, notes it in the scope.
    pub(crate) fn write(&self, scope: &mut VariableScope<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => out.extend_from_slice(text.as_bytes()),
            Self::Stored { slot, .. } => {
                if let Some(value) = scope.stored.get(usize::from(*slot)) {
                    out.extend_from_slice(value);
                }
            }
            Self::Probe => out.extend_from_slice(scope.probe),
            Self::Cell { table, column, .. } => {
                if let Some(table) = scope.tables.get(usize::from(*table)) {
                    out.extend_from_slice(table.cell(scope.user_id, usize::from(*column)));
                }
            }
            Self::Choice(values) => {
                let index = scope.prng.below(values.len() as u64) as usize;
                values[index].write(scope, out);
            }
            Self::Uuid => write_uuid(&mut scope.prng, out),
            Self::Raw(inner) => inner.write(scope, out),
            Self::Integer { bytes, is_little, value } => {
                write_integer(value.integer(scope), usize::from(*bytes), *is_little, scope, out);
            }
            Self::Varint(value) => write_varint(value.integer(scope), scope, out),
            Self::FromHex(inner) => {
                let value = inner.rendered(scope);
                match read_hex(&value) {
                    Some(bytes) => out.extend(bytes),
                    None => scope.fail("a value of `from_hex` that is not hexadecimal"),
                }
            }
            Self::FromBase64(inner) => {
                let value = inner.rendered(scope);
                match STANDARD.decode(value.trim_ascii()) {
                    Ok(bytes) => out.extend(bytes),
                    Err(_) => scope.fail("a value of `from_base64` that is not Base64"),
                }
            }
            Self::Base64(inner) => transform(inner, scope, out, |bytes, out| {
                let begin = out.len();
                out.resize(begin + base64_bytes(bytes.len()), 0);
                let written = STANDARD.encode_slice(bytes, &mut out[begin..]);
                out.truncate(begin + written.unwrap_or_default());
            }),
            Self::Sha256(inner) => transform(inner, scope, out, |bytes, out| {
                Sha256::digest(bytes).iter().for_each(|byte| {
                    out.extend([byte >> 4, byte & 15].map(|digit| HEX[usize::from(digit)]));
                });
            }),
            Self::Json(inner) => {
                out.push(b'"');
                let begin = out.len();
                inner.write(scope, out);
                super::escape::Escape::Json.apply(out, begin);
                out.push(b'"');
            }
            Self::UserId
            | Self::Counter
            | Self::Number(_)
            | Self::Random(..)
            | Self::Time(_)
            | Self::Length(_)
            | Self::Arithmetic(_) => write_number(self.number(scope), out),
        }
    }

    /// Returns the value in a buffer of its own.
    fn rendered(&self, scope: &mut VariableScope<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        self.write(scope, &mut out);
        out
    }

    /// Returns the value as a whole number, of a text that is one, too.
    fn integer(&self, scope: &mut VariableScope<'_>) -> Option<i128> {
        if self.is_number() {
            return Some(self.number(scope));
        }
        let value = self.rendered(scope);
        str::from_utf8(&value).ok()?.trim().parse().ok()
    }

    /// Computes a whole number; 0 for a text, and for a stored value that an error left out.
    fn number(&self, scope: &mut VariableScope<'_>) -> i128 {
        match self {
            Self::UserId => scope.user_id.into(),
            Self::Counter => scope.counter.into(),
            Self::Number(number) => (*number).into(),
            Self::Random(low, high) => scope.prng.between(*low, *high).into(),
            Self::Time(unit_ns) => {
                let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                (since.unwrap_or_default().as_nanos() / u128::from(*unit_ns)) as i128
            }
            Self::Arithmetic(arithmetic) => arithmetic.number(scope),
            Self::Length(inner) => inner.rendered(scope).len() as i128,
            Self::Stored { slot, .. } => {
                let value = scope.stored.get(usize::from(*slot));
                let digits = value.and_then(|value| std::str::from_utf8(value).ok());
                digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Reports whether the value is always a whole number.
    pub(super) fn is_number(&self) -> bool {
        matches!(
            self,
            Self::UserId
                | Self::Counter
                | Self::Number(_)
                | Self::Random(..)
                | Self::Time(_)
                | Self::Length(_)
                | Self::Arithmetic(_)
                | Self::Stored { is_number: true, .. }
        )
    }

    /// Returns the variable with a number in place of each value that only a run knows.
    pub(super) fn with_sample_values(&self) -> Self {
        match self {
            Self::Stored { .. } | Self::Cell { .. } | Self::Probe => Self::Number(0),
            Self::Choice(values) => {
                Self::Choice(values.iter().map(Self::with_sample_values).collect())
            }
            Self::Raw(inner) => Self::Raw(Box::new(inner.with_sample_values())),
            known => known.clone(),
        }
    }

    /// Returns an upper bound of the value's length, in bytes.
    pub(super) fn bytes_max(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Stored { .. } => STORED_BYTES_MAX,
            Self::Probe => PROBE_BYTES_MAX,
            Self::Cell { bytes_max, .. } => *bytes_max,
            Self::Choice(values) => values.iter().map(Self::bytes_max).max().unwrap_or(0),
            Self::Uuid => UUID_BYTES,
            Self::Base64(inner) => base64_bytes(inner.bytes_max()),
            Self::Json(inner) => 2 + super::escape::Escape::Json.bytes_max(inner.bytes_max()),
            Self::Sha256(_) => 64,
            Self::Raw(inner) | Self::FromHex(inner) | Self::FromBase64(inner) => inner.bytes_max(),
            Self::Integer { bytes, .. } => usize::from(*bytes),
            Self::Varint(_) => VARINT_BYTES_MAX,
            _ => DIGITS_MAX,
        }
    }

    /// Reports whether one of the variables that it consists of fits.
    pub(crate) fn any(&self, is: &impl Fn(&Self) -> bool) -> bool {
        is(self)
            || match self {
                Self::Choice(values) => values.iter().any(|value| value.any(is)),
                Self::Base64(inner)
                | Self::Json(inner)
                | Self::Sha256(inner)
                | Self::Raw(inner)
                | Self::Length(inner)
                | Self::Varint(inner)
                | Self::FromHex(inner)
                | Self::FromBase64(inner)
                | Self::Integer { value: inner, .. } => inner.any(is),
                Self::Arithmetic(arithmetic) => arithmetic.left.any(is) || arithmetic.right.any(is),
                _ => false,
            }
    }

    /// Reports whether its value stays as it is, whatever its place needs.
    pub(crate) const fn is_raw(&self) -> bool {
        matches!(self, Self::Raw(_))
    }

    /// Reports whether its value is bytes, and perhaps no text.
    pub(super) fn is_of_bytes(&self) -> bool {
        match self {
            Self::Integer { .. } | Self::Varint(_) | Self::FromHex(_) | Self::FromBase64(_) => true,
            Self::Raw(inner) => inner.is_of_bytes(),
            Self::Choice(values) => values.iter().any(Self::is_of_bytes),
            _ => false,
        }
    }

    /// Returns the name of the first part whose value is drawn anew each time.
    pub(crate) fn drawn(&self) -> Option<&'static str> {
        let names = [
            ("random", Self::Random(0, 0)),
            ("choice", Self::Choice(Box::default())),
            ("uuid", Self::Uuid),
            ("time", Self::Time(1)),
        ];
        let same_kind = |a: &Self, b: &Self| std::mem::discriminant(a) == std::mem::discriminant(b);
        let found = names.iter().find(|(_, kind)| self.any(&|part| same_kind(part, kind)));
        found.map(|(name, _)| *name)
    }
}

impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UserId => f.write_str("user.id"),
            Self::Counter => f.write_str("counter"),
            Self::Probe => f.write_str("probe"),
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => write!(f, "'{text}'"),
            Self::Stored { name, .. } | Self::Cell { name, .. } => f.write_str(name),
            Self::Random(low, high) => write!(f, "random({low},{high})"),
            Self::Choice(values) => {
                let values: Vec<_> = values.iter().map(Self::to_string).collect();
                write!(f, "choice({})", values.join(", "))
            }
            Self::Uuid => f.write_str("uuid()"),
            Self::Time(_) => f.write_str("time()"),
            Self::Base64(inner) => write!(f, "base64({inner})"),
            Self::Json(inner) => write!(f, "json({inner})"),
            Self::Sha256(inner) => write!(f, "sha256({inner})"),
            Self::Raw(inner) => write!(f, "raw({inner})"),
            Self::Length(inner) => write!(f, "length({inner})"),
            Self::Integer { bytes, is_little, value } => {
                let order = if *is_little { ", 'le'" } else { "" };
                write!(f, "u{}({value}{order})", bytes * 8)
            }
            Self::Varint(inner) => write!(f, "varint({inner})"),
            Self::FromHex(inner) => write!(f, "from_hex({inner})"),
            Self::FromBase64(inner) => write!(f, "from_base64({inner})"),
            Self::Arithmetic(arithmetic) => {
                let Arithmetic { left, operator, right } = &**arithmetic;
                let sign = match operator {
                    Operator::Plus => '+',
                    Operator::Minus => '-',
                    Operator::Times => '*',
                    Operator::Over => '/',
                    Operator::Modulo => '%',
                };
                write!(f, "{left} {sign} {right}")
            }
        }
    }
}

impl Arithmetic {
    fn number(&self, scope: &mut VariableScope<'_>) -> i128 {
        let (left, right) = (self.left.number(scope), self.right.number(scope));
        match self.operator {
            Operator::Plus => left.saturating_add(right),
            Operator::Minus => left.saturating_sub(right),
            Operator::Times => left.saturating_mul(right),
            Operator::Over => left.checked_div(right).unwrap_or(0),
            Operator::Modulo => left.checked_rem_euclid(right).unwrap_or(0),
        }
    }
}

/// Appends `inner`, and replaces it by what `write` makes of it.
fn transform(
    inner: &Variable,
    scope: &mut VariableScope<'_>,
    out: &mut Vec<u8>,
    write: impl Fn(&[u8], &mut Vec<u8>),
) {
    let begin = out.len();
    inner.write(scope, out);
    let mut written = Vec::new();
    write(&out[begin..], &mut written);
    out.truncate(begin);
    out.extend_from_slice(&written);
}

const fn base64_bytes(bytes: usize) -> usize {
    bytes.div_ceil(3) * 4
}

/// Separates the random numbers of topics from all others of a user.
const TOPIC_SEED: u64 = 0x746f_7069_6373;
/// Longest mark of a probe.
const PROBE_BYTES_MAX: usize = 40;

/// Longest value that a step stores.
pub(crate) const STORED_BYTES_MAX: usize = 16 << 10;
