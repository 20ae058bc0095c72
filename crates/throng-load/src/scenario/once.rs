//! `setup` and `teardown`: steps that one user takes once, before the load begins and after it.
//!
//! What the steps of `setup` store, all users read as `${setup.name}`. The reader makes a table of
//! one row from it, whose cells are empty until `setup` has run.

use super::data::DataTable;
use super::node::Node;
use super::reader::Reader;
use super::step::{Step, StepKind};
use super::step_list;
use super::variable::STORED_BYTES_MAX;
use super::variable_names::SETUP;

/// The steps that run once before the load, and where they leave their values.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Steps of its only user.
    pub steps: Vec<Step>,
    /// Places of its values among those of a user, in the order of the table's columns.
    slots: Vec<u16>,
}

/// Reads `setup`, and makes its values known to all steps that follow.
pub(super) fn read_setup(
    reader: &mut Reader<'_>,
    node: &Node,
    kinds: &'static [StepKind],
) -> Option<Setup> {
    reader.names.begin_setup();
    let steps = read_steps(reader, node, SETUP, kinds);
    let (columns, slots) = reader.names.end_setup();
    let empty = vec![Vec::new(); columns.len()];
    reader.names.tables.extend(table(columns, &empty));
    Some(Setup { steps: steps?, slots })
}

/// Reads `teardown`.
pub(super) fn read_teardown(
    reader: &mut Reader<'_>,
    node: &Node,
    kinds: &'static [StepKind],
) -> Option<Vec<Step>> {
    reader.names.begin_teardown();
    read_steps(reader, node, "teardown", kinds)
}

fn read_steps(
    reader: &mut Reader<'_>,
    node: &Node,
    key: &'static str,
    kinds: &'static [StepKind],
) -> Option<Vec<Step>> {
    reader.once = Some(key);
    let list = step_list::read(reader, node, &format!("`{key}`"), kinds);
    reader.once = None;
    let list = list?;
    if list.ends {
        return Some(list.steps);
    }
    let what = if key == SETUP { "load begins" } else { "run ends" };
    let label = format!("the {what} after its last step: no `stay`, no loop without an end");
    let span = reader.first_line(&node.span);
    reader.error(span, format!("`{key}` never ends"), label);
    None
}

impl Setup {
    /// Fills in the values that its user has stored.
    pub(super) fn fill(&self, tables: &mut [DataTable], stored: &[Vec<u8>]) {
        let Some(place) = tables.iter_mut().find(|table| table.name() == SETUP) else { return };
        let value = |slot: &u16| stored.get(usize::from(*slot)).cloned().unwrap_or_default();
        let values: Vec<_> = self.slots.iter().map(value).collect();
        if let Some(filled) = table(place.columns().to_vec(), &values) {
            *place = filled;
        }
    }
}

/// Returns the table of the values; `None` if there is none.
fn table(columns: Vec<String>, values: &[Vec<u8>]) -> Option<DataTable> {
    DataTable::of_one_row(SETUP, columns, values, STORED_BYTES_MAX)
}
