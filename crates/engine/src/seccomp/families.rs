//! The socket families that a cell may use: an allow-list, because most families reach the whole machine from any network
//! namespace.
//!
//! AF_VSOCK reaches the hypervisor and AF_ALG the kernel's cipher workers from a cell without a network; many old
//! families exist only in the host's namespace and are hardly maintained. Sockets are made by socket(2), socketpair(2) and
//! io_uring, which needs neither call.

use libc::c_long;

use super::calls::refuse;
use super::{Refusal, When};
use crate::app::{Network, Seccomp};

/// Divided by network namespaces: a cell reaches with them the contents of its own namespace. AF_PACKET asks for
/// CAP_NET_RAW beside.
const DIVIDED: u64 = family(libc::AF_UNIX)
    | family(libc::AF_INET)
    | family(libc::AF_INET6)
    | family(libc::AF_NETLINK)
    | family(libc::AF_PACKET)
    | family(libc::AF_CAN);

/// Contents of the host's network beside: links to a hypervisor, coprocessors and radios.
const OF_THE_HOST: u64 = DIVIDED
    | family(libc::AF_TIPC)
    | family(libc::AF_BLUETOOTH)
    | family(libc::AF_IEEE802154)
    | family(libc::AF_VSOCK)
    | family(AF_QIPCRTR)
    | family(libc::AF_XDP);

/// Not in every variant of the C library's list.
const AF_QIPCRTR: i32 = 42;

const REFUSED_WITHOUT_NETWORK: [When; count(DIVIDED)] = others(DIVIDED);
const REFUSED_ON_THE_HOSTS: [When; count(OF_THE_HOST)] = others(OF_THE_HOST);
const ROUTES_WITHOUT_NETWORK: [When; count(DIVIDED) + NETLINK_BITS] =
    and_netlink(REFUSED_WITHOUT_NETWORK);
const ROUTES_ON_THE_HOSTS: [When; count(OF_THE_HOST) + NETLINK_BITS] =
    and_netlink(REFUSED_ON_THE_HOSTS);

/// The kernel itself refuses netlink protocols from 32 on.
const NETLINK_BITS: usize = 5;

/// Refusals that keep a cell to the families of its network.
pub(super) fn refusals(network: Network, level: Seccomp) -> [Refusal; 5] {
    let when: &[When] = match (network, level) {
        (Network::None, Seccomp::Default) => &ROUTES_WITHOUT_NETWORK,
        (Network::Host, Seccomp::Default) => &ROUTES_ON_THE_HOSTS,
        (Network::None, _) => &REFUSED_WITHOUT_NETWORK,
        (Network::Host, _) => &REFUSED_ON_THE_HOSTS,
    };
    let unknown = |name, number: c_long| Refusal {
        name,
        number,
        errno: libc::EAFNOSUPPORT,
        when,
    };
    [
        unknown("socket", libc::SYS_socket),
        unknown("socketpair", libc::SYS_socketpair),
        refuse("io_uring_setup", libc::SYS_io_uring_setup),
        refuse("io_uring_enter", libc::SYS_io_uring_enter),
        refuse("io_uring_register", libc::SYS_io_uring_register),
    ]
}

const fn family(number: i32) -> u64 {
    1 << number
}

/// Families with a number below this are told apart one by one; Linux has 46.
const ONE_BY_ONE: u32 = u64::BITS;

const fn count(allowed: u64) -> usize {
    (allowed.count_zeros() + u32::BITS - ONE_BY_ONE.trailing_zeros()) as usize
}

/// That a family is none of these: each other number below 64, and each bit that makes a number larger.
const fn others<const N: usize>(allowed: u64) -> [When; N] {
    let mut all = [When::equal(0, 0); N];
    let (mut next, mut number) = (0, 0);
    while number < ONE_BY_ONE {
        if allowed & (1 << number) == 0 {
            all[next] = When::masked(0, u32::MAX, number);
            next += 1;
        }
        number += 1;
    }
    let mut bit = ONE_BY_ONE;
    while next < N {
        all[next] = When::masked(0, bit, bit);
        next += 1;
        bit = bit.wrapping_shl(1);
    }
    all
}

/// These, and every netlink protocol but NETLINK_ROUTE, which is 0: audit, connectors, crypto and others are the machine's,
/// and each has a part of the kernel behind it that a program seldom needs.
const fn and_netlink<const N: usize, const M: usize>(families: [When; N]) -> [When; M] {
    const NETLINK: When = When::equal(0, libc::AF_NETLINK);
    let mut all = [NETLINK; M];
    let mut next = 0;
    while next < M {
        all[next] = if next < N {
            families[next]
        } else {
            let bit = 1 << (next - N);
            When::masked(2, bit, bit).and(&NETLINK)
        };
        next += 1;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::Test;

    fn is_refused(network: Network, family: i32) -> bool {
        let family = family.cast_unsigned();
        let [socket, ..] = refusals(network, Seccomp::Cage);
        (socket.when.iter())
            .any(|when| matches!(when.test, Test::Masked { mask, value } if family & mask == value))
    }

    #[test]
    fn what_no_namespace_divides_needs_the_hosts_network() {
        let allowed = |network| -> Vec<i32> {
            let numbers = (0..100_000).chain([1 << 31, i32::MIN + 1, -1, 1 << 30 | libc::AF_UNIX]);
            numbers
                .filter(|family| !is_refused(network, *family))
                .collect()
        };
        assert_eq!(allowed(Network::None), [1, 2, 10, 16, 17, 29]);
        assert_eq!(
            allowed(Network::Host),
            [1, 2, 10, 16, 17, 29, 30, 31, 36, 40, 42, 44]
        );
    }
}
