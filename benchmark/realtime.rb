# frozen_string_literal: true

# bin/bench realtime: Heddle's WebSockets beside those of other servers. See docs/benchmarks/realtime.md.

require_relative "support/bench"

exit(Bench::Command.run("realtime", ARGV))
