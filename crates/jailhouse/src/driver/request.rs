//! The structures that the driver's requests read, byte for byte. The driver takes numbers in the byte order of the machine; every
//! machine that it is for is little-endian.

/// Longest name of a cell, bytes.
const NAME_BYTES: usize = 31;

/// The address and the length of a configuration.
pub(super) fn create(address: u64, bytes: usize) -> Vec<u8> {
    let mut words = address.to_le_bytes().to_vec();
    // Longer ones are refused all the same: the driver takes 32 bits.
    words.extend(u32::try_from(bytes).unwrap_or(u32::MAX).to_le_bytes());
    words.extend([0; 4]);
    words
}

/// A cell by its name.
pub(super) fn cell(name: &str) -> Vec<u8> {
    // The number of a cell that is meant by its name is -1.
    let mut words = (-1_i32).to_le_bytes().to_vec();
    words.extend([0; 4]);
    let mut letters = [0; NAME_BYTES + 1];
    let length = name.len().min(NAME_BYTES);
    letters[..length].copy_from_slice(&name.as_bytes()[..length]);
    words.extend(letters);
    words
}

/// A cell by its name, and its images, which must outlive the request.
pub(super) fn images(name: &str, images: &[super::Image]) -> Vec<u8> {
    let parts: Vec<_> = (images.iter())
        .map(|image| {
            let source = image.bytes.as_ptr() as u64;
            (source, image.bytes.len() as u64, image.address)
        })
        .collect();
    load(name, &parts)
}

/// A cell by its name, and for each image where it is here, how many bytes it has, and where it goes.
pub(super) fn load(name: &str, images: &[(u64, u64, u64)]) -> Vec<u8> {
    let mut words = cell(name);
    words.extend((images.len() as u32).to_le_bytes());
    words.extend([0; 4]);
    for (source, bytes, target) in images {
        for number in [*source, *bytes, *target, 0] {
            words.extend(number.to_le_bytes());
        }
    }
    words
}
