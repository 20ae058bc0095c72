//! `setup` and `teardown`: steps that one user takes once, before the load begins and after it.
//!
//! What the steps of `setup` store, all users read as `${setup.name}`. The reader makes a table of
//! one row from it, whose cells are empty until `setup` has run.

use super::data::DataTable;
use super::node::Node;
use super::on_error::OnError;
use super::reader::Reader;
use super::{Class, STORED_BYTES_MAX, step_list};
use crate::steps::STEPS;

/// The steps that run once before the load, and where they leave their values.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The class of its only user.
    pub class: Class,
    /// Places of its values among those of a user, in the order of the table's columns.
    pub(super) slots: Vec<u16>,
}

/// Reads `setup`, and makes its values known to all steps that follow.
pub(super) fn read_setup(reader: &mut Reader<'_>, node: &Node) -> Option<Setup> {
    reader.names.begin_setup();
    let class = read_class(reader, node, SETUP);
    let (columns, slots) = reader.names.end_setup();
    let empty = vec![Vec::new(); columns.len()];
    reader.names.tables.extend(table(columns, &empty));
    Some(Setup { class: class?, slots })
}

/// Reads `teardown`.
pub(super) fn read_teardown(reader: &mut Reader<'_>, node: &Node) -> Option<Class> {
    reader.names.begin_teardown();
    read_class(reader, node, TEARDOWN)
}

fn read_class(reader: &mut Reader<'_>, node: &Node, name: &'static str) -> Option<Class> {
    reader.once = Some(name);
    let list = step_list::read(reader, node, &format!("`{name}`"), STEPS);
    reader.once = None;
    let list = list?;
    if !list.ends {
        let title = format!("`{name}` never ends");
        let label = match name {
            SETUP => "the load begins after its last step: no `stay`, no loop without an end",
            _ => "the run ends after its last step: no `stay`, no loop without an end",
        };
        let span = reader.first_line(&node.span);
        reader.error(span, title, label);
        return None;
    }
    let on_error = OnError::Stop;
    Some(Class { name: name.to_owned(), weight: 1, steps: list.steps, on_error })
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

/// Key of the steps, and first part of the names of their values.
pub(super) const SETUP: &str = "setup";
const TEARDOWN: &str = "teardown";
