# frozen_string_literal: true

# bin/bench databases: queries from Heddle, other fiber schedulers, threads and blocking code. See
# docs/benchmarks/databases.md.

require_relative "support/bench"

exit(Bench::Command.run("databases", ARGV))
