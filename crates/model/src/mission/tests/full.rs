//! A mission that sets every key.

/// A mission that says every key there is, each with another value than its default.
pub(super) const FULL: &str = r#"schema = 1
name = "full"
description = "every key"
enforcer = "rt-cgroup"
cpus = [1, 2, 3]
latency = "100us"
supply_run = "runs/supply"
notify = ["/usr/bin/logger", "-t", "full"]
shed = ["guest"]
uids = { lowest = 3000000000, highest = 3000000999 }
supervisor = { class = "other", budget = "2ms", period = "50ms", cpus = [0] }

[modes]
policy = "amc-rtb"
return_after = "5ms"

[jailhouse]
system = "board.cell"

[[cell]]
name = "pilot"
description = "flies"
image = { rootfs = "roots/pilot" }
command = ["/bin/pilot"]
args = ["-v"]
workdir = "/var/lib"
engine = "crun"
class = "fifo"
criticality = "hi"
cpus = [1]
after = ["guest"]
needs = ["eyes"]
only_tasks = true
ready = "first-job"
start_timeout = "2s"
stop_timeout = "50ms"

[cell.env]
LEVEL = "3"

[cell.priorities]
lowest = 80
highest = 90

[cell.reservation]
budget = "2ms"
period = "10ms"
deadline = "9ms"
budget_hi = "3ms"

[[cell.task]]
name = "loop"
wcet = "1ms"
wcet_hi = "2ms"
period = "10ms"
deadline = "8ms"
jitter = "10us"
blocking = "20us"
priority = 85
thread = "pilot-loop"
arrivals = "sporadic"

[cell.restart]
policy = "always"
backoff_min = "1ms"
backoff_max = "2s"
limit = 9
window = "2min"

[[cell.health]]
when = "deadline-misses"
do = "shed"
task = "loop"
misses = 2
jobs = 20
times = 3
window = "1s"
cooldown = "10ms"
escalate = [{ after = 2, do = "switch-mode" }]

[[cell.health]]
when = "heartbeat"
do = "restart"
timeout = "30ms"

[[cell.health]]
when = "exit"
do = "notify"
status = "any"

[cell.rights]
network = "host"
writable_root = true
evl = true
capabilities = ["CAP_NET_RAW"]
seccomp = "cage"
user = { uid = 1, gid = 2 }
devices = [{ path = "/dev/ttyS1", access = "r" }]
mounts = [{ source = "data", target = "/data", writable = true }]
tmpfs = [{ target = "/tmp", size = "1MiB" }]
memory = "8MiB"
pids = 7
pending_signals = 9
message_queues = "16KiB"
open_files = 20

[[cell]]
name = "guest"
image = { reference = "localhost/guest:1" }
engine = "podman"
when_shed = "stop"
cpus = [2]
reservation = { budget = "1ms", period = "10ms" }

[[cell]]
name = "eyes"
image = { bundle = "bundles/eyes" }
cpus = [2]
criticality = "hi"
reservation = { budget = "1ms", period = "10ms" }

[[cell]]
name = "wings"
image = { inmate = "wings.bin" }
engine = "jailhouse"
class = "other"

[cell.partition]
cpus = [7]
entry = 0x1000
interrupts = [50]
heartbeat = 0x800400010
boot_time = "3s"
prints = true

[cell.partition.console]
at = 0xff000000
kind = "xuartps"
shared = true

[[cell.partition.memory]]
at = 0x800600000
size = "64KiB"
seen_at = 0x0
kind = "shared"

[[cell.partition.load]]
file = "wings.dtb"
at = 0x2000

[[cell.partition.device]]
at = 0xff010000
size = "8KiB"
interrupts = [54]

[[cell]]
name = "ears"
image = { binary = "bin/ears" }
engine = "qemu"
cpus = [2]
machine = { board = "pvh", vcpus = 2, memory = "256MiB", kernel = "linux-image-amd64", accel = "tcg", helpers = { class = "idle", cpus = [2] } }
reservation = { budget = "1ms", period = "10ms" }

[[cell.health]]
when = "budget-exhausted"
do = "log"
periods = 3
"#;
