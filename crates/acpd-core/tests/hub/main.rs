//! The hub by example: each test plays the clients and the agent of one scene.

mod agents;
mod bench;
mod limits;
mod protocol;
mod recovery;
mod restores;
mod returning;
mod schema;
mod survival;
mod turns;
