//! The store from outside: it returns all that was committed, after anything that happens in between.

mod copying;
mod faults;
mod model;
mod opening;
#[cfg(unix)]
mod power;
mod reading;
mod running;
mod searching;
mod tidying;
