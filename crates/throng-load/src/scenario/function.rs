//! The functions that a variable may call.

/// A function of variables.
#[derive(Debug)]
pub(super) struct Function {
    pub(super) name: &'static str,
    /// The function with its arguments, as a list of all functions shows it.
    pub(super) usage: &'static str,
    pub(super) example: &'static str,
}

impl Function {
    /// Returns the function of this name.
    pub(super) fn of(name: &str) -> Option<&'static Self> {
        FUNCTIONS.iter().find(|function| function.name == name)
    }
}

/// All functions, in the order in which they are listed.
pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "random", usage: "random(a,b)", example: "random(1,6)" },
    Function { name: "choice", usage: "choice(a,b)", example: "choice('red', 'green')" },
    Function { name: "uuid", usage: "uuid()", example: "uuid()" },
    Function { name: "time", usage: "time()", example: "time()" },
    Function { name: "base64", usage: "base64(x)", example: "base64('user:password')" },
    Function { name: "json", usage: "json(x)", example: "json('say \"hi\"')" },
    Function { name: "sha256", usage: "sha256(x)", example: "sha256('text')" },
    Function { name: "raw", usage: "raw(x)", example: "raw(row.path)" },
];
