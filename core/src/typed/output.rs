//! The types of the language as results: what serde writes for them.

use super::Output;
use crate::schema::Schema;

/// A type that is written as it is read.
macro_rules! as_read {
    ($($same:ty)+) => {$(
        impl Output for $same {
            const SCHEMA: Schema<'static> = <Self as crate::typed::Parameter>::SCHEMA;
        }
    )+};
}
as_read! { bool u8 u16 u32 u64 usize i8 i16 i32 i64 isize f32 f64 char }

macro_rules! written {
    ($($written:ty = $schema:expr;)+) => {$(
        impl Output for $written {
            const SCHEMA: Schema<'static> = $schema;
        }
    )+};
}
written! {
    () = Schema::null();
    str = Schema::string();
}

/// What is written as the type behind it.
macro_rules! behind {
    ($($pointer:ty)+) => {$(
        impl<T: Output + ?Sized> Output for $pointer {
            const SCHEMA: Schema<'static> = T::SCHEMA;
        }
    )+};
}
behind! { &T }

impl<T: Output> Output for Option<T> {
    const SCHEMA: Schema<'static> = T::SCHEMA.nullable();
}

/// A schema as something that lasts, so that another can refer to it.
struct Part<T>(core::marker::PhantomData<T>);

impl<T: Output> Part<T> {
    const SCHEMA: &'static Schema<'static> = &T::SCHEMA;
}

impl<T: Output> Output for [T] {
    const SCHEMA: Schema<'static> = Schema::array(Part::<T>::SCHEMA);
}

impl<T: Output, const N: usize> Output for [T; N] {
    const SCHEMA: Schema<'static> = {
        let items = if N > u32::MAX as usize { u32::MAX } else { N as u32 };
        Schema::array(Part::<T>::SCHEMA).min_items(items).max_items(items)
    };
}

#[cfg(feature = "alloc")]
mod heap {
    use alloc::borrow::Cow;
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::string::String;
    use alloc::sync::Arc;
    use alloc::vec::Vec;

    use super::super::Output;
    use super::Part;
    use crate::schema::Schema;

    as_read! { String Cow<'_, str> }
    behind! { Box<T> Arc<T> }

    impl<T: Output> Output for Vec<T> {
        const SCHEMA: Schema<'static> = <[T] as Output>::SCHEMA;
    }

    impl<T: Output> Output for BTreeMap<String, T> {
        const SCHEMA: Schema<'static> = Schema::map(Part::<T>::SCHEMA);
    }
}
