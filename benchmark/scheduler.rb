# frozen_string_literal: true

# bin/bench scheduler: Heddle's scheduler beside every other one, and beside threads. See docs/benchmarks/scheduler.md.

require_relative "support/bench"

exit(Bench::Command.run("scheduler", ARGV))
