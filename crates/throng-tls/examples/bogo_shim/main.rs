//! The program that BoringSSL's test suite, BoGo, tests: this crate over blocking sockets.
//! `conformance/README.md` says how it is run.
//!
//! The runner starts the program once for each case, with flags. The program connects to the
//! runner, whatever its role in TLS is: once, and once more for each session to resume. It answers
//! each byte with its complement, until the runner closes.
//!
//! Exit codes: 0 if all went well; 1 with the error on standard error; 89 if the case needs what
//! this crate does not offer. With `THRONG_BOGO_LOG=FILE`, each 89 is a line of this file: the flag
//! and the reason.

mod connection;
mod flags;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::process::ExitCode;

use throng_tls::{
    CertifiedPair, PemFile, TicketKeys, TlsClientConfig, TlsClientOptions, TlsServerConfig,
    TlsServerOptions, TrustAnchors,
};

use self::connection::{Connection, Role};
use self::flags::{FlagError, Options, Settings};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The runner asks whether cases may hand a handshake over to another process.
    if arguments == ["-is-handshaker-supported"] {
        println!("No");
        return ExitCode::SUCCESS;
    }
    let failure = match Options::read(&arguments) {
        Ok([first, later]) => match run(&first, &later) {
            Ok(()) => return ExitCode::SUCCESS,
            Err(failure) => failure,
        },
        Err(failure) => failure,
    };
    match failure {
        FlagError::NotOffered { flag, reason } => {
            if let Some(file) = std::env::var_os("THRONG_BOGO_LOG") {
                let log = OpenOptions::new().append(true).create(true).open(file);
                let _ =
                    log.and_then(|mut log| log.write_all(format!("{flag}\t{reason}\n").as_bytes()));
            }
            ExitCode::from(89)
        }
        FlagError::Failed(text) => {
            eprintln!("{text}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the connections of a case.
fn run(first: &Options, later: &Options) -> Result<(), FlagError> {
    let master = TicketKeys::new([7; 32]);
    let role = role(&first.settings, &master)?;
    let later_role = match (&role, first.settings == later.settings) {
        (_, true) => role.clone(),
        (Role::Server(_), false) => self::role(&later.settings, &master)?,
        (Role::Client(_), false) => {
            let reason = "tickets belong to a configuration, which cannot change";
            return Err(FlagError::NotOffered { flag: "-on-resume-*".into(), reason });
        }
    };
    let mut table = connection::table();
    for number in 0..=first.resume_count {
        let (options, role) = if number == 0 { (first, &role) } else { (later, &later_role) };
        Connection::new(&mut table, role, options, number > 0)
            .and_then(Connection::run)
            .map_err(FlagError::Failed)?;
    }
    Ok(())
}

/// Returns the configuration of the program's end.
fn role(settings: &Settings, master: &TicketKeys) -> Result<Role, FlagError> {
    let file = |path: &str| PemFile::read(path.as_ref());
    let failed = |error: throng_tls::TlsConfigError| FlagError::Failed(error.to_string());
    let pair = match settings.chain.is_empty() {
        true => None,
        false => Some(CertifiedPair {
            chain: file(&settings.chain).map_err(failed)?,
            key: file(&settings.key).map_err(failed)?,
        }),
    };
    if settings.is_server {
        let mut options = TlsServerOptions::new(pair.into_iter().collect());
        (options.min, options.max) = (settings.min, settings.max);
        options.alpn.clone_from(&settings.alpn);
        options.tickets = settings.has_tickets.then(|| master.clone());
        if settings.verifies {
            // A case without an authority wants every certificate refused.
            let trust = if settings.trust.is_empty() { &settings.chain } else { &settings.trust };
            options.client_ca = Some(file(trust).map_err(failed)?);
        }
        return TlsServerConfig::new(&options, 0).map(Role::Server).map_err(failed);
    }
    let mut options = TlsClientOptions::new(settings.host_name.clone());
    (options.min, options.max) = (settings.min, settings.max);
    options.alpn.clone_from(&settings.alpn);
    options.certificate = pair;
    options.trust = match settings.verifies {
        true => TrustAnchors::File(file(&settings.trust).map_err(failed)?),
        false => TrustAnchors::Unverified,
    };
    if !settings.has_tickets {
        options.tickets_max = 0;
    }
    TlsClientConfig::new(&options).map(Role::Client).map_err(failed)
}
