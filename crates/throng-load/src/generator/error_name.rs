//! The name of a kind of error, without a text for each occurrence.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::user::{ConnectFailure, ErrorKind, close_code_name};

/// Kind of an error, as it is named in reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ErrorName {
    /// An error of an established connection.
    Kind(ErrorKind),
    /// A failed connect.
    Connect(ConnectFailure),
    /// A close frame of the server, with its code.
    Close(Option<u16>),
    /// An answer to an HTTP request with an unexpected status.
    HttpStatus(u16),
}

impl fmt::Display for ErrorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind.name()),
            Self::Connect(why) => why.fmt(f),
            Self::Close(code) => f.write_str(&close_code_name(*code)),
            Self::HttpStatus(status) => f.write_str(&ErrorKind::HttpStatus.with(status)),
        }
    }
}
