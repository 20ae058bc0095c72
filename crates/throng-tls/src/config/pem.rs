//! Files in PEM, with their names for error messages.

use std::path::Path;

use rustls::pki_types::pem::{Error, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use throng_base::input_file::{self, CREDENTIALS_BYTES_MAX};
use zeroize::Zeroizing;

use super::TlsConfigError;

/// Text of a PEM file.
#[derive(Clone)]
pub struct PemFile {
    name: String,
    text: Zeroizing<Vec<u8>>,
}

impl PemFile {
    /// Creates a file from its text, which needs no file then.
    pub fn new(name: impl Into<String>, text: impl Into<Vec<u8>>) -> Self {
        Self { name: name.into(), text: Zeroizing::new(text.into()) }
    }

    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is larger than a megabyte.
    pub fn read(path: &Path) -> Result<Self, TlsConfigError> {
        let name = path.display().to_string();
        match input_file::read(path, CREDENTIALS_BYTES_MAX) {
            Ok(text) => Ok(Self::new(name, text)),
            Err(error) => {
                Err(TlsConfigError::Unreadable { file: name, problem: error.to_string() })
            }
        }
    }

    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the text of the file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Returns the certificates of the file, at least one.
    pub(crate) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&self.text).collect();
        let certificates = certificates.map_err(|error| self.not_pem(&error))?;
        match certificates.is_empty() {
            true => Err(TlsConfigError::NoCertificate { file: self.name.clone() }),
            false => Ok(certificates),
        }
    }

    /// Returns the first private key of the file.
    pub(crate) fn key(&self) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
        PrivateKeyDer::from_pem_slice(&self.text).map_err(|error| match error {
            Error::NoItemsFound => TlsConfigError::NoKey { file: self.name.clone() },
            error => self.not_pem(&error),
        })
    }

    fn not_pem(&self, error: &Error) -> TlsConfigError {
        TlsConfigError::NotPem { file: self.name.clone(), problem: error.to_string() }
    }
}
