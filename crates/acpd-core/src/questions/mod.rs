pub(crate) mod question;
