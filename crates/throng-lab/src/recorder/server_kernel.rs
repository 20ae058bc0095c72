//! The server's kernel counters, where it is in another network namespace of this machine.

use std::sync::mpsc::{self, Receiver, Sender};

use throng_base::time::Instant;
use throng_doctor::{KernelSample, Reason, Sampler, SamplerOptions, Unknown};
use throng_driver::{Clock, netns};

use super::kernel::watched;

/// A sampler on a thread of its own, which has moved into the server's namespace; nobody else moves.
#[derive(Debug)]
pub(super) struct ServerKernel {
    questions: Sender<Question>,
    answers: Receiver<KernelSample>,
}

/// What the thread is asked for.
#[derive(Debug)]
enum Question {
    Sample,
    Step,
    Between(Instant, Instant),
}

impl ServerKernel {
    /// Looks at the namespace of the process `pid`, at the listeners on `ports` there, and at the process.
    pub(super) fn new(pid: u32, ports: Vec<u16>) -> Self {
        let (questions, asked) = mpsc::channel::<Question>();
        let (answer, answers) = mpsc::channel();
        let run = move || {
            let processes = vec![watched("server", pid)];
            let refused = netns::enter(pid).err().map(|errno| {
                Unknown::new(
                    format!("proc/{pid}/ns/net"),
                    Reason::from(std::io::Error::from(errno)),
                )
            });
            let mut sampler =
                Sampler::new(SamplerOptions { ports, processes, ..SamplerOptions::default() });
            while let Ok(question) = asked.recv() {
                match question {
                    Question::Sample => {}
                    Question::Step => {
                        sampler.step(Clock.now());
                        continue;
                    }
                    Question::Between(from, to) => {
                        sampler.request_gap_cpu(from, to);
                        continue;
                    }
                }
                let mut sample = sampler.sample(Clock.now());
                if let Some(why) = &refused {
                    // The thread has stayed where the generator is, whose counters are not the server's. What is
                    // of the process and of the machine is true all the same.
                    sample.counters.retain(|name, _| is_of_any_namespace(name));
                    sample.unknown.push(why.clone());
                }
                if answer.send(sample).is_err() {
                    return;
                }
            }
        };
        // It ends with the channel.
        let thread = std::thread::Builder::new().name("server-kernel".into()).spawn(run);
        thread.expect("a thread for the server's kernel");
        Self { questions, answers }
    }

    /// Begins to look; [`ServerKernel::answer`] has to follow.
    pub(super) fn ask(&mut self) {
        let _ = self.questions.send(Question::Sample);
    }

    /// Asks what the process used between two moments; the next look says it.
    pub(super) fn ask_between(&self, from: Instant, to: Instant) {
        let _ = self.questions.send(Question::Between(from, to));
    }

    /// Follows the process between two looks.
    pub(super) fn step(&self) {
        let _ = self.questions.send(Question::Step);
    }

    /// What was seen. It takes as long as looking does, some hundred microseconds.
    pub(super) fn answer(&mut self) -> KernelSample {
        self.answers.recv().unwrap_or_default()
    }
}

fn is_of_any_namespace(name: &str) -> bool {
    ["process.", "memory.", "files.", "pressure.", "cgroup."]
        .iter()
        .any(|part| name.starts_with(part))
}
