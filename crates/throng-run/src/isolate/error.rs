//! The errors of network namespaces.

use std::fmt;

use throng_driver::Errno;

/// The reason why there are no namespaces.
#[derive(Debug)]
pub enum IsolateError {
    /// `ip` is not installed.
    NoIp,
    /// The kernel refuses a namespace.
    Unshare(Errno),
    /// `ip` or a sysctl failed.
    Setup(String),
}

impl fmt::Display for IsolateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unshare(Errno::PERMISSION) => f.write_str(
                "--isolate creates network namespaces, which needs root (in a container, \
                 CAP_SYS_ADMIN): run it with sudo",
            ),
            Self::NoIp => f.write_str("--isolate needs the command `ip`: apt-get install iproute2"),
            Self::Unshare(errno) => {
                write!(f, "--isolate: the kernel refuses a network namespace: {errno}")
            }
            Self::Setup(failure) => write!(f, "--isolate: {failure}"),
        }
    }
}

impl std::error::Error for IsolateError {}
