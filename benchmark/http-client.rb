# frozen_string_literal: true

# The name is the one that users write.

# bin/bench http-client: Heddle's HTTP client beside Net::HTTP with connections kept by hand.

require_relative "support/bench"

exit(Bench::Command.run("http-client", ARGV))
