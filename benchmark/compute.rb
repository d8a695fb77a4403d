# frozen_string_literal: true

# bin/bench compute: pages that compute, beside Puma and Falcon. docs/benchmarks/compute.md explains the rows.

require_relative "support/bench"

exit(Bench::Command.run("compute", ARGV))
