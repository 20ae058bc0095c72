//! Sites and a recorder on virtual time, and the bus between them.

use std::collections::BTreeMap;
use std::time::Duration;

use throng_base::{Instant, Prng};
use throng_load::run::{LoadOptions, LoadPlan};
use throng_load::scenario::Scenario;
use throng_measure::{Operation, RunEventKind};

use super::recorder::{Line, PlannedRun};
use super::site::ReportSums;
use super::{Recorder, Site};
use crate::scenario_bundle::ScenarioBundle;
use crate::subjects::GroupSubjects;

/// A fleet and its bus.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) sites: BTreeMap<String, Site>,
    /// What sites have measured that are gone.
    pub(super) gone: BTreeMap<String, Site>,
    pub(super) recorder: Option<Recorder>,
    /// Id of the run that is made or taken over.
    pub(super) run: String,
    /// Another process that wants to coordinate, or did.
    pub(super) other: Option<Recorder>,
    pub(super) bus: SimBus,
    /// The run file.
    pub(super) file: Vec<Line>,
    pub(super) lines_lost: usize,
    pub(super) plan: PlannedRun,
}

/// What is left of a run when another one begins.
pub(super) struct EarlierRun {
    run: String,
    pub(super) file: Vec<Line>,
    measured: BTreeMap<String, Vec<ReportSums>>,
}

/// A bus that delays messages, and may lose, repeat and reorder them.
pub(super) struct SimBus {
    pub(super) is_away: bool,
    /// Processes that it cannot reach, although they do not know it.
    pub(super) cut: Vec<String>,
    /// Lost messages of a thousand.
    pub(super) lost: u64,
    /// Repeated messages of a thousand.
    pub(super) repeated: u64,
    /// The longest way of a message.
    pub(super) delay_most: Duration,
    prng: Prng,
    sent: u64,
    on_the_way: BTreeMap<(Instant, u64), Packet>,
}

struct Packet {
    from: String,
    subject: String,
    payload: Vec<u8>,
}

impl World {
    /// Creates three machines with one, two and three cores, whose clocks differ.
    pub(super) fn new(seed: u64) -> Self {
        let source =
            "target: tcp://127.0.0.1:1\nload: [{ramp: {to: 9, over: 20s}}]\nuser: [connect]\n";
        let scenario = Scenario::parse(source, "test.yaml").expect("a scenario");
        let load = LoadPlan::new(&scenario, &LoadOptions::default()).expect("a plan");
        let bundle = ScenarioBundle::pack(&scenario, source, "test.yaml", None).expect("no files");
        let names: Vec<String> = ["a", "b", "c"].map(String::from).to_vec();
        let ahead = [0, 3_600_000_000, -5_000_000];
        let sites = names.iter().zip(ahead).map(|(name, ahead_us)| {
            let site = Site::new(name, "1", ahead_us, seed ^ u64::from(name.as_bytes()[0]));
            (name.clone(), site)
        });
        Self {
            // Late enough for a clock that is behind.
            now: Instant::ZERO + Duration::from_secs(1_000),
            sites: sites.collect(),
            gone: BTreeMap::new(),
            recorder: Some(Recorder::new("r", "first")),
            run: "r".into(),
            other: None,
            bus: SimBus {
                is_away: false,
                cut: Vec::new(),
                lost: 0,
                repeated: 0,
                delay_most: Duration::from_millis(20),
                prng: Prng::new(seed),
                sent: 0,
                on_the_way: BTreeMap::new(),
            },
            file: Vec::new(),
            lines_lost: 0,
            plan: PlannedRun { load, bundle, names, cores: vec![1, 2, 3] },
        }
    }

    /// Returns a world whose run has recorded so many lines.
    pub(super) fn running(seed: u64, lines: usize) -> Self {
        let mut world = Self::new(seed);
        world.begin();
        world.until("lines", |world| world.file.len() >= lines);
        world
    }

    /// Finds the agents and begins the run.
    pub(super) fn begin(&mut self) {
        self.gather(Duration::from_millis(800));
        let now = self.now;
        let recorder = self.recorder.as_mut().expect("a coordinator");
        recorder.prepare(&self.plan, now);
        self.until("ready agents", |world| world.recorder.as_ref().unwrap().is_ready());
        let now = self.now;
        self.recorder.as_mut().unwrap().start(&self.plan, now);
    }

    /// Asks all agents who they are.
    pub(super) fn gather(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            for (who, recorder) in [("recorder", &self.recorder), ("other", &self.other)] {
                let Some(recorder) = recorder else { continue };
                let (bus, now) = (&mut self.bus, self.now);
                recorder
                    .state
                    .coordinator
                    .ask(now, &mut |subject, payload| bus.publish(who, subject, payload, now));
            }
            self.pass(Duration::from_millis(100));
        }
    }

    /// Ends the coordinator's process, as kill -9 does.
    pub(super) fn kill_recorder(&mut self) {
        self.recorder = None;
    }

    /// Lets another process take the run over. Returns false if no agent has anything of it.
    pub(super) fn resume(&mut self, coordinator: &str) -> bool {
        self.recorder = Some(Recorder::new(&self.run, coordinator));
        self.gather(Duration::from_secs(2));
        let now = self.now;
        let recorder = self.recorder.as_mut().expect("it was begun");
        if !recorder.resume(&self.plan, &self.file, now) {
            return false;
        }
        let until = self.now + Duration::from_secs(30);
        while self.now < until && !self.recorder.as_ref().unwrap().state.has_totals(self.now) {
            self.pass(TICK);
        }
        let now = self.now;
        self.recorder.as_mut().unwrap().go_on(now);
        true
    }

    /// Begins another run, with a coordinator of its own. Returns what is left of the one before.
    pub(super) fn begin_next(&mut self, run: &str, coordinator: &str) -> EarlierRun {
        let earlier = self.set_aside();
        self.run = run.to_owned();
        self.recorder = Some(Recorder::new(run, coordinator));
        self.begin();
        earlier
    }

    /// Returns what is left of the run, and forgets it.
    pub(super) fn set_aside(&mut self) -> EarlierRun {
        let measured = |site: &mut Site| std::mem::take(&mut site.measured);
        EarlierRun {
            run: self.run.clone(),
            file: std::mem::take(&mut self.file),
            measured: self
                .sites
                .iter_mut()
                .map(|(name, it)| (name.clone(), measured(it)))
                .collect(),
        }
    }

    /// Turns to a run from before, to take it over and to check it.
    pub(super) fn return_to(&mut self, earlier: EarlierRun) {
        let EarlierRun { run, file, measured } = earlier;
        (self.run, self.file) = (run, file);
        for (name, measured) in measured {
            self.sites.get_mut(&name).expect("its site").measured = measured;
        }
    }

    /// Ends the process of an agent.
    pub(super) fn kill_site(&mut self, name: &str) {
        if let Some(site) = self.sites.remove(name) {
            self.gone.insert(name.to_owned(), site);
        }
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            self.now += TICK;
            self.tick();
        }
    }

    /// Lets time pass until something is so; half an hour is too long.
    #[track_caller]
    pub(super) fn until(&mut self, what: &str, is_so: impl Fn(&Self) -> bool) {
        let until = self.now + Duration::from_secs(1_800);
        while !is_so(self) {
            assert!(self.now < until, "never: {what}; {:?}", self.events());
            self.pass(TICK);
        }
    }

    /// Lets the run go on to its end, and the agents become idle.
    #[track_caller]
    pub(super) fn finish(&mut self) {
        self.until("the end of the run", |world| {
            world.recorder.as_ref().is_some_and(|recorder| recorder.state.is_over(world.now))
        });
        // The last interval and the last words.
        let recorder = self.recorder.as_mut().expect("it records");
        let line = recorder.line(self.now);
        self.file.push(line);
        (0..2).for_each(|_| recorder.state.coordinator.keep());
        self.pass(Duration::from_secs(4));
    }

    /// Returns all events of the run file.
    pub(super) fn events(&self) -> Vec<&RunEventKind> {
        self.file.iter().flat_map(|line| &line.events).collect()
    }

    /// Returns the names of the agents that are lost, by the events.
    pub(super) fn lost(&self) -> Vec<&str> {
        let mut lost = Vec::new();
        for event in self.events() {
            match event {
                RunEventKind::AgentLost { agent, .. } => {
                    assert!(!lost.contains(&agent.as_str()), "{agent} is lost twice");
                    lost.push(agent.as_str());
                }
                RunEventKind::AgentBack { agent } => lost.retain(|name| name != agent),
                _ => {}
            }
        }
        lost
    }

    /// Asserts that the run file has exactly what the reports say that it has counted: each once.
    #[track_caller]
    pub(super) fn check_sums(&self) {
        let last = &self.file.last().expect("a line").load;
        let (mut connects, mut latencies) = (0, 0);
        for machine in &last.machines {
            let site = self.sites.get(&machine.name).or_else(|| self.gone.get(&machine.name));
            let counted = &site.expect("its site").measured[..machine.reports as usize];
            let own = counted.last().copied().unwrap_or_default();
            assert_eq!(machine.connects_ok, own.connects, "{machine:?}");
            connects += own.connects;
            latencies += counted.iter().map(|report| report.latencies).sum::<u64>();
        }
        assert_eq!(last.counters.connects_ok, connects, "connects");
        let recorded: u64 =
            self.file.iter().map(|line| line.load.times[Operation::Connect].count()).sum();
        assert_eq!(recorded, latencies, "latencies");
        let sums = self.file.iter().map(|line| line.load.counters.connects_ok);
        assert!(sums.is_sorted(), "totals never go back");
        self.check_troubles();
    }

    /// Asserts that no machine forgets what went wrong there.
    #[track_caller]
    fn check_troubles(&self) {
        for (before, after) in self.file.iter().zip(self.file.iter().skip(1)) {
            for (before, after) in before.load.machines.iter().zip(&after.load.machines) {
                assert_eq!(before.name, after.name);
                for (trouble, count) in &before.troubles {
                    let now = after.troubles.get(trouble);
                    assert!(now >= Some(count), "{}: {trouble}: {count}, {now:?}", after.name);
                }
            }
        }
    }

    /// Asserts that all of what these sites measured is recorded, and that they are free again.
    #[track_caller]
    pub(super) fn check_whole(&self, names: &[&str]) {
        self.check_sums();
        let last = &self.file.last().expect("a line").load;
        for name in names {
            let site = &self.sites[*name];
            let machine = last.machines.iter().find(|machine| machine.name == *name);
            let machine = machine.expect("it is in the file");
            assert_eq!(site.measured.len(), site.reports_planned, "{name} has ended");
            assert_eq!(machine.reports as usize, site.measured.len(), "{name}: {machine:?}");
            assert!(!machine.lost, "{machine:?}");
            assert_eq!(machine.users_active, 0, "{machine:?}");
            assert_eq!(site.agent.run(), None, "{name} is free");
        }
    }

    fn tick(&mut self) {
        self.deliver();
        let (now, bus) = (self.now, &mut self.bus);
        for (name, site) in self.sites.iter_mut().filter(|(_, site)| !site.is_paused) {
            site.turn(now, &mut |subject, payload| bus.publish(name, subject, payload, now));
        }
        if let Some(other) = self.other.as_mut().filter(|other| !other.is_paused) {
            other.turn(now, &mut |subject, payload| bus.publish("other", subject, payload, now));
        }
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.is_paused) else { return };
        recorder.is_bus_away = bus.is_away;
        let mut publish = |subject: &str, payload| bus.publish("recorder", subject, payload, now);
        if recorder.turn(now, &mut publish) {
            let line = recorder.line(now);
            if recorder.is_disk_full {
                self.lines_lost += 1;
            } else {
                self.file.push(line);
            }
        }
    }

    fn deliver(&mut self) {
        let subjects = GroupSubjects::new("test").expect("a name");
        while let Some(entry) = self.bus.on_the_way.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let Packet { from, subject, payload } = entry.remove();
            let (bus, now) = (&mut self.bus, self.now);
            let is_cut = |bus: &SimBus, name: &str| bus.cut.iter().any(|cut| cut == name);
            if is_cut(bus, &from) {
                continue;
            }
            for (name, site) in &mut self.sites {
                // What comes to a stopped process waits in its socket; here it is lost.
                let hears = subject == subjects.questions()
                    || subject == subjects.to_agent(&site.agent.facts().name);
                if hears && !site.is_paused && !is_cut(bus, name) {
                    site.take(&subject, &payload, now, &mut |subject, payload| {
                        bus.publish(name, subject, payload, now)
                    });
                }
            }
            for (name, recorder) in [("recorder", &mut self.recorder), ("other", &mut self.other)] {
                let Some(recorder) = recorder.as_mut().filter(|it| !it.is_paused) else { continue };
                let id = recorder.state.coordinator.key().coordinator.clone();
                let mine = subjects.to_coordinator(&id, "");
                let hears = subjects.is_hello(&subject) || subject.starts_with(&mine);
                if hears && !is_cut(bus, name) {
                    recorder.state.take(&subject, &payload, now);
                }
            }
        }
    }
}

impl SimBus {
    pub(super) fn publish(
        &mut self,
        from: &str,
        subject: &str,
        payload: Vec<u8>,
        now: Instant,
    ) -> bool {
        if self.is_away {
            return false;
        }
        let copies = match self.prng.below(1_000) {
            chance if chance < self.lost => 0,
            chance if chance < self.lost + self.repeated => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay = Duration::from_micros(self.prng.below(self.delay_most.as_micros() as u64));
            self.sent += 1;
            let (from, subject) = (from.to_owned(), subject.to_owned());
            let packet = Packet { from, subject, payload: payload.clone() };
            self.on_the_way.insert((now + delay, self.sent), packet);
        }
        true
    }
}

/// Time between two looks at what is due.
const TICK: Duration = Duration::from_millis(10);
