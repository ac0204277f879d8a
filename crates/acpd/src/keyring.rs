//! The keyring of the system: on Linux that of the kernel, which needs neither a library nor a running
//! service, on macOS the keychain of the user, on Windows their Credential Manager.

#[cfg(target_os = "macos")]
use apple_native_keyring_store::keychain::Store;
use keyring_core::Error;
use keyring_core::api::CredentialStoreApi as _;
#[cfg(target_os = "linux")]
use linux_keyutils_keyring_store::Store;
#[cfg(windows)]
use windows_native_keyring_store::Store;

/// The value that is kept for a user of a service, or why there is none; without a word of it.
pub fn read(service: &str, user: &str) -> Result<String, String> {
    let entry = Store::new().and_then(|store| store.build(service, user, None));
    entry.and_then(|entry| entry.get_password()).map_err(|error| match error {
        Error::NoEntry => format!("the keyring holds nothing for `{service}/{user}`"),
        Error::BadEncoding(_) => "what the keyring holds is no text".to_owned(),
        other => format!("the keyring cannot be read: {other}"),
    })
}
