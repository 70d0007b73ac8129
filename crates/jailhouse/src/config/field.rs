//! Packed little-endian fields: one declaration of a structure gives its reader and its writer.

/// Something of fixed size in a file.
pub(super) trait Field: Sized {
    /// Bytes.
    const SIZE: usize;

    /// Takes one from the beginning of `bytes`; `None` where they are too few.
    fn take(bytes: &mut &[u8]) -> Option<Self>;

    /// Appends it.
    fn put(&self, to: &mut Vec<u8>);
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Field for $type {
            const SIZE: usize = size_of::<$type>();

            fn take(bytes: &mut &[u8]) -> Option<$type> {
                let (first, rest) = bytes.split_first_chunk()?;
                *bytes = rest;
                Some(<$type>::from_le_bytes(*first))
            }

            fn put(&self, to: &mut Vec<u8>) {
                to.extend(self.to_le_bytes());
            }
        }
    )*};
}

integers!(u8 u16 u32 u64);

impl<T: Field + Copy + Default, const N: usize> Field for [T; N] {
    const SIZE: usize = N * T::SIZE;

    fn take(bytes: &mut &[u8]) -> Option<[T; N]> {
        let mut all = [T::default(); N];
        for one in &mut all {
            *one = T::take(bytes)?;
        }
        Some(all)
    }

    fn put(&self, to: &mut Vec<u8>) {
        self.iter().for_each(|one| one.put(to));
    }
}

/// Declares a structure whose fields stand in a file in this order, without gaps.
macro_rules! layout {
    ($(#[$about:meta])* $public:vis struct $name:ident {
        $($(#[$each:meta])* $seen:vis $field:ident: $type:ty,)*
    }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        $public struct $name {
            $($(#[$each])* $seen $field: $type,)*
        }

        impl $crate::config::field::Field for $name {
            const SIZE: usize = 0 $(+ <$type as $crate::config::field::Field>::SIZE)*;

            fn take(bytes: &mut &[u8]) -> Option<$name> {
                Some($name { $($field: $crate::config::field::Field::take(bytes)?,)* })
            }

            fn put(&self, to: &mut Vec<u8>) {
                $($crate::config::field::Field::put(&self.$field, to);)*
            }
        }
    };
}

pub(super) use layout;
