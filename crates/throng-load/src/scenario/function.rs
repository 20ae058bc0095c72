//! The functions that a variable may call.

/// A function of variables.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The function with its arguments, as a list of all functions shows it.
    pub(super) usage: &'static str,
    pub(super) example: &'static str,
    /// True if its value is bytes, which only a binary message has a place for.
    pub(super) is_of_bytes: bool,
}

impl Function {
    const fn text(name: &'static str, usage: &'static str, example: &'static str) -> Self {
        Self { name, usage, example, is_of_bytes: false }
    }

    const fn bytes(name: &'static str, usage: &'static str, example: &'static str) -> Self {
        Self { name, usage, example, is_of_bytes: true }
    }

    /// Returns the function of this name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

/// All functions, in the order in which they are listed.
pub(super) const FUNCTIONS: &[Function] = &[
    Function::text("random", "random(a,b)", "random(1,6)"),
    Function::text("choice", "choice(a,b)", "choice('red', 'green')"),
    Function::text("uuid", "uuid()", "uuid()"),
    Function::text("time", "time()", "time()"),
    Function::text("base64", "base64(x)", "base64('user:password')"),
    Function::text("json", "json(x)", "json('say \"hi\"')"),
    Function::text("sha256", "sha256(x)", "sha256('text')"),
    Function::text("raw", "raw(x)", "raw(row.path)"),
    Function::text("length", "length(x)", "length(row.name)"),
    Function::bytes("u8", "u8(x)", "u8(length(row.name))"),
    Function::bytes("u16", "u16(x)", "u16(length(row.name))"),
    Function::bytes("u32", "u32(x)", "u32(length(row.name))"),
    Function::bytes("u64", "u64(x)", "u64(user.id)"),
    Function::bytes("varint", "varint(x)", "varint(length(row.name))"),
    Function::bytes("from_hex", "from_hex(x)", "from_hex(row.key)"),
    Function::bytes("from_base64", "from_base64(x)", "from_base64(row.key)"),
];
