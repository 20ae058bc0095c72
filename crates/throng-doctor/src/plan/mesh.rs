//! Nodes that connect to each other, and how many of them fit below the first limit.

use std::fmt;

use serde::Serialize;
use throng_base::units::show_count;

/// The connections of each node of a mesh, which grow with the number of nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NodeConnections {
    /// Connections for each node of the mesh.
    pub per_node: f64,
    /// Connections whatever the size of the mesh; below 0 for a node that does not connect to
    /// itself.
    pub plus: f64,
}

impl NodeConnections {
    /// Returns the connections of a node in a mesh of `nodes` nodes.
    fn at(self, nodes: u64) -> f64 {
        self.per_node * nodes as f64 + self.plus
    }
}

impl fmt::Display for NodeConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { per_node, plus } = *self;
        match plus {
            _ if per_node == 0.0 => write!(f, "{plus}"),
            0.0 => write!(f, "{per_node}x"),
            ..0.0 => write!(f, "{per_node}x - {}", -plus),
            _ => write!(f, "{per_node}x + {plus}"),
        }
    }
}

/// A limit of the machine that nodes run on.
#[derive(Clone, Debug, PartialEq)]
pub struct MeshLimit {
    /// Name of the limit.
    pub name: &'static str,
    /// Number of connections that it allows.
    pub allows: u64,
    /// Connections that it counts: of a node or of a machine.
    pub scope: Scope,
    /// Note about it, or how to raise it; `{n}` stands for the value that is needed.
    pub note: String,
}

/// The connections that a limit counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Connections of one node.
    Node,
    /// Connections of all nodes on a machine.
    Machine,
}

/// A limit, and the nodes that it allows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MeshRow {
    /// Name of the limit.
    pub limit: &'static str,
    /// Number of connections that it allows.
    pub allows: u64,
    /// Connections that it counts: of a node or of a machine.
    pub of_each: Scope,
    /// Most nodes that it allows, or `None` if it allows any number.
    pub nodes_most: Option<u64>,
    /// Calculation, such as `3x + 15 ≤ 1024`.
    pub formula: String,
    /// Note about it, or how to raise it.
    pub note: String,
    /// Value that the planned nodes need, if the limit is below it.
    pub needs: Option<u64>,
}

/// The limits of a mesh, in the order in which they are reached.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mesh {
    /// Formula for the connections of a node.
    pub connections_per_node: String,
    /// Nodes on a machine, or `None` if all nodes are on one machine.
    pub nodes_per_machine: Option<u64>,
    /// Planned number of nodes.
    pub nodes: Option<u64>,
    /// All limits, the first to be reached first.
    pub rows: Vec<MeshRow>,
}

/// Computes how many nodes each of `limits` allows. `nodes_per_machine` nodes share a machine; with
/// `None`, all nodes are on one machine.
pub fn mesh(
    connections: NodeConnections,
    nodes: Option<u64>,
    nodes_per_machine: Option<u64>,
    limits: &[MeshLimit],
) -> Mesh {
    let row = |limit: &MeshLimit| {
        let uses = |x: u64| match limit.scope {
            Scope::Node => connections.at(x),
            Scope::Machine => nodes_per_machine.map_or(x, |n| n.min(x)) as f64 * connections.at(x),
        };
        let left = match (limit.scope, nodes_per_machine) {
            (Scope::Node, _) | (_, Some(1)) => connections.to_string(),
            (Scope::Machine, Some(n)) => format!("{n} × ({connections})"),
            (Scope::Machine, None) => format!("x × ({connections})"),
        };
        let needs = nodes.map(uses).filter(|n| *n > limit.allows as f64).map(|n| n.ceil() as u64);
        let needed = needs.map_or("N".to_owned(), |needs| needs.to_string());
        MeshRow {
            limit: limit.name,
            allows: limit.allows,
            of_each: limit.scope,
            nodes_most: most(|x| uses(x) <= limit.allows as f64),
            formula: format!("{left} ≤ {}", limit.allows),
            note: limit.note.replace("{n}", &needed),
            needs,
        }
    };
    let mut rows: Vec<_> = limits.iter().map(row).collect();
    rows.sort_by_key(|row| row.nodes_most.unwrap_or(u64::MAX));
    Mesh { connections_per_node: connections.to_string(), nodes_per_machine, nodes, rows }
}

impl Mesh {
    /// Returns a sentence with the first limit and, if nodes are planned, whether they fit.
    pub fn verdict(&self) -> String {
        let Some(first) = self.rows.first() else { return "no limit is known".to_owned() };
        let Some(most) = first.nodes_most else {
            return "this mesh reaches no limit of the machine".to_owned();
        };
        let limit = format!("{} ({})", first.limit, show_count(first.allows));
        match (self.nodes, self.rows.iter().filter(|row| row.needs.is_some()).count()) {
            (None, _) => format!("the first limit is {limit}: it is enough for {most} nodes"),
            (Some(nodes), 0) => format!("{nodes} nodes fit: the first limit is {limit}, at {most}"),
            (Some(nodes), short) => {
                let others = match short {
                    1 => String::new(),
                    2 => format!(", and 1 more limit is below {nodes}"),
                    _ => format!(", and {} more limits are below {nodes}", short - 1),
                };
                format!("{nodes} nodes do not fit: {limit} is enough for {most}{others}")
            }
        }
    }
}

/// Returns the largest number for which `fits` is true, or `None` if it is true up to
/// [`NODES_MOST`]. `fits` must not become true again once it is false.
fn most(fits: impl Fn(u64) -> bool) -> Option<u64> {
    if fits(NODES_MOST) {
        return None;
    }
    let (mut yes, mut no) = (0, NODES_MOST);
    while no - yes > 1 {
        let middle = yes + (no - yes) / 2;
        if fits(middle) {
            yes = middle;
        } else {
            no = middle;
        }
    }
    Some(yes)
}

/// The number of nodes from which a limit counts as none.
const NODES_MOST: u64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(name: &'static str, allows: u64, scope: Scope) -> MeshLimit {
        MeshLimit { name, allows, scope, note: "raise it to {n}".to_owned() }
    }

    fn scalaris() -> NodeConnections {
        NodeConnections { per_node: 3.0, plus: 15.0 }
    }

    #[track_caller]
    fn check(allows: u64, nodes_most: u64) {
        let mesh = mesh(scalaris(), None, Some(1), &[limit("fds", allows, Scope::Node)]);
        assert_eq!(mesh.rows[0].nodes_most, Some(nodes_most));
    }

    #[test]
    fn the_articles_own_numbers_come_out() {
        check(1_024, 336);
        check(4_096, 1_360);
        check(28_233, 9_406);
    }

    #[test]
    fn the_first_limit_comes_first_and_short_limits_are_counted() {
        let limits = [limit("ports", 28_232, Scope::Machine), limit("fds", 1_024, Scope::Node)];
        let found = mesh(scalaris(), None, Some(1), &limits);
        assert_eq!(found.verdict(), "the first limit is fds (1024): it is enough for 336 nodes");
        assert_eq!(found.rows[0].formula, "3x + 15 ≤ 1024");
        assert_eq!(found.rows[0].note, "raise it to N");
        let found = mesh(scalaris(), Some(336), Some(1), &limits);
        assert_eq!(found.verdict(), "336 nodes fit: the first limit is fds (1024), at 336");
        assert!(found.rows.iter().all(|row| row.needs.is_none()));
        let found = mesh(scalaris(), Some(10_000), Some(1), &limits);
        assert_eq!(found.rows[0].needs, Some(30_015));
        assert_eq!(found.rows[0].note, "raise it to 30015");
        let verdict = "10000 nodes do not fit: fds (1024) is enough for 336, and 1 more limit is \
                       below 10000";
        assert_eq!(found.verdict(), verdict);
    }

    #[test]
    fn nodes_on_one_machine_share_its_limits_and_not_those_of_a_node() {
        let limits = [limit("watches", 1_800, Scope::Machine), limit("fds", 1_800, Scope::Node)];
        let four = mesh(scalaris(), None, Some(4), &limits);
        assert_eq!((four.rows[0].limit, four.rows[0].nodes_most), ("watches", Some(145)));
        assert_eq!((four.rows[1].limit, four.rows[1].nodes_most), ("fds", Some(595)));
        let all = mesh(scalaris(), None, None, &limits[..1]);
        assert_eq!(all.rows[0].nodes_most, Some(22), "22 × 81 = 1782, 23 × 84 = 1932");
        assert_eq!(all.rows[0].formula, "x × (3x + 15) ≤ 1800");
    }

    #[test]
    fn a_constant_number_of_connections_reaches_no_limit() {
        let constant = NodeConnections { per_node: 0.0, plus: 40.0 };
        let found = mesh(constant, None, Some(1), &[limit("fds", 1_024, Scope::Node)]);
        assert_eq!(found.rows[0].nodes_most, None);
        assert_eq!(found.verdict(), "this mesh reaches no limit of the machine");
    }

    #[test]
    fn connections_are_shown_as_a_formula() {
        for (per_node, plus, shown) in
            [(3.0, 15.0, "3x + 15"), (0.0, 40.0, "40"), (2.5, 0.0, "2.5x"), (1.0, -1.0, "1x - 1")]
        {
            assert_eq!(NodeConnections { per_node, plus }.to_string(), shown);
        }
    }
}
