//! Tool calls of agents: the merged call ([`call`]), the call of a question ([`frozen`]) and
//! changed files ([`changed_files`]).

pub(crate) mod call;
pub(crate) mod changed_files;
pub(crate) mod frozen;
