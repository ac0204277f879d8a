//! A message that only one browser can read: RFC 8291 (`aes128gcm` of RFC 8188), by the primitives
//! of ring.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hkdf::{HKDF_SHA256, KeyType, Prk, Salt};
use ring::rand::{SecureRandom as _, SystemRandom};

use crate::subscription::Subscription;

/// Bytes of a public key, uncompressed.
const PUBLIC: usize = 65;
const SECRET: usize = 16;
const SALT: usize = 16;
/// Texts are padded to a multiple of these bytes, so that the length reveals little.
const STEP: usize = 256;
/// Most bytes of a text. Push services take bodies of 4,096 bytes.
const LONGEST: usize = 2048;
/// Bytes of a record; a message is one record.
const RECORD: u32 = 4096;

#[derive(Debug)]
pub(super) struct Recipient {
    public: Vec<u8>,
    secret: Vec<u8>,
}

impl Recipient {
    pub(super) fn of(subscription: &Subscription) -> Option<Recipient> {
        let (public, secret) = subscription.keys()?;
        Recipient::new(public, secret)
    }

    /// Accepts keys of the right sizes; a public key off the curve fails in
    /// [`seal`](Recipient::seal).
    fn new(public: Vec<u8>, secret: Vec<u8>) -> Option<Recipient> {
        let is_it = public.len() == PUBLIC && public[0] == 4 && secret.len() == SECRET;
        is_it.then_some(Recipient { public, secret })
    }

    /// Seals a text: the body of the request to the push service.
    pub(super) fn seal(&self, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        let mut salt = [0; SALT];
        random.fill(&mut salt)?;
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
        let public = own.compute_public_key()?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, &self.public);
        let (key, nonce) =
            agree_ephemeral(own, &theirs, |shared| self.keys(shared, public.as_ref(), &salt))??;
        let text = &text[..text.len().min(LONGEST)];
        // A mark ends the text; zeros follow.
        let mut body = [text, &[2]].concat();
        body.resize(body.len().next_multiple_of(STEP), 0);
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key)?);
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::empty(), &mut body)?;
        let head = [&salt[..], &RECORD.to_be_bytes(), &[PUBLIC as u8], public.as_ref()].concat();
        Ok([head, body].concat())
    }

    /// Derives the key and the nonce.
    fn keys(
        &self,
        shared: &[u8],
        public: &[u8],
        salt: &[u8],
    ) -> Result<([u8; 16], [u8; 12]), Unspecified> {
        let about = [b"WebPush: info\0", &self.public[..], public].concat();
        let first: [u8; 32] =
            expand(&Salt::new(HKDF_SHA256, &self.secret).extract(shared), &about)?;
        let second = Salt::new(HKDF_SHA256, salt).extract(&first);
        Ok((
            expand(&second, b"Content-Encoding: aes128gcm\0")?,
            expand(&second, b"Content-Encoding: nonce\0")?,
        ))
    }
}

/// A length in bytes for `ring`.
struct Length(usize);

impl KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

fn expand<const N: usize>(from: &Prk, about: &[u8]) -> Result<[u8; N], Unspecified> {
    let mut key = [0; N];
    from.expand(&[about], Length(N))?.fill(&mut key)?;
    Ok(key)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).unwrap()
    }

    /// The values of RFC 8291, appendix A.
    #[test]
    fn the_keys_are_those_of_the_example_in_the_standard() {
        let public = bytes(
            "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        );
        let browser = Recipient::new(public, bytes("BTBZMqHH6r4Tts7J_aSIgg")).unwrap();
        let sender = bytes(
            "BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8",
        );
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let (key, nonce) =
            browser.keys(&shared, &sender, &bytes("DGv6ra1nlYgDCS1FRnbzlw")).unwrap();
        assert_eq!(key, bytes("oIhVW04MRdy2XN9CiKLxTg")[..]);
        assert_eq!(nonce, bytes("4h_95klXJ5E_qnoN")[..]);
    }

    #[test]
    fn only_the_browser_reads_it_and_its_length_says_little() {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random).unwrap();
        let public = own.compute_public_key().unwrap();
        let browser = Recipient::new(public.as_ref().to_vec(), vec![7; SECRET]).unwrap();
        let sealed = browser.seal(b"come").unwrap();
        assert_eq!(sealed.len(), browser.seal(b"come, it is urgent").unwrap().len());
        assert!(sealed.len() < 4096 && browser.seal(&[b'x'; 9000]).unwrap().len() < 4096);

        let (salt, rest) = sealed.split_at(SALT);
        let (sender, text) = rest[5..].split_at(PUBLIC);
        let theirs = UnparsedPublicKey::new(&ECDH_P256, sender);
        let (key, nonce) =
            agree_ephemeral(own, &theirs, |shared| browser.keys(shared, sender, salt))
                .unwrap()
                .unwrap();
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap());
        let mut text = text.to_vec();
        let nonce = Nonce::assume_unique_for_key(nonce);
        let text = key.open_in_place(nonce, Aad::empty(), &mut text).unwrap();
        assert!(text.starts_with(b"come\x02\0\0"));
        assert!(Recipient::new(vec![4; 64], vec![0; SECRET]).is_none());
        let no_point = Recipient::new(vec![4; PUBLIC], vec![0; SECRET]).unwrap();
        assert!(no_point.seal(b"x").is_err());
    }
}
