pub(crate) mod call;
pub(crate) mod changed_files;
pub(crate) mod frozen;
