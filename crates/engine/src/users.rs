//! stub
use crate::User;
/// x
pub fn choose(_: Option<&str>) -> Result<User, String> {
    Err(String::new())
}
