//! The constructs of MZBench that need no code.

use crate::row::Row;

/// Directives at the top of a file.
pub(super) const DIRECTIVES: &[Row] = rows! {
    "make_install" NotNeeded "mzbl_script" => "throng has the worker's functions as steps";
    "include_resource" NotSupported "mzbl_stdlib:resource" =>
        "add `data: {file: FILE, columns: [NAME], delimiter: \"\\t\"}` for a TSV, without the \
         delimiter for a CSV, and use `${row.NAME}`";
    "pre_hook" NotSupported "mzb_pipeline" =>
        "run its commands before `throng run`, on each machine; variables keep their defaults";
    "post_hook" NotSupported "mzb_pipeline" =>
        "run its commands after `throng run`, on each machine";
    "assert" NotChecked "mzbl_asserts" =>
        "write it under `thresholds`, for example `message.failed < 10`, `message.p95 < 200ms` or \
         `message.rate_mean > 100/s`; throng judges the whole run at its end";
};

/// Options of a loop.
pub(super) const LOOP_OPTIONS: &[Row] = rows! {
    "loop spawn" Approximated "mzbl_loop:k_times_spawn" =>
        "MZBench takes each turn in a process of its own; the turns of the scenario follow one \
         another: a late one counts its latency from when it was due";
    "loop poisson" Approximated "mzbl_loop:timerun" =>
        "the turns are at equal distances; the rate is the same; `every: {period: 200ms ±50%}` \
         varies them";
    "loop parallel" NotSupported "mzbl_loop:looprun" =>
        "make the pool as many times as large: a user takes one turn at a time";
    "loop iterator" NotSupported "mzbl_loop:k_times_iter" =>
        "it is 0 each time: write `${counter}` in its place, which counts the messages of the user \
         with such a number, from 0";
    "loop while" NotSupported "mzbl_asserts:check_loop_expr" =>
        "a loop of the scenario ends by its time: shorten it, or stop the run with `throng ctl`";
    "loop think_time" NotSupported "mzbl_loop:superloop" =>
        "write a `repeat` of an `every` for 1s and a `wait`";
    "loop comb" NotSupported "mzbl_loop:superloop" =>
        "write a `repeat` of an `every` for each rate, and a `wait` where the rate is 0";
};

/// Statements.
pub(super) const STATEMENTS: &[Row] = rows! {
    "start_receivers" NotSupported "" =>
        "it starts servers for the other pools: start one beside the run, for example `throng \
         serve ok`";
    "ignore_failure" NotSupported "mzbl_interpreter" =>
        "write its statements without it, and `on_error: continue` beside the steps";
    "set_signal" NotSupported "mzb_signaler:add_signal" => "write the step `signal: NAME`";
    "wait_signal" NotSupported "mzb_signaler:check_signal" =>
        "write the step `wait_for: NAME`, or `barrier: {name, users}` to wait for several users";
    "error" NotSupported "mzbl_stdlib:error" =>
        "remove the steps behind it: the user ends at its last step";
    "parallel" NotSupported "mzbl_interpreter" =>
        "a user does one thing at a time: make a pool of each thread";
    "print" "dump" NotNeeded "mzbl_stdlib:dump" => "`throng try` shows what a user does";
};
