"""pypaimon with the options that hand its work to pypaimon-rust."""

from __future__ import annotations

from benchmarks.contenders.pypaimon import contender
from benchmarks.contenders.worker import serve

NATIVE = ("read.native.enabled", "scan.native-plan.enabled", "write.native.enabled", "commit.native.enabled")

CONTENDER = contender("pypaimon + rust", ("pypaimon==2.1.0", "pypaimon-rust==0.4.0"), dict.fromkeys(NATIVE, "true"))

if __name__ == "__main__":
    serve(CONTENDER, ["pypaimon", "pypaimon-rust"])
