//! The Erlang article's own servers, compiled from `bench/erlang` for the lab where `erl` is
//! installed.

use std::ffi::OsStr;
use std::net::TcpListener;
use std::process::{Command, Stdio};

use throng_run::test_bed::{TestBed, TestBedError, TestBedServer};

/// A server of the Erlang article.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ErlangServer {
    /// The name of the row, which its files carry.
    pub(crate) row: &'static str,
    /// The name in the table.
    pub(crate) title: &'static str,
    /// The article's figure.
    pub(crate) messages_per_second: Option<f64>,
    shape: &'static str,
}

/// Compiles the servers that receive messages.
///
/// # Errors
/// A sentence that says why the lab leaves them out.
pub(crate) fn prepare(test_bed: &TestBed) -> Result<Vec<ErlangServer>, String> {
    // The work folder, not the kept one: erl runs this code.
    let source = test_bed.work_path("gen_tcp_ok.erl");
    TestBed::write(&source, MODULE).map_err(|error| format!("{}: {error}", source.display()))?;
    let folder = source.parent().unwrap_or(&source);
    let mut erlc = Command::new("erlc");
    erlc.arg("-o").arg(folder).arg(&source).stdin(Stdio::null());
    match erlc.output() {
        Err(_) => {
            Err("the article's own servers are left out: erl is not installed (apt-get install \
                       erlang-base)"
                .to_owned())
        }
        Ok(output) if !output.status.success() => {
            let message = String::from_utf8_lossy(&output.stdout).trim().to_owned();
            Err(format!("the article's own servers are left out: erlc failed: {message}"))
        }
        Ok(_) => Ok(SERVERS.to_vec()),
    }
}

impl ErlangServer {
    /// Starts the server with `schedulers` schedulers that do not spin while they wait.
    pub(crate) fn start(
        &self,
        test_bed: &TestBed,
        schedulers: u64,
    ) -> Result<TestBedServer, TestBedError> {
        let addr = test_bed.listen_at(
            free_port().map_err(|error| TestBedError::File("127.0.0.1:0".into(), error))?,
        );
        let mut erl: Vec<&OsStr> = ["erl", "-noinput"].map(OsStr::new).to_vec();
        let schedulers = format!("{schedulers}:{schedulers}");
        let (port, folder) = (addr.port().to_string(), test_bed.work_path(""));
        erl.extend(["+S", &schedulers].map(OsStr::new));
        erl.extend(["+sbwt", "none", "+sbwtdcpu", "none", "+sbwtdio", "none"].map(OsStr::new));
        erl.extend([OsStr::new("-pa"), folder.as_os_str()]);
        erl.extend(["-run", "gen_tcp_ok", "main", self.shape, &port].map(OsStr::new));
        // Erlang does not notice the end of its standard input; the shell around it does.
        let mut command = Command::new("sh");
        command
            .args(["-c", "\"$@\" & child=$!; cat >/dev/null; kill $child; wait $child", "sh"])
            .args(erl);
        test_bed.serve_other(self.row, command, addr)
    }
}

/// Returns a port of loopback without a listener.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

const MODULE: &str = include_str!("../../../bench/erlang/gen_tcp_ok.erl");

/// The article's servers, which differ in how they receive and respond.
const SERVERS: [ErlangServer; 3] = [
    ErlangServer {
        row: "gen_tcp-one",
        title: "gen_tcp, a process each",
        messages_per_second: Some(70_000.0),
        shape: "one",
    },
    ErlangServer {
        row: "gen_tcp-readers",
        title: "gen_tcp, 100 readers",
        messages_per_second: Some(100_000.0),
        shape: "readers",
    },
    ErlangServer {
        row: "gen_tcp-responders",
        title: "gen_tcp, 200 responders",
        messages_per_second: Some(70_000.0),
        shape: "responders",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_is_one_that_the_module_knows() {
        for server in SERVERS {
            assert!(MODULE.contains(&format!("start(\"{}\"", server.shape)), "{}", server.shape);
        }
    }
}
