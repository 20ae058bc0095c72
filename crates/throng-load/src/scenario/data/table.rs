//! A data file in memory.

use std::sync::Arc;

use throng_base::Prng;

/// The rows of a data file. Clones share them.
#[derive(Clone, Debug)]
pub struct DataTable(Arc<Rows>, RowOrder);

#[derive(Debug)]
struct Rows {
    name: String,
    path: String,
    columns: Vec<String>,
    /// Longest cell of each column, in bytes.
    longest: Vec<usize>,
    /// All cells, row after row.
    bytes: Vec<u8>,
    /// End of each cell in `bytes`.
    ends: Vec<u32>,
}

/// The row that a user gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// User k gets row k, and after the last row the first follows.
    #[default]
    InTurn,
    /// Each user gets a row at random, and keeps it.
    Random,
    /// As in turn, and a scenario with more users than rows is a mistake.
    Unique,
}

impl DataTable {
    /// Returns a table of one row, the same for all users. Each cell may become as long as
    /// `bytes_max` in a later table with these columns. Returns `None` if there are no columns.
    pub(in crate::scenario) fn of_one_row(
        name: &str,
        columns: Vec<String>,
        cells: &[Vec<u8>],
        bytes_max: usize,
    ) -> Option<Self> {
        let path = format!("`{name}`");
        let mut table = TableBuilder::new(name, &path, columns);
        for cell in cells {
            table.push(cell);
        }
        table.0.longest.fill(bytes_max);
        table.build()
    }

    /// Sets which row a user gets.
    pub(super) fn with_order(self, order: RowOrder) -> Self {
        Self(self.0, order)
    }

    /// Returns the name under which variables use its columns.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the path of the file, as in the scenario.
    pub fn path(&self) -> &str {
        &self.0.path
    }

    /// Returns the names of the columns.
    pub fn columns(&self) -> &[String] {
        &self.0.columns
    }

    /// Returns the index of a column.
    pub fn column(&self, name: &str) -> Option<usize> {
        self.0.columns.iter().position(|column| column == name)
    }

    /// Returns the number of rows; at least 1.
    pub fn rows(&self) -> usize {
        self.0.ends.len() / self.0.columns.len()
    }

    /// Returns the rule by which users get their rows.
    pub fn order(&self) -> RowOrder {
        self.1
    }

    /// Returns the length of the longest cell of a column, in bytes.
    pub fn bytes_max(&self, column: usize) -> usize {
        self.0.longest[column]
    }

    /// Returns the index of the row of user `user`.
    pub fn row_of(&self, user: u64) -> usize {
        let rows = self.rows() as u64;
        let row = match self.1 {
            RowOrder::InTurn | RowOrder::Unique => user % rows,
            RowOrder::Random => Prng::derive(ROW_SEED, user).below(rows),
        };
        row as usize
    }

    /// Returns a cell of the row of user `user`.
    pub fn cell(&self, user: u64, column: usize) -> &[u8] {
        let index = self.row_of(user) * self.0.columns.len() + column;
        let begin = index.checked_sub(1).map_or(0, |before| self.0.ends[before]);
        &self.0.bytes[begin as usize..self.0.ends[index] as usize]
    }
}

/// A table that is being read.
pub(super) struct TableBuilder(Rows);

impl TableBuilder {
    /// Creates a table without rows.
    pub(super) fn new(name: &str, path: &str, columns: Vec<String>) -> Self {
        let longest = vec![0; columns.len()];
        Self(Rows {
            name: name.to_owned(),
            path: path.to_owned(),
            columns,
            longest,
            bytes: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Adds the next cell, from left to right. Returns false if the table has no room for it.
    pub(super) fn push(&mut self, cell: &[u8]) -> bool {
        let rows = &mut self.0;
        let column = rows.ends.len() % rows.columns.len();
        rows.longest[column] = rows.longest[column].max(cell.len());
        rows.bytes.extend_from_slice(cell);
        let end = u32::try_from(rows.bytes.len());
        end.map(|end| rows.ends.push(end)).is_ok()
    }

    /// Returns the names of the columns.
    pub(super) fn columns(&self) -> &[String] {
        &self.0.columns
    }

    /// Completes the table. Returns `None` if it has no rows.
    pub(super) fn build(mut self) -> Option<DataTable> {
        self.0.bytes.shrink_to_fit();
        self.0.ends.shrink_to_fit();
        (!self.0.ends.is_empty()).then(|| DataTable(Arc::new(self.0), RowOrder::default()))
    }
}

/// Seed of random rows: the same user gets the same row in each run.
const ROW_SEED: u64 = 0x7461_626c_6573;
