//! `throng doctor --for N --sysctl`: prints the necessary changes as a file of sysctl.d.

use throng_doctor::preflight::{Check, CheckState, Preflight, Remedy};

/// Returns the file: only the necessary changes, each below its reason.
pub(super) fn file(answer: &Preflight) -> String {
    let mut text = format!("# {}.\n", answer.verdict());
    let sysctls = answer.sysctls();
    if sysctls.is_empty() {
        text += "# No sysctl needs to change.\n";
    } else {
        text += "# Save this as /etc/sysctl.d/90-throng.conf, then: sysctl --system\n";
    }
    for sysctl in sysctls {
        for check in answer.checks.iter().filter(|check| of(check) == Some(sysctl.name.as_str())) {
            text += &format!("\n# {}: {}\n", check.state, check.because);
            let besides = check.remedy.as_ref().map_or("", Remedy::besides_sysctl);
            if !besides.is_empty() {
                text += &format!("# besides: {besides}\n");
            }
        }
        let was = if sysctl.old.is_empty() { "empty" } else { &sysctl.old };
        text += &format!("# was {was}\n{} = {}\n", sysctl.name, sysctl.value);
    }
    for check in answer.in_state(CheckState::Short).chain(answer.in_state(CheckState::Tight)) {
        if let (None, Some(remedy)) = (of(check), &check.remedy) {
            text += &format!(
                "\n# {} is {}, and no sysctl changes it: {}\n",
                check.limit, check.state, remedy.command
            );
        }
    }
    text
}

fn of(check: &Check) -> Option<&str> {
    Some(&check.remedy.as_ref()?.sysctl.as_ref()?.name)
}

#[cfg(test)]
mod tests {
    use throng_doctor::preflight::{MachineRole, Requirements, preflight};
    use throng_machine::{Fact, MachineLimits};

    use super::*;

    #[test]
    fn the_file_has_only_what_must_change_and_says_why() {
        let nowhere = throng_machine::ProcRoot::new("/nowhere");
        let machine = MachineLimits {
            cpus: 2,
            epoll_watches_max: Fact::Known(5_000),
            fds_hard: Fact::Known(Some(1_000)),
            ..MachineLimits::read(&nowhere, 1)
        };
        let text = file(&preflight(&Requirements::new(10_000, MachineRole::Server), &machine));
        let lines: Vec<_> =
            text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
        assert_eq!(lines, ["fs.epoll.max_user_watches = 11024"], "{text}");
        assert!(
            text.contains("# was 5000\n") && text.contains("no sysctl changes it: ulimit -n"),
            "{text}"
        );
        let small = MachineLimits {
            nr_open: Fact::Known(1_000),
            private_fds: Fact::Known(false),
            ..machine.clone()
        };
        let text = file(&preflight(&Requirements::new(2_000, MachineRole::Server), &small));
        assert!(
            text.contains("# besides: ulimit -n 2202 ") && text.contains("fs.nr_open = 2202\n"),
            "{text}"
        );
        let fits = file(&preflight(&Requirements::new(10, MachineRole::Server), &machine));
        assert!(fits.contains("No sysctl needs to change"), "{fits}");
    }
}
