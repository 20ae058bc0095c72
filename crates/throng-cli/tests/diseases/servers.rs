//! Foreign servers, each a program of its own.

use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::stage::{Stage, until};

/// Starts a script of `servers/` with Python, and returns the address at which it listens.
///
/// # Errors
/// Python is missing.
pub(crate) fn python(stage: &mut Stage, script: &str, args: &[&str]) -> Result<SocketAddr, String> {
    let is_there = Command::new("python3")
        .args(["-c", "import asyncio"])
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_there {
        return Err("`python3` is not installed".to_owned());
    }
    Ok(start(stage, "python3", script, args))
}

/// Starts a script of `servers/` with Node, and returns the address at which it listens.
///
/// # Errors
/// Node or its package `ws` is missing.
pub(crate) fn node(stage: &mut Stage, script: &str, args: &[&str]) -> Result<SocketAddr, String> {
    let packages = tests().join("clients/node/node_modules/ws/package.json");
    if !packages.exists() {
        return Err("the npm packages are not installed: run `make clients`".to_owned());
    }
    Ok(start(stage, "node", script, args))
}

/// Starts nginx with this configuration, which listens at port 8443, and returns its address.
///
/// # Errors
/// nginx is missing.
pub(crate) fn nginx(stage: &mut Stage, configuration: &str) -> Result<SocketAddr, String> {
    std::fs::write(stage.path("nginx.conf"), configuration).unwrap();
    at_port(stage, "nginx", "nginx -p . -c nginx.conf", 8_443)
}

/// Starts a program by lines of shell in the folder of the stage, and returns its address at this
/// port, when it listens there.
///
/// # Errors
/// The program is missing.
pub(crate) fn at_port(
    stage: &mut Stage,
    program: &str,
    lines: &str,
    port: u16,
) -> Result<SocketAddr, String> {
    stage
        .at_server(&format!("command -v {program}"))
        .map_err(|_| format!("`{program}` is not installed"))?;
    let folder = stage.path("");
    stage.beside_load(&format!("cd {} && exec {lines}", folder.display()));
    let addr = SocketAddr::from(([127, 0, 0, 1], port));
    until("a listener", || TcpStream::connect(addr).is_ok());
    Ok(addr)
}

fn start(stage: &mut Stage, program: &str, script: &str, args: &[&str]) -> SocketAddr {
    let script = tests().join("diseases/servers").join(script);
    let mut command = Command::new(program);
    // A cache of bytecode would be a file in the repository.
    command.arg(script).args(args).env("PYTHONDONTWRITEBYTECODE", "1");
    let line = stage.start_server(command);
    let port: u16 = line.trim().parse().unwrap_or_else(|_| panic!("a port: {line:?}"));
    SocketAddr::from(([127, 0, 0, 1], port))
}

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}
