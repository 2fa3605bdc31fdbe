//! The types of the language as parameters.

use core::fmt;
use core::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::{Parameter, Read, Seed};
use crate::json::Number;
use crate::schema::Schema;

/// An integer of at most 32 bits.
macro_rules! narrow {
    ($($integer:ty)+) => {$(
        impl Parameter for $integer {
            const SCHEMA: Schema<'static> =
                Schema::integer().minimum(<$integer>::MIN as i64).maximum(<$integer>::MAX as i64);
        }
    )+};
}
narrow! { u8 u16 u32 i8 i16 i32 }

/// An integer that can be beyond 53 bits.
macro_rules! wide {
    ($($integer:ty => $number:ident $as:ty;)+) => {$(
        impl Parameter for $integer {
            const SCHEMA: Schema<'static> = Schema::integer64()
                .lower(Number::$number(<$integer>::MIN as $as), false)
                .upper(Number::$number(<$integer>::MAX as $as), false);
        }
    )+};
}
wide! {
    u64 => U64 u64;
    usize => U64 u64;
    i64 => I64 i64;
    isize => I64 i64;
}

macro_rules! scalar {
    ($($scalar:ty = $schema:expr;)+) => {$(
        impl Parameter for $scalar {
            const SCHEMA: Schema<'static> = $schema;
        }
    )+};
}
scalar! {
    bool = Schema::boolean();
    f32 = Schema::number();
    f64 = Schema::number();
    char = Schema::string().min_length(1).max_length(1);
}

macro_rules! as_serde_reads {
    ($($scalar:ty)+) => {$(
        impl<'de> Read<'de> for $scalar {
            fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
                Self::deserialize(source)
            }
        }
    )+};
}
as_serde_reads! { bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 char }

impl Parameter for &str {
    const SCHEMA: Schema<'static> = Schema::string();
}

impl<'de: 'a, 'a> Read<'de> for &'a str {
    fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        Self::deserialize(source)
    }
}

impl<T: Parameter> Parameter for Option<T> {
    const SCHEMA: Schema<'static> = T::SCHEMA.nullable();
    const OPTIONAL: bool = true;
}

impl<'de, T: Read<'de>> Read<'de> for Option<T> {
    fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_option(Maybe(PhantomData))
    }

    fn absent() -> Option<Self> {
        Some(None)
    }
}

struct Maybe<T>(PhantomData<fn() -> T>);

impl<'de, T: Read<'de>> Visitor<'de> for Maybe<T> {
    type Value = Option<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value or null")
    }

    fn visit_none<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_unit<E: Error>(self) -> Result<Option<T>, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, source: D) -> Result<Option<T>, D::Error> {
        T::read(source).map(Some)
    }
}

/// A schema as something that lasts, so that another can refer to it.
struct Part<T>(PhantomData<T>);

impl<T: Parameter> Part<T> {
    const SCHEMA: &'static Schema<'static> = &T::SCHEMA;
}

impl<T: Parameter, const N: usize> Parameter for [T; N] {
    const SCHEMA: Schema<'static> = {
        // An array that no argument could fill is none that the reader would take.
        let items = if N > u32::MAX as usize { u32::MAX } else { N as u32 };
        Schema::array(Part::<T>::SCHEMA).min_items(items).max_items(items)
    };
}

/// `T: Default`, because without a heap and without `unsafe` the items have to be somewhere before all of them came.
impl<'de, T: Read<'de> + Default, const N: usize> Read<'de> for [T; N] {
    fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        source.deserialize_seq(Fixed(PhantomData))
    }
}

struct Fixed<T, const N: usize>(PhantomData<fn() -> T>);

impl<'de, T: Read<'de> + Default, const N: usize> Visitor<'de> for Fixed<T, N> {
    type Value = [T; N];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of a fixed length")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<[T; N], A::Error> {
        let mut items: [T; N] = core::array::from_fn(|_| T::default());
        for (nth, room) in items.iter_mut().enumerate() {
            let item = sequence.next_element_seed(Seed::<T>::new())?;
            *room = item.ok_or_else(|| A::Error::invalid_length(nth, &self))?;
        }
        Ok(items)
    }
}

#[cfg(feature = "alloc")]
mod heap {
    use alloc::borrow::{Cow, ToOwned as _};
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::vec::Vec;
    use core::fmt;
    use core::marker::PhantomData;

    use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

    use super::super::{Parameter, Read, Seed};
    use super::Part;
    use crate::schema::Schema;

    scalar! {
        String = Schema::string();
        Cow<'_, str> = Schema::string();
    }
    as_serde_reads! { String }

    impl<'de: 'a, 'a> Read<'de> for Cow<'a, str> {
        fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            source.deserialize_str(AsItStands(PhantomData))
        }
    }

    /// Takes a text as it stands where it can be borrowed. (serde's own `Cow` never borrows.)
    struct AsItStands<'a>(PhantomData<&'a str>);

    impl<'de: 'a, 'a> Visitor<'de> for AsItStands<'a> {
        type Value = Cow<'a, str>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Cow<'a, str>, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E: Error>(self, text: &str) -> Result<Cow<'a, str>, E> {
            Ok(Cow::Owned(text.to_owned()))
        }
    }

    impl<T: Parameter> Parameter for Box<T> {
        const SCHEMA: Schema<'static> = T::SCHEMA;
        const OPTIONAL: bool = T::OPTIONAL;
    }

    impl<'de, T: Read<'de>> Read<'de> for Box<T> {
        fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            T::read(source).map(Self::new)
        }

        fn absent() -> Option<Self> {
            T::absent().map(Self::new)
        }
    }

    impl<T: Parameter> Parameter for Vec<T> {
        const SCHEMA: Schema<'static> = Schema::array(Part::<T>::SCHEMA);
    }

    impl<'de, T: Read<'de>> Read<'de> for Vec<T> {
        fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            source.deserialize_seq(List(PhantomData))
        }
    }

    struct List<T>(PhantomData<fn() -> T>);

    impl<'de, T: Read<'de>> Visitor<'de> for List<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Vec<T>, A::Error> {
            let mut items = Vec::new();
            while let Some(item) = sequence.next_element_seed(Seed::<T>::new())? {
                items.push(item);
            }
            Ok(items)
        }
    }

    impl<T: Parameter> Parameter for BTreeMap<String, T> {
        const SCHEMA: Schema<'static> = Schema::map(Part::<T>::SCHEMA);
    }

    impl<'de, T: Read<'de>> Read<'de> for BTreeMap<String, T> {
        fn read<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
            source.deserialize_map(ByName(PhantomData))
        }
    }

    struct ByName<T>(PhantomData<fn() -> T>);

    impl<'de, T: Read<'de>> Visitor<'de> for ByName<T> {
        type Value = BTreeMap<String, T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<BTreeMap<String, T>, A::Error> {
            let mut map = BTreeMap::new();
            while let Some(name) = members.next_key::<String>()? {
                drop(map.insert(name, members.next_value_seed(Seed::<T>::new())?));
            }
            Ok(map)
        }
    }
}
