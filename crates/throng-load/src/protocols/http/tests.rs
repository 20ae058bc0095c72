//! Users that send HTTP requests, without a driver.

mod answers;
mod requests;
mod retries;
