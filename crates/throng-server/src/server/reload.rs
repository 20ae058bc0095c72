//! Other certificates and ticket keys for a running server.

use std::sync::mpsc::channel;

use throng_driver::CoreId;
use throng_tls::{TlsConfigError, TlsServerOptions};

use super::{RunningServer, STEERING_MAX, answers_until, lock};
use crate::core_message::CoreMessage;
use crate::{Handler, tls};

impl<H: Handler> RunningServer<H> {
    /// Returns the TLS options of the handshakes that begin now; `None` if the server has no TLS.
    pub fn tls(&self) -> Option<TlsServerOptions> {
        self.tls.as_ref().map(|options| lock(options).clone())
    }

    /// Gives all handshakes that begin from now on other TLS options: renewed certificates, say.
    /// Change a copy of [`Self::tls`]. Open connections and running handshakes keep what they began
    /// with. Waits for the cores for at most 5 s.
    ///
    /// # Errors
    /// The server has no TLS, or the options are wrong: then it goes on with those that it has. Or
    /// a core is busy: then it takes the new ones later.
    pub fn reload_tls(&self, options: TlsServerOptions) -> Result<(), TlsReloadError> {
        let mut current = lock(self.tls.as_ref().ok_or(TlsReloadError::NoTls)?);
        let cores = self.size.cores;
        let configs: Result<Vec<_>, _> =
            (0..cores).map(|core| tls::config_of(&options, core)).collect();
        let (reply, answers) = channel();
        for (core, config) in configs?.into_iter().enumerate() {
            self.mailboxes.send_control(core, CoreMessage::configure_tls(config, reply.clone()));
        }
        *current = options;
        drop(reply);
        let answered: Vec<CoreId> = answers_until(&answers, cores, STEERING_MAX);
        match cores - answered.len() {
            0 => Ok(()),
            silent => Err(TlsReloadError::Busy { silent, cores }),
        }
    }
}

/// The reason why a server did not take other TLS options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsReloadError {
    /// The server was started without TLS.
    #[error("this server has no TLS: its connections are plain")]
    NoTls,
    /// A certificate, a key or an option is wrong. The server goes on with those that it has.
    #[error("{0}")]
    Config(#[from] TlsConfigError),
    /// Cores have not answered for 5 s. They take the options when they do.
    #[error("{silent} of {cores} cores are busy, and take the new certificates later")]
    Busy {
        /// Cores that have not answered.
        silent: usize,
        /// All cores.
        cores: usize,
    },
}
