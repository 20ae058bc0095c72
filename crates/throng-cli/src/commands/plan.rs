//! `throng plan`: sizes a fleet from the measured costs of connections and messages, or counts the
//! agents that a scenario takes.

mod agents;
mod limits;

use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::{Arg, Args};
use serde_json::json;
use throng_base::{input_file, units};
use throng_doctor::plan::{
    CostSource, Costs, FleetMachine, FleetSpec, NodeConnections, mesh, plan,
};
use throng_doctor::preflight;
use throng_measure::runfile;
use throng_run::ceiling::{self, CeilingOptions, Traffic};

use crate::interrupt::Interrupt;
use crate::{Exit, Failure, output, quantity};
use agents::AgentsPlan;
use limits::ThisMachine;

/// Work out the size of a fleet: machines, cores, memory, addresses, ports, packets
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, mut_args(of_one_kind))]
pub(crate) struct Plan {
    /// Concurrent connections, such as 100M
    #[arg(long, value_name = "N", value_parser = quantity::count,
        required_unless_present_any = ["per_node", "agents"])]
    connections: Option<usize>,
    /// Messages per second in total, each sent by a client and answered
    #[arg(long, value_name = "N", value_parser = quantity::per_s)]
    messages_per_s: Option<f64>,
    /// Payload of each message, and of a broadcast
    #[arg(long, value_name = "BYTES", default_value = "64", value_parser = quantity::message_bytes)]
    message_bytes: u64,
    /// Time between broadcasts to all connections
    #[arg(long, value_name = "TIME", value_parser = quantity::duration)]
    broadcast_every: Option<Duration>,
    /// Connects per second in total, while connections arrive
    #[arg(long, value_name = "N", value_parser = quantity::per_s)]
    connects_per_s: Option<f64>,
    /// Connections over TLS 1.3, each with a full handshake and an ECDSA certificate
    #[arg(long)]
    tls: bool,
    /// Memory of a machine of the fleet [default: this machine's]
    #[arg(long, value_name = "BYTES", value_parser = quantity::memory)]
    machine_memory: Option<u64>,
    /// CPUs of a machine of the fleet [default: this machine's]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    machine_cores: Option<usize>,
    /// Network bandwidth of a machine, such as 25Gbit [default: 10Gbit]
    #[arg(long, value_name = "BITS", value_parser = quantity::bit_rate)]
    nic: Option<f64>,
    /// Addresses that clients connect to, for instance of a load balancer [default: one per server]
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    target_addresses: Option<usize>,
    /// Use the costs of this run file
    #[arg(long, value_name = "RUN.jsonl")]
    from: Option<PathBuf>,
    /// Measure the costs now, over TCP, in about three seconds
    #[arg(long, conflicts_with = "from")]
    measure: bool,
    /// Connections of each node of a mesh, for each node that the mesh has
    #[arg(long, value_name = "N", value_parser = at_least_zero, conflicts_with = "connections")]
    per_node: Option<f64>,
    /// Connections of each node of a mesh in addition, whatever the number of nodes
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    plus: f64,
    /// Number of nodes in the mesh
    #[arg(long, value_name = "N", value_parser = quantity::count)]
    nodes: Option<usize>,
    /// Number of nodes that share a machine, or `all`
    #[arg(long, value_name = "N", default_value = "1", value_parser = nodes_per_machine)]
    nodes_per_machine: NodesPerMachine,
    #[command(flatten)]
    agents: AgentsPlan,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The number of nodes that share a machine.
#[derive(Clone, Copy, Debug)]
enum NodesPerMachine {
    All,
    Some(u64),
}

const EXAMPLES: &str = "\
Examples:
  throng plan --connections 100M --machine-memory 64GiB --machine-cores 32 --nic 25Gbit
  throng plan --connections 2M --messages-per-s 500k --broadcast-every 10s --measure
  throng plan --connections 2M --connects-per-s 20k --tls --measure
  throng plan --connections 10M --from run.jsonl --target-addresses 2
  throng plan --per-node 3 --plus 15
  throng plan --per-node 3 --plus 15 --nodes 1000 --nodes-per-machine 4
  throng plan scenario.yaml --agents --users 1M
  throng plan scenario.yaml --agents label=eu --bus nats://10.0.0.1:4222";

/// Refuses a flag of another kind of plan: of connections, of a mesh, of a scenario. The bus may
/// stand in the environment, so `Plan::run` looks at it.
fn of_one_kind(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "connections" | "per_node" => arg.conflicts_with("agents"),
        "plus" | "nodes" | "nodes_per_machine" => {
            arg.requires("per_node").conflicts_with_all(["connections", "agents"])
        }
        "messages_per_s" | "message_bytes" | "broadcast_every" | "connects_per_s" | "tls"
        | "machine_memory" | "machine_cores" | "nic" | "target_addresses" | "from" | "measure" => {
            arg.requires("connections").conflicts_with_all(["per_node", "agents"])
        }
        "peak_users" | "peak_arrivals" | "set" | "bus_group" | "bus_credentials" | "bus_ca"
        | "bus_cert" | "bus_key" => arg.requires("agents"),
        _ => arg,
    }
}

impl Plan {
    pub(crate) fn run(&self) -> Result<Exit, Failure> {
        if self.agents.is_used() {
            self.agents.run(self.json)?;
            return Ok(Exit::Met);
        }
        self.agents.refuse_bus()?;
        let here = ThisMachine::read();
        match (self.per_node, self.connections) {
            (Some(per_node), _) => self.mesh(per_node, &here),
            (None, Some(connections)) => self.fleet(connections as u64, &here)?,
            (None, None) => unreachable!("clap requires one of them"),
        }
        Ok(Exit::Met)
    }

    fn mesh(&self, per_node: f64, here: &ThisMachine) {
        let shared = match self.nodes_per_machine {
            NodesPerMachine::All => None,
            NodesPerMachine::Some(nodes) => Some(nodes),
        };
        let nodes = self.nodes.map(|nodes| nodes as u64);
        let connections = NodeConnections { per_node, plus: self.plus };
        let mesh = mesh(connections, nodes, shared, &here.limits());
        let value = json!({ "mesh": mesh, "verdict": mesh.verdict() });
        output::say_either(self.json, &value, mesh.to_string());
    }

    fn fleet(&self, connections: u64, here: &ThisMachine) -> Result<(), Failure> {
        let spec = self.spec(connections, here)?;
        let costs = self.costs(here)?;
        let plan = plan(&spec, &costs);
        let text = format!("{}\n\n{plan}\n{costs}\n{}", spec.sentence(), self.sources());
        output::say_either(self.json, &json!({ "plan": plan, "costs": costs }), text);
        Ok(())
    }

    fn spec(&self, connections: u64, here: &ThisMachine) -> Result<FleetSpec, Failure> {
        let memory = self.machine_memory.or(here.memory_bytes()).ok_or_else(|| {
            Failure::new("this machine's memory cannot be read; pass it with --machine-memory")
        })?;
        Ok(FleetSpec {
            connections,
            messages_per_s: self.messages_per_s.unwrap_or(0.0),
            message_bytes: self.message_bytes,
            broadcast_every_s: self.broadcast_every.map(|every| every.as_secs_f64()),
            connects_per_s: self.connects_per_s,
            machine: FleetMachine {
                memory_bytes: memory as f64,
                cores: self.machine_cores.map_or(here.machine.cpus, |cores| cores as u64) as f64,
                nic_bits_per_s: self.nic.unwrap_or(NIC_BITS_PER_S),
                nic_is_known: self.nic.is_some(),
            },
            target_addresses: self.target_addresses.map(|n| n as u64),
            ports: here.ports().unwrap_or(PORTS),
        })
    }

    /// Returns the documented costs, replaced by better known ones.
    fn costs(&self, here: &ThisMachine) -> Result<Costs, Failure> {
        let documented = Costs::documented();
        let mut costs = if self.tls { documented.over_tls() } else { documented };
        let machine = &here.machine;
        let kernel = machine
            .slabs
            .known()
            .and_then(|slabs| preflight::kernel_bytes(slabs, machine.page_bytes));
        costs.kernel_bytes.replace(kernel.map(|bytes| bytes as f64), CostSource::Kernel);
        if let Some(path) = &self.from {
            costs = costs.with_run(&read(path)?);
        }
        if self.measure {
            self.measure(&mut costs)?;
        }
        Ok(costs)
    }

    fn measure(&self, costs: &mut Costs) -> Result<(), Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        Interrupt::install(false)?.also_set(&stop)?;
        let talk = if self.messages_per_s.is_some() { Traffic::Answered } else { Traffic::Silent };
        let found = ceiling::measure(&CeilingOptions {
            traffic: talk,
            resume: self.tls.then_some(0.0),
            stop,
            ..CeilingOptions::default()
        })
        .map_err(|error| Failure::new(format!("the costs could not be measured: {error}")))?;
        let (server, generator) = (&mut costs.server, &mut costs.generator);
        let ceiling::PeerCosts { load_connect_us, load_message_us, .. } = found.costs;
        generator.bytes.replace(found.ceiling.bytes_per_user, CostSource::Measured);
        generator.connect_us.replace(load_connect_us, CostSource::Measured);
        generator.message_us.replace(load_message_us, CostSource::Measured);
        server.bytes.replace(found.costs.server_bytes, CostSource::Measured);
        server.connect_us.replace(found.costs.server_connect_us, CostSource::Measured);
        server.message_us.replace(found.costs.server_message_us, CostSource::Measured);
        costs.cpus = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Ok(())
    }

    fn sources(&self) -> String {
        let tls = if self.tls { ", with full TLS handshakes added" } else { "" };
        let documented =
            format!("documented: docs/numbers.md, WebSocket users in a channel, on 2 CPUs{tls}");
        let over = if self.tls { "TLS" } else { "TCP" };
        match (&self.from, self.measure) {
            (Some(path), _) => format!("the run: {}; {documented}", path.display()),
            (None, true) => {
                format!(
                    "measured: at full load over {over}, server and generator on this machine; \
                     {documented}"
                )
            }
            (None, false) => format!("{documented}; --measure and --from RUN.jsonl use your own"),
        }
    }
}

fn read(path: &Path) -> Result<runfile::RunFile, Failure> {
    let fail = |why: String| Failure::new(format!("cannot read {}: {why}", path.display()));
    let file = input_file::open(path).map_err(|error| fail(error.to_string()))?;
    runfile::read(&mut BufReader::new(file)).map_err(|error| fail(error.to_string()))
}

fn nodes_per_machine(text: &str) -> Result<NodesPerMachine, String> {
    match text {
        "all" => Ok(NodesPerMachine::All),
        _ => match units::parse_count(text) {
            Ok(nodes) if nodes > 0 => Ok(NodesPerMachine::Some(nodes)),
            _ => Err("expected a number from 1, or `all`".to_owned()),
        },
    }
}

fn at_least_zero(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (0.0..f64::INFINITY).contains(&number) => Ok(number),
        _ => Err("expected a number from 0, such as 3 or 2.5".to_owned()),
    }
}

/// The assumed network bandwidth of a machine without `--nic`.
const NIC_BITS_PER_S: f64 = 10e9;
/// The number of ports in Linux's default range of local ports.
const PORTS: u64 = 28_232;
