//! The constructs of MZBench that need no code.

use crate::row::{Row, approximated, not_checked, not_needed, not_supported};

/// Directives at the top of a file.
pub(super) const DIRECTIVES: &[Row] = &[
    not_needed("make_install", "throng has the worker's functions as steps", "mzbl_script"),
    not_supported(
        "include_resource",
        "add `data: {file: FILE, columns: [NAME], delimiter: \"\\t\"}` for a TSV, without the \
         delimiter for a CSV, and use `${row.NAME}`",
        "mzbl_stdlib:resource",
    ),
    not_supported(
        "pre_hook",
        "run its commands before `throng run`, on each machine; variables keep their defaults",
        "mzb_pipeline",
    ),
    not_supported(
        "post_hook",
        "run its commands after `throng run`, on each machine",
        "mzb_pipeline",
    ),
    not_checked(
        "assert",
        "write it under `thresholds`, for example `message.failed < 10`, `message.p95 < 200ms` or \
         `message.rate_mean > 100/s`; throng judges the whole run at its end",
        "mzbl_asserts",
    ),
];

/// Options of a loop.
pub(super) const LOOP_OPTIONS: &[Row] = &[
    approximated(
        "loop spawn",
        "MZBench takes each turn in a process of its own; the turns of the scenario follow one \
         another: a late one counts its latency from when it was due",
        "mzbl_loop:k_times_spawn",
    ),
    approximated(
        "loop poisson",
        "the turns are at equal distances; the rate is the same; `every: {period: 200ms ±50%}` \
         varies them",
        "mzbl_loop:timerun",
    ),
    not_supported(
        "loop parallel",
        "make the pool as many times as large: a user takes one turn at a time",
        "mzbl_loop:looprun",
    ),
    not_supported(
        "loop iterator",
        "it is 0 each time: write `${counter}` in its place, which counts the messages of the user \
         with such a number, from 0",
        "mzbl_loop:k_times_iter",
    ),
    not_supported(
        "loop while",
        "a loop of the scenario ends by its time: shorten it, or stop the run with `throng ctl`",
        "mzbl_asserts:check_loop_expr",
    ),
    not_supported(
        "loop think_time",
        "write a `repeat` of an `every` for 1s and a `wait`",
        "mzbl_loop:superloop",
    ),
    not_supported(
        "loop comb",
        "write a `repeat` of an `every` for each rate, and a `wait` where the rate is 0",
        "mzbl_loop:superloop",
    ),
];

/// Statements.
pub(super) const STATEMENTS: &[Row] = &[
    not_supported(
        "start_receivers",
        "it starts servers for the other pools: start one beside the run, for example `throng \
         serve ok`",
        "",
    ),
    not_supported(
        "ignore_failure",
        "write its statements without it, and `on_error: continue` beside the steps",
        "mzbl_interpreter",
    ),
    not_supported("set_signal", "write the step `signal: NAME`", "mzb_signaler:add_signal"),
    not_supported(
        "wait_signal",
        "write the step `wait_for: NAME`, or `barrier: {name, users}` to wait for several users",
        "mzb_signaler:check_signal",
    ),
    not_supported(
        "error",
        "remove the steps behind it: the user ends at its last step",
        "mzbl_stdlib:error",
    ),
    not_supported(
        "parallel",
        "a user does one thing at a time: make a pool of each thread",
        "mzbl_interpreter",
    ),
    not_needed("print", "`throng try` shows what a user does", "mzbl_stdlib:dump"),
    not_needed("dump", "`throng try` shows what a user does", "mzbl_stdlib:dump"),
];
