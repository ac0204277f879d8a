//! The store from outside: what was committed is what is read back, whatever happens in between.

mod copying;
mod crash;
mod faults;
mod model;
mod opening;
mod reading;
mod running;
mod searching;
mod tidying;
