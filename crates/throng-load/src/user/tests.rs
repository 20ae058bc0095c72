//! The machine without a driver: each row of a table is an input and the actions that follow.

mod branches;
mod channels;
mod close;
mod connect;
mod cues;
mod ending;
mod expect;
mod held;
mod http;
mod http_answers;
mod http_retries;
mod identity;
mod limits;
mod named;
mod on_message;
mod ping;
mod play;
mod send;
mod served;
mod shown;
mod stop;
mod trace;
mod wait;
