//! What is wrong with a configuration, the file that has it, and what to do.

/// Mistake in a configuration of TLS.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsConfigError {
    /// A file cannot be read.
    #[error("{file} cannot be read: {problem}")]
    Unreadable {
        /// Path of the file.
        file: String,
        /// What the system says.
        problem: String,
    },
    /// A file is not PEM.
    #[error("{file} is no PEM file: {problem}. A PEM file has lines `-----BEGIN ...-----`")]
    NotPem {
        /// Name of the file.
        file: String,
        /// Where it is wrong.
        problem: String,
    },
    /// A file has no certificate.
    #[error("{file} has no certificate: it needs a block `-----BEGIN CERTIFICATE-----`")]
    NoCertificate {
        /// Name of the file.
        file: String,
    },
    /// A file has no private key.
    #[error(
        "{file} has no private key: it needs a block `-----BEGIN PRIVATE KEY-----`. A key with a \
         passphrase is not read: write it without one with `openssl pkey -in {file}`"
    )]
    NoKey {
        /// Name of the file.
        file: String,
    },
    /// A certificate is not readable.
    #[error("certificate {number} of {file} is wrong: {problem}")]
    BadCertificate {
        /// Name of the file.
        file: String,
        /// Place in the file, from 1.
        number: usize,
        /// What is wrong.
        problem: String,
    },
    /// A private key is of a kind that is not supported.
    #[error("the key of {file} is not supported: {problem}. Use ECDSA P-256, Ed25519 or RSA")]
    BadKey {
        /// Name of the file.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A certificate and a key do not belong together.
    #[error(
        "the key of {key} does not belong to the first certificate of {chain}: give its own key, \
         and put the server's certificate before those of its issuers"
    )]
    KeyOfOther {
        /// File of the certificates.
        chain: String,
        /// File of the key.
        key: String,
    },
    /// A server needs a certificate.
    #[error("a TLS server needs a certificate and its key")]
    NoPair,
    /// A file has no keys of tickets, or something else.
    #[error(
        "{file} has no usable ticket keys: {problem}. Each line is a key of 48 random bytes in \
         Base64: `openssl rand -base64 48 >>{file}` appends one"
    )]
    BadTicketKeys {
        /// Name of the file.
        file: String,
        /// Where it is wrong.
        problem: String,
    },
    /// The lowest version is above the highest, or no cipher of an allowed version is allowed.
    #[error(
        "no version of TLS is left: the lowest must not be above the highest, and one of its \
         ciphers must be allowed"
    )]
    NoVersion,
    /// The name of the server is neither a host name nor an address.
    #[error("`{name}` is neither a host name nor an address that a certificate can be for")]
    BadName {
        /// The name.
        name: String,
    },
    /// The system trusts no authority.
    #[error("this machine has no trusted authorities ({problem}): name a file with the CA")]
    NoSystemRoots {
        /// What the system says.
        problem: String,
    },
    /// rustls refuses the configuration.
    #[error("the TLS configuration is refused: {0}")]
    Refused(String),
}
