//! Limits that agents on one machine share: together they have them once.

use std::collections::BTreeMap;
use std::fmt;

use throng_base::units::show_count;

use crate::message::Readiness;
use crate::shared_limit::SharedLimit;

/// A shared limit that allows less than its agents need together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedShortage {
    /// The agents.
    pub agents: Vec<String>,
    /// The limit.
    pub limit: String,
    /// Connections that they have at most by their plans.
    pub needs: u64,
    /// Connections that it allows.
    pub has: u64,
}

/// What an agent can hold beside those with which it shares limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedCapacity {
    /// Connections; `None` if the agent does not know how many it can hold by itself.
    pub connections: Option<u64>,
    /// The limit that allows no more.
    pub limit: Option<String>,
}

/// Returns the shared limits that are insufficient for the agents of a run together.
pub fn shortages(agents: &[(String, Readiness)]) -> Vec<SharedShortage> {
    let short = |group: &SharedGroup| {
        let needs = group.members.iter().map(|index| agents[*index].1.connections).sum();
        let names = group.members.iter().map(|index| agents[*index].0.clone());
        (group.members.len() > 1 && needs > group.connections).then(|| SharedShortage {
            agents: names.collect(),
            limit: group.limit.clone(),
            needs,
            has: group.connections,
        })
    };
    groups(agents).iter().filter_map(short).collect()
}

/// Returns the connections that the agents can hold together; `None` if one of them does not know
/// its own.
pub fn capacity(agents: &[(String, Readiness)]) -> Option<u64> {
    capacities(agents).iter().map(|it| it.connections).sum()
}

/// Returns the connections that each of the agents can hold while all of them do. Those that share
/// a limit have parts of it in proportion to what each can hold by itself.
pub fn capacities(agents: &[(String, Readiness)]) -> Vec<SharedCapacity> {
    let own = |(_, readiness): &(String, Readiness)| SharedCapacity {
        connections: readiness.capacity,
        limit: readiness.capacity_limit.clone(),
    };
    let mut capacities: Vec<_> = agents.iter().map(own).collect();
    for SharedGroup { limit, connections, members } in groups(agents) {
        let known = |index: &usize| capacities[*index].connections;
        let all: u64 = members.iter().filter_map(known).sum();
        if all <= connections {
            continue;
        }
        let part =
            |held: u64| (u128::from(held) * u128::from(connections) / u128::from(all)) as u64;
        // Differences of running sums: the parts add up to the limit.
        let mut before = 0;
        for index in members {
            let Some(own) = capacities[index].connections else { continue };
            let reduced = part(before + own) - part(before);
            before += own;
            capacities[index] =
                SharedCapacity { connections: Some(reduced), limit: Some(limit.clone()) };
        }
    }
    capacities
}

impl fmt::Display for SharedShortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { agents, limit, needs, has } = self;
        write!(
            f,
            "{} share a machine and its limit {limit}: together they need {} connections, and it \
             allows {}; use fewer users or agents on other machines, raise the limit there, or for \
             ports give each agent a --source address of its own",
            agents.join(", "),
            show_count(*needs),
            show_count(*has)
        )
    }
}

/// The agents that share a limit.
struct SharedGroup {
    limit: String,
    connections: u64,
    /// Their indices.
    members: Vec<usize>,
}

/// Returns the groups of agents that share a limit, the smallest first: a network namespace is a
/// part of a machine.
fn groups(agents: &[(String, Readiness)]) -> Vec<SharedGroup> {
    let mut groups: BTreeMap<(&str, &str), SharedGroup> = BTreeMap::new();
    for (index, (_, readiness)) in agents.iter().enumerate() {
        for SharedLimit { limit, place, connections } in &readiness.shared_limits {
            let group = groups.entry((place, limit)).or_insert_with(|| SharedGroup {
                limit: limit.to_string(),
                connections: 0,
                members: Vec::new(),
            });
            // Each has seen what was free a little earlier or later.
            group.connections = group.connections.max(*connections);
            group.members.push(index);
        }
    }
    let mut groups: Vec<_> = groups.into_values().collect();
    groups.sort_by_key(|group| group.members.len());
    groups
}

#[cfg(test)]
mod tests {
    use throng_bus::Text;

    use super::*;

    const PORTS: &str = "net.ipv4.ip_local_port_range";

    fn agent(
        name: &str,
        needs: u64,
        holds: u64,
        shared: &[(&str, &str, u64)],
    ) -> (String, Readiness) {
        let limit = |(limit, place, connections): &(&str, &str, u64)| SharedLimit {
            limit: Text::cut(limit),
            place: Text::cut(place),
            connections: *connections,
        };
        let readiness = Readiness {
            connections: needs,
            capacity: Some(holds),
            shared_limits: shared.iter().map(limit).collect(),
            ..Readiness::default()
        };
        (name.to_owned(), readiness)
    }

    #[test]
    fn agents_in_one_network_namespace_have_its_ports_once() {
        let in_one = |name| agent(name, 10_000, 28_232, &[(PORTS, "m1 net", 28_232)]);
        let apart = agent("d", 10_000, 28_232, &[(PORTS, "m2 net", 28_232)]);
        let two = [in_one("a"), in_one("b"), apart.clone()];
        assert_eq!((shortages(&two), capacity(&two)), (Vec::new(), Some(2 * 28_232)));
        let three = [in_one("a"), in_one("b"), in_one("c"), apart];
        let short = shortages(&three);
        let [shortage] = &short[..] else { panic!("{short:?}") };
        assert_eq!((shortage.needs, shortage.has), (30_000, 28_232));
        assert_eq!(shortage.agents, ["a", "b", "c"]);
        let text = shortage.to_string();
        assert!(text.contains("a, b, c share") && text.contains(PORTS), "{text}");
        assert_eq!(capacity(&three), Some(2 * 28_232));
    }

    #[test]
    fn network_namespaces_of_one_machine_have_its_memory_once() {
        let of = |name, network| {
            agent(name, 20_000, 28_000, &[(PORTS, network, 28_000), ("memory", "m", 50_000)])
        };
        let all = [of("a", "m 1"), of("b", "m 2"), of("c", "m 3")];
        assert_eq!(
            shortages(&all).iter().map(|it| it.limit.as_str()).collect::<Vec<_>>(),
            ["memory"]
        );
        assert_eq!(capacity(&all), Some(50_000));
        // What an agent of its own cannot do is told by its own check.
        assert_eq!(shortages(&[agent("a", 9, 5, &[("memory", "m", 5)])]), []);
    }

    /// Checks what each agent holds beside the others, and by which limit if not by its own.
    #[track_caller]
    fn check(agents: &[(String, Readiness)], expected: &[(u64, Option<&str>)]) {
        let capacities = capacities(agents);
        let held: Vec<_> =
            capacities.iter().map(|it| (it.connections.unwrap(), it.limit.as_deref())).collect();
        assert_eq!(held, expected);
        assert_eq!(capacity(agents), Some(expected.iter().map(|(held, _)| held).sum()));
    }

    #[test]
    fn a_shared_limit_is_divided_in_proportion_to_what_its_members_hold() {
        let memory = |name, holds| agent(name, 1, holds, &[("memory", "m", 30_000)]);
        check(
            &[memory("a", 40_000), agent("b", 1, 7, &[]), memory("c", 20_000)],
            &[(20_000, Some("memory")), (7, None), (10_000, Some("memory"))],
        );
        // They fit as they are.
        check(&[memory("a", 20_000), memory("c", 10_000)], &[(20_000, None), (10_000, None)]);
        // What cannot be divided is not lost.
        let odd = |name| agent(name, 1, 9, &[("memory", "m", 10)]);
        let each = Some("memory");
        check(&[odd("a"), odd("b"), odd("c")], &[(3, each), (3, each), (4, each)]);
    }

    #[test]
    fn parts_of_a_network_namespace_are_divided_again_with_the_machine() {
        let of = |name, network| agent(name, 1, 28, &[(PORTS, network, 28), ("memory", "m", 42)]);
        let memory = Some("memory");
        check(
            &[of("a", "m 1"), of("b", "m 1"), of("c", "m 2")],
            &[(10, memory), (11, memory), (21, memory)],
        );
    }

    #[test]
    fn what_is_not_known_is_none() {
        let memory = [("memory", "m", 8)];
        let mut unknown = agent("b", 1, 9, &memory);
        unknown.1.capacity = None;
        let all = [agent("a", 1, 9, &memory), unknown];
        assert_eq!(capacity(&all), None);
        let held: Vec<_> = capacities(&all).iter().map(|it| it.connections).collect();
        assert_eq!(held, [Some(8), None]);
    }
}
