//! `connect`: opens the connection.

use super::prelude::*;
use upgrade::UpgradeOptions;

pub(crate) mod upgrade;

pub(super) const KIND: StepKind = StepKind {
    name: "connect",
    example: "connect: {timeout: 5s}",
    protocols: Protocol::ALL,
    form: StepForm::OptionalValue(read),
};

#[derive(Debug)]
pub(super) struct Connect {
    pub(super) timeout: Duration,
    /// Options of the WebSocket upgrade; `None` on plain TCP.
    pub(super) upgrade: Option<UpgradeOptions>,
}

impl Action for Connect {
    fn check(&self, flow: &mut Flow<'_, '_>) {
        if flow.is_connected() {
            flow.error("already connected", "add a `close` before it");
        }
        flow.connect();
    }

    fn compile(&self, compiler: &mut Compiler<'_>) {
        let handshake = self.upgrade.as_ref().map_or(0, |upgrade| compiler.handshake(upgrade));
        let op = Op::Connect { timeout_ns: nanos(self.timeout), handshake };
        let latency = Some(LatencyKind::Connect);
        compiler.push(op, OpFacts { latency, ..OpFacts::of_role(OpRole::Separates) });
    }
}

fn read(reader: &mut Reader<'_>, value: Option<&Node>) -> Option<Box<dyn Action>> {
    let over_websocket = reader.protocol != Protocol::Tcp;
    let Some(node) = value else {
        let upgrade = over_websocket.then(UpgradeOptions::default);
        return Some(Box::new(Connect { timeout: TIMEOUT_DEFAULT, upgrade }));
    };
    let fields = reader.fields(node, "`connect`", upgrade::keys(reader.protocol))?;
    let timeout = read_timeout(reader, fields.get("timeout"), TIMEOUT_DEFAULT);
    let upgrade = if over_websocket { Some(upgrade::read(reader, &fields)?) } else { None };
    Some(Box::new(Connect { timeout: timeout?, upgrade }))
}

/// Default time-out of a connect.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(5);
