# frozen_string_literal: true

# bin/bench stalls: what others' requests feel of one that blocks. See docs/benchmarks/stalls.md.

require_relative "support/bench"

exit(Bench::Command.run("stalls", ARGV))
