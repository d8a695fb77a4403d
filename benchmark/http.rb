# frozen_string_literal: true

# bin/bench http: Heddle's server beside other Ruby servers, and beside nginx. See docs/benchmarks/http.md.

require_relative "support/bench"

exit(Bench::Command.run("http", ARGV))
