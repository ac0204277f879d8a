//! The hub and its sessions: how they are made, restored, forked, put away and ended, their turns, and what
//! their clients are sent.

pub(crate) mod adopt;
pub(crate) mod archive;
pub(crate) mod budget;
pub(crate) mod cancel;
pub(crate) mod child;
pub(crate) mod defaults;
pub(crate) mod directory;
pub(crate) mod failed_turn;
pub(crate) mod fanout;
pub(crate) mod fork;
pub(crate) mod journal;
pub(crate) mod kin;
pub(crate) mod limit;
pub(crate) mod line;
pub(crate) mod naming;
pub(crate) mod prompt_keys;
pub(crate) mod queue;
pub(crate) mod reseed;
pub(crate) mod restore;
pub(crate) mod restore_queue;
pub(crate) mod sessions;
pub(crate) mod sleep;
pub(crate) mod stall;
pub(crate) mod steer;
pub(crate) mod title;
pub(crate) mod turn;
pub(crate) mod turn_end;
pub(crate) mod undo;
pub(crate) mod unused;
pub(crate) mod usage;
pub(crate) mod wake;
pub(crate) mod way_out;
