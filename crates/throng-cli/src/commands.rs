//! The commands, one file each.

pub(crate) mod agent;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod ctl;
pub(crate) mod doctor;
pub(crate) mod find;
pub(crate) mod fleet;
pub(crate) mod import;
pub(crate) mod import_log;
pub(crate) mod init;
pub(crate) mod lab;
pub(crate) mod man;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod serve;
pub(crate) mod top;
pub(crate) mod trial;
