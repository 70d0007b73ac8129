//! Device trees as boards have them, in their binary form: read, changed where an emulated board lacks firmware, and written.

/// Nesting of nodes that is read.
const DEEPEST: usize = 32;
const MAGIC: u32 = 0xd00d_feed;
const BEGIN: u32 = 1;
const END: u32 = 2;
const PROPERTY: u32 = 3;
const NOTHING: u32 = 4;
const LAST: u32 = 9;
/// Rate of the clocks that stand for those of firmware, Hz.
const RATE: u32 = 100_000_000;
/// What devices have of firmware beside clocks.
const OF_FIRMWARE: [&str; 7] = [
    "assigned-clocks",
    "assigned-clock-rates",
    "assigned-clock-parents",
    "pinctrl-0",
    "pinctrl-names",
    "power-domains",
    "resets",
];

/// A device tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Memory that is not the kernel's: pairs of address and size, as in the file.
    reserved: Vec<u8>,
    boot_cpu: u32,
    root: Node,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Node {
    name: String,
    properties: Vec<(String, Vec<u8>)>,
    children: Vec<Node>,
}

impl Node {
    fn set(&mut self, name: &str, value: &[u8]) {
        self.properties.retain(|(known, _)| known != name);
        self.properties.push((name.to_owned(), value.to_vec()));
    }

    fn find(&mut self, name: &str) -> Option<&mut Node> {
        if self.name == name {
            return Some(self);
        }
        self.children.iter_mut().find_map(|child| child.find(name))
    }

    /// The greatest number by which a node is referred to, at and below this one.
    fn last_handle(&self) -> u32 {
        let own = self.properties.iter().filter(|(name, _)| name == "phandle");
        let own = own.filter_map(|(_, value)| Some(u32::from_be_bytes(value[..].try_into().ok()?)));
        own.chain(self.children.iter().map(Node::last_handle))
            .max()
            .unwrap_or(0)
    }
}

/// A place in the part of a file that has the nodes.
struct Cursor<'b> {
    bytes: &'b [u8],
    at: usize,
    strings: &'b [u8],
}

const DAMAGED: &str = "the device tree is damaged";

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let raw = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_be_bytes(raw.try_into().ok()?))
}

fn text(bytes: &[u8]) -> Option<&str> {
    let end = bytes.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&bytes[..end]).ok()
}

impl Cursor<'_> {
    fn word(&mut self) -> Option<u32> {
        let word = word(self.bytes, self.at)?;
        self.at += 4;
        Some(word)
    }

    fn skip(&mut self, bytes: usize) -> Option<()> {
        self.at = self.at.checked_add(bytes)?.checked_next_multiple_of(4)?;
        Some(())
    }

    /// The node that begins here, behind its mark.
    fn node(&mut self, depth: usize) -> Option<Node> {
        let name = text(self.bytes.get(self.at..)?)?.to_owned();
        self.skip(name.len() + 1)?;
        let mut node = Node {
            name,
            ..Node::default()
        };
        loop {
            match self.word()? {
                BEGIN if depth < DEEPEST => node.children.push(self.node(depth + 1)?),
                PROPERTY => {
                    let (length, name) = (self.word()? as usize, self.word()? as usize);
                    let name = text(self.strings.get(name..)?)?.to_owned();
                    let value = self
                        .bytes
                        .get(self.at..self.at.checked_add(length)?)?
                        .to_vec();
                    self.skip(length)?;
                    node.properties.push((name, value));
                }
                NOTHING => {}
                END => return Some(node),
                _ => return None,
            }
        }
    }
}

impl Tree {
    /// Reads a device tree.
    ///
    /// # Errors
    /// If it is none, as a clause.
    pub fn parse(bytes: &[u8]) -> Result<Tree, &'static str> {
        if word(bytes, 0) != Some(MAGIC) {
            return Err("it is no device tree in its binary form");
        }
        read(bytes).ok_or(DAMAGED)
    }

    /// Gives devices a clock of a fixed rate in place of what firmware would give them: clocks, power domains, pins, resets. What is
    /// attached to them is removed. The devices are named by their nodes.
    ///
    /// # Errors
    /// If there is no such node, as a clause.
    pub fn fix_clocks(&mut self, names: &[String]) -> Result<(), String> {
        let handle = (self.root.last_handle() + 1).to_be_bytes();
        let mut clock = Node {
            name: "timecell-clock".to_owned(),
            ..Node::default()
        };
        clock.set("compatible", b"fixed-clock\0");
        clock.set("#clock-cells", &[0; 4]);
        clock.set("clock-frequency", &RATE.to_be_bytes());
        clock.set("phandle", &handle);
        for name in names {
            let node = self
                .root
                .find(name)
                .ok_or_else(|| format!("the device tree has no node `{name}`"))?;
            // As many as it has names for.
            let named = node
                .properties
                .iter()
                .find(|(name, _)| name == "clock-names");
            let clocks = named.map_or(1, |(_, names)| {
                names.iter().filter(|byte| **byte == 0).count()
            });
            node.properties
                .retain(|(name, _)| !OF_FIRMWARE.contains(&name.as_str()));
            node.set("clocks", &handle.repeat(clocks));
            node.children.clear();
        }
        self.root.children.push(clock);
        Ok(())
    }

    /// Writes the device tree.
    pub fn write(&self) -> Vec<u8> {
        const HEAD: u32 = 40;
        let (mut nodes, mut strings) = (Vec::new(), Vec::new());
        put(&self.root, &mut nodes, &mut strings);
        nodes.extend(LAST.to_be_bytes());
        let at_nodes = HEAD + self.reserved.len() as u32;
        let at_strings = at_nodes + nodes.len() as u32;
        let total = at_strings + strings.len() as u32;
        let head = [
            MAGIC,
            total,
            at_nodes,
            at_strings,
            HEAD,
            17,
            16,
            self.boot_cpu,
            strings.len() as u32,
            nodes.len() as u32,
        ];
        let mut out: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
        out.extend(&self.reserved);
        out.extend(nodes);
        out.extend(strings);
        out
    }
}

fn read(bytes: &[u8]) -> Option<Tree> {
    let offset = |place: usize| Some(word(bytes, 4 * place)? as usize);
    let nodes = bytes.get(offset(2)?..)?;
    let strings = bytes.get(offset(3)?..)?;
    let reserved = bytes.get(offset(4)?..)?;
    // Up to the pair of zeros, and with it.
    let pairs = reserved
        .chunks_exact(16)
        .position(|pair| pair.iter().all(|byte| *byte == 0))?;
    let mut cursor = Cursor {
        bytes: nodes,
        at: 0,
        strings,
    };
    let mut begin = cursor.word()?;
    while begin == NOTHING {
        begin = cursor.word()?;
    }
    Some(Tree {
        reserved: reserved[..16 * (pairs + 1)].to_vec(),
        boot_cpu: word(bytes, 28)?,
        root: Some(cursor).filter(|_| begin == BEGIN)?.node(0)?,
    })
}

fn put(node: &Node, out: &mut Vec<u8>, strings: &mut Vec<u8>) {
    fn padded(out: &mut Vec<u8>, bytes: &[u8]) {
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    out.extend(BEGIN.to_be_bytes());
    padded(out, &[node.name.as_bytes(), b"\0"].concat());
    for (name, value) in &node.properties {
        let name = [name.as_bytes(), b"\0"].concat();
        let known = strings.windows(name.len()).position(|known| known == name);
        let place = known.unwrap_or(strings.len());
        if known.is_none() {
            strings.extend(&name);
        }
        let head = [PROPERTY, value.len() as u32, place as u32];
        out.extend(head.iter().flat_map(|word| word.to_be_bytes()));
        padded(out, value);
    }
    node.children
        .iter()
        .for_each(|child| put(child, out, strings));
    out.extend(END.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    fn node(name: &str, properties: &[(&str, &[u8])], children: Vec<Node>) -> Node {
        Node {
            name: name.to_owned(),
            properties: properties
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.to_vec()))
                .collect(),
            children,
        }
    }

    fn tree(root: Node) -> Tree {
        Tree {
            reserved: vec![0; 16],
            boot_cpu: 0,
            root,
        }
    }

    fn uart() -> Tree {
        let names = b"uart_clk\0pclk\0";
        let clocks: &[u8] = &[0, 0, 0, 3, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 8];
        let firmware = node("firmware", &[("phandle", &[0, 0, 0, 7])], Vec::new());
        let uart = node(
            "serial@1",
            &[
                ("clocks", clocks),
                ("clock-names", names),
                ("power-domains", &[0; 8]),
                ("reg", &[1]),
            ],
            vec![node("bluetooth", &[], Vec::new())],
        );
        tree(node(
            "",
            &[("model", b"board\0")],
            vec![firmware, node("axi", &[], vec![uart])],
        ))
    }

    #[test]
    fn a_device_gets_fixed_clocks() {
        let mut tree = uart();
        tree.fix_clocks(&["serial@1".to_owned()]).unwrap();
        let tree = Tree::parse(&tree.write()).unwrap();
        let uart = &tree.root.children[1].children[0];
        let value = |name: &str| {
            uart.properties
                .iter()
                .find(|(known, _)| known == name)
                .map(|(_, value)| value.clone())
        };
        assert_eq!(value("clocks").unwrap(), [0, 0, 0, 8, 0, 0, 0, 8]);
        assert_eq!(
            (value("power-domains"), value("reg")),
            (None, Some(vec![1]))
        );
        assert_eq!(uart.children, []);
        let clock = &tree.root.children[2];
        assert!(
            clock
                .properties
                .contains(&("phandle".to_owned(), vec![0, 0, 0, 8])),
            "{clock:?}"
        );
        let said = uart_error();
        assert_eq!(said, "the device tree has no node `serial@2`");
    }

    fn uart_error() -> String {
        uart().fix_clocks(&["serial@2".to_owned()]).unwrap_err()
    }

    #[test]
    fn what_is_no_tree_is_refused() {
        assert!(Tree::parse(b"text").unwrap_err().contains("no device tree"));
        let bytes = uart().write();
        assert_eq!(Tree::parse(&bytes[..bytes.len() / 2]).unwrap_err(), DAMAGED);
        let deep = (0..60).fold(Node::default(), |below, _| node("a", &[], vec![below]));
        assert_eq!(Tree::parse(&tree(deep).write()).unwrap_err(), DAMAGED);
    }

    fn nodes() -> impl Strategy<Value = Node> {
        let properties = || vec(("[a-z#-]{1,9}", vec(any::<u8>(), 0..20)), 0..4);
        let leaf = ("[a-z@0-9]{1,9}", properties()).prop_map(|(name, properties)| Node {
            name,
            properties,
            children: Vec::new(),
        });
        leaf.prop_recursive(4, 30, 4, move |below| {
            ("[a-z@0-9]{1,9}", properties(), vec(below, 0..4)).prop_map(
                |(name, properties, children)| Node {
                    name,
                    properties,
                    children,
                },
            )
        })
    }

    proptest! {
        #[test]
        fn trees_come_back(root in nodes()) {
            let tree = tree(root);
            prop_assert_eq!(Tree::parse(&tree.write()).unwrap(), tree);
        }

        #[test]
        fn no_damage_makes_it_panic(root in nodes(), place in any::<prop::sample::Index>(), by in any::<u8>()) {
            let mut bytes = tree(root).write();
            let place = place.index(bytes.len());
            bytes[place] = by;
            let _ = Tree::parse(&bytes);
        }
    }
}
