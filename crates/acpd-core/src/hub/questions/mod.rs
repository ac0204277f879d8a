pub(crate) mod decide;
pub(crate) mod interaction;
pub(crate) mod pending;
