//! `setup` and `teardown`: steps that one user takes once, before the load begins and after it.
//!
//! What the steps of `setup` store, all users read as `${setup.name}`. The reader makes a table of
//! one row from it, whose cells are empty until `setup` has run. If `setup` fails, what it has made
//! is removed by `teardown`, as far as the values that name it are stored.

use super::data::DataTable;
use super::node::Node;
use super::reader::Reader;
use super::step::{Step, StepsOf};
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

/// The steps that run once after the load.
#[derive(Clone, Debug)]
pub struct Teardown {
    /// Steps of its only user.
    pub steps: Vec<Step>,
    /// Columns of the table of `setup` that they use.
    needs: Vec<u16>,
}

/// Reads `setup`, and makes its values known to all steps that follow.
pub(super) fn read_setup(reader: &mut Reader<'_>, node: &Node, steps_of: StepsOf) -> Option<Setup> {
    reader.names.begin_setup();
    let steps = read_steps(reader, node, SETUP, steps_of);
    let (columns, slots) = reader.names.end_setup();
    let empty = vec![Vec::new(); columns.len()];
    reader.names.tables.extend(table(columns, &empty));
    Some(Setup { steps: steps?, slots })
}

/// Reads `teardown`.
pub(super) fn read_teardown(
    reader: &mut Reader<'_>,
    node: &Node,
    steps_of: StepsOf,
) -> Option<Teardown> {
    reader.names.begin_teardown();
    let steps = read_steps(reader, node, "teardown", steps_of);
    let needs = reader.names.end_teardown();
    Some(Teardown { steps: steps?, needs })
}

fn read_steps(
    reader: &mut Reader<'_>,
    node: &Node,
    key: &'static str,
    steps_of: StepsOf,
) -> Option<Vec<Step>> {
    reader.solo_key = Some(key);
    let list = step_list::read(reader, node, &format!("`{key}`"), steps_of);
    reader.solo_key = None;
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

impl Teardown {
    /// Reports whether `setup` has stored all values that the steps use.
    pub(super) fn has_values(&self, tables: &[DataTable]) -> bool {
        let table = tables.iter().find(|table| table.name() == SETUP);
        let is_stored =
            |column: &u16| table.is_some_and(|it| !it.cell(0, usize::from(*column)).is_empty());
        self.needs.iter().all(is_stored)
    }
}

/// Returns the table of the values; `None` if there is none.
fn table(columns: Vec<String>, values: &[Vec<u8>]) -> Option<DataTable> {
    DataTable::of_one_row(SETUP, columns, values, STORED_BYTES_MAX)
}
