# frozen_string_literal: true

# bin/bench modes: the ways to run Heddle beside each other.

require_relative "support/bench"

exit(Bench::Command.run("modes", ARGV))
