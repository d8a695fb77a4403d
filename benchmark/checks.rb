# frozen_string_literal: true

# bin/bench checks: published promises that are a matter of right or wrong. Each row runs tests of this repository.

require_relative "support/bench"

exit(Bench::Command.run("checks", ARGV))
