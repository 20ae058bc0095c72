//! What the doctor's preflight of a run is shown as.

use throng_base::units::show_count;
use throng_doctor::preflight::{CheckState, Preflight};

use crate::Failure;

/// Refuses a run that cannot work, unless `force` is set.
pub(super) fn refuse(found: &Preflight, force: bool) -> Result<(), Failure> {
    if found.fits() || force {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}\nthe run was not started; --force runs it anyway, `throng doctor --for {}` shows every \
         limit",
        found.refusal(),
        show_count(found.connections)
    )))
}

/// Returns the warnings of a run: limits at which connections may fail.
pub(super) fn warnings(found: &Preflight) -> impl Iterator<Item = String> {
    found.in_state(CheckState::Tight).filter(|check| check.stops).map(|check| {
        let remedy = check.remedy.as_ref().map_or("", |remedy| &remedy.command);
        format!("{}: {}; do: {remedy}", check.limit, check.because)
    })
}
