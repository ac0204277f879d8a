//! One declaration for each key: its name, type, default and documentation.

pub(crate) mod fault;
pub(crate) mod kind;
pub(crate) mod schema;
pub(crate) mod variables;

use toml::Spanned;
use toml::de::DeValue;

use self::fault::Fault;
use self::schema::Schema;

/// Where a key may stand. A key of one place may stand in all the places after it as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Scope {
    /// `[defaults]`; also for the keys of a table that stands in one place only.
    Shared,
    Agent,
    Catalogue,
}

/// A key that sets something in a `T`.
pub(crate) struct Key<T> {
    /// The name, dotted where it is nested.
    pub(crate) name: &'static str,
    /// The first place where it may stand.
    pub(crate) scope: Scope,
    /// What may be written, as in "true or false".
    pub(crate) kind: fn() -> String,
    /// What may be written, for editors.
    pub(crate) schema: fn() -> Schema,
    /// A value as TOML; nothing if it is unset.
    pub(crate) show: fn(&T) -> String,
    /// The default in the same way.
    pub(crate) default: fn() -> String,
    /// Whether what several tables say adds up.
    pub(crate) adds_up: bool,
    /// The documentation, line by line.
    pub(crate) doc: &'static [&'static str],
    /// Takes over a value.
    pub(crate) set: fn(&mut T, &Spanned<DeValue<'_>>) -> Result<(), Fault>,
}

/// Something that is read from a TOML table; declared with [`keys!`].
pub(crate) trait Keys: Default {
    /// All keys that the table may have.
    fn keys() -> Vec<Key<Self>>;
}

/// Declares a struct that is read from a TOML table. Each line is
/// `Scope "key" => field: type as Kind = default;` with its documentation above it. The fields
/// under `beside` are no keys.
macro_rules! keys {
    (
        $(#[doc = $about:literal])*
        $vis:vis struct $name:ident {
            $(
                $(#[doc = $doc:literal])*
                $scope:ident $key:literal =>
                    $field_vis:vis $field:ident: $type:ty as $kind:ty = $default:expr;
            )*
        }
        beside {
            $(
                $(#[doc = $beside_doc:literal])*
                $beside_vis:vis $beside:ident: $beside_type:ty = $beside_default:expr;
            )*
        }
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        $vis struct $name {
            $($(#[doc = $doc])* $field_vis $field: $type,)*
            $($(#[doc = $beside_doc])* $beside_vis $beside: $beside_type,)*
        }

        impl Default for $name {
            fn default() -> Self {
                Self {
                    $($field: $default,)*
                    $($beside: $beside_default,)*
                }
            }
        }

        impl Keys for $name {
            fn keys() -> Vec<Key<Self>> {
                vec![$(
                    Key {
                        name: $key,
                        scope: Scope::$scope,
                        kind: <$kind as Kind>::describe,
                        schema: <$kind as Kind>::schema,
                        show: |this| <$kind as Kind>::show(&this.$field),
                        default: || <$kind as Kind>::show(&Self::default().$field),
                        adds_up: <$kind as Kind>::ADDS_UP,
                        doc: &[$($doc),*],
                        set: |this, value| {
                            <$kind as Kind>::merge(&mut this.$field, <$kind as Kind>::read(value)?);
                            Ok(())
                        },
                    },
                )*]
            }
        }
    };
}
pub(crate) use keys;
