# frozen_string_literal: true

# bin/bench rails: a page of a Rails 8 application over PostgreSQL, by Heddle, Puma and Falcon. See
# docs/benchmarks/rails.md.

require_relative "support/bench"

exit(Bench::Command.run("rails", ARGV))
