//! The hub by example: each test plays the clients and the agent of one scene.

mod agents;
mod auth;
mod bench;
mod cold;
mod conformance;
mod errands;
mod foreign;
mod fuzz;
mod hooks;
mod limits;
mod mangle;
mod mcp;
mod protocol;
mod questions;
mod recovery;
mod restores;
mod returning;
mod schema;
mod searching;
mod survival;
mod terminals;
mod transparency;
mod turns;
mod unwedging;
mod views;
