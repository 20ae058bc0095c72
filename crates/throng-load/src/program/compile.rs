//! Compiling a scenario: its classes one after another.

use super::compiler::Compiler;
use super::table_index::TableIndexes;
use super::{Dialogue, MessageRule, Op, OpFacts, OpRole, Program, ProgramClass, StepOrigin};
use crate::scenario::{self, Class, Credentials, Scenario, ScenarioLoad, Target, compile_steps};
use crate::schedule::UserNumbers;

impl Program {
    /// Compiles the classes of a scenario. The reader has checked that loops are not nested deeper
    /// than [`LOOPS_MAX`](super::LOOPS_MAX).
    ///
    /// # Panics
    /// When there is no class, or all weights are 0.
    pub fn compile(scenario: &Scenario) -> Self {
        let mut program = Self {
            ops: Vec::new(),
            facts: Vec::new(),
            origins: Vec::new(),
            templates: Vec::new(),
            bytes_patterns: Vec::new(),
            loops: Vec::new(),
            transactions: Vec::new(),
            step_names: Vec::new(),
            think_times: Vec::new(),
            conditions: Vec::new(),
            choices: Vec::new(),
            cues: scenario.cues.clone(),
            limits: scenario.limits.clone(),
            held_bytes_max: scenario.held_bytes_max,
            protocol: scenario.protocol,
            handshakes: Vec::new(),
            patterns: Vec::new(),
            rules: Vec::new(),
            topics: Vec::new(),
            protocol_ops: Vec::new(),
            probe: scenario.probe.clone(),
            tables: scenario.tables.clone(),
            sent_parts: scenario.sent_parts.clone(),
            classes: Vec::new(),
            weight_total: 0,
            numbers: matches!(scenario.load, ScenarioLoad::ByClass(_))
                .then(|| UserNumbers::of(&scenario.load)),
            stride: 0,
            dialogue: Dialogue::default(),
            secrets: secrets_of(scenario),
            unverified_at: match scenario.target.is_secure {
                true => scenario.tls.unverified_at.clone(),
                false => None,
            },
        };
        let mut tables = TableIndexes::default();
        for class in &scenario.classes {
            program.compile_class(class, &mut tables, &scenario.target);
            if scenario.thresholds.iter().any(|of| of.class() == Some(&class.name)) {
                let judged = program.judged_classes().count();
                program.classes.last_mut().expect("it was just added").judged = Some(judged);
            }
        }
        assert!(program.weight_total > 0, "a scenario has users");
        program.stride = stride(program.weight_total);
        program.dialogue = Dialogue::of(&program);
        program
    }

    fn compile_class(&mut self, class: &Class, tables: &mut TableIndexes, target: &Target) {
        self.weight_total += u64::from(class.weight);
        let mut compiler = Compiler::new(self, tables, target);
        let entry = compiler.next_pc();
        compile_steps(&class.steps, &mut compiler);
        compiler.push(Op::End, OpFacts::of_role(OpRole::Ends));
        let sum = compiler.sum;
        let rules = compile_rules(&class.on_message, &mut compiler);
        let first_rule = self.rules.len();
        self.rules.extend(rules);
        self.classes.push(ProgramClass {
            name: class.name.clone(),
            entry,
            on_error: class.on_error,
            judged: None,
            rules: first_rule..self.rules.len(),
            weight_end: self.weight_total,
            sum,
        });
    }
}

/// Returns the texts that no report and no trace shows.
fn secrets_of(scenario: &Scenario) -> Vec<String> {
    let of_target = scenario.target.credentials.iter().flat_map(Credentials::secrets);
    scenario.secrets.iter().cloned().chain(of_target).collect()
}

/// Appends the ops of the rules of a class, behind those of its steps. No op leads to them.
fn compile_rules(rules: &[scenario::MessageRule], compiler: &mut Compiler<'_>) -> Vec<MessageRule> {
    compiler.is_in_rule = true;
    let compile = |(index, rule): (usize, &scenario::MessageRule)| {
        let entry = compiler.next_pc();
        compiler.origin = StepOrigin::rule(index + 1, rule.line);
        compile_steps(&rule.steps, compiler);
        compiler.push(Op::End, OpFacts::of_role(OpRole::Neutral));
        MessageRule { pattern: rule.pattern.clone(), entry }
    };
    rules.iter().enumerate().map(compile).collect()
}

/// Returns a number coprime to `total` near its golden section, so that its multiples spread
/// evenly.
fn stride(total: u64) -> u64 {
    let golden = (total as f64 * 0.618_033_988_75) as u64;
    (golden.max(1)..).find(|&stride| gcd(stride, total) == 1).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}
