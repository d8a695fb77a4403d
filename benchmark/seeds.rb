# frozen_string_literal: true

# bin/bench seeds: every published figure of the systems that Heddle implements, beside what is measured today.
#
#   bin/bench seeds                   prints the table of docs/benchmarks/README.md, from the stored results
#   bin/bench seeds --write           writes that page; --check says whether it is up to date
#   bin/bench seeds --measure A8,C3   runs the commands of these lines, and stores their results
#
# With any other option it runs the rows that no other benchmark has, as bin/bench NAME does (--list, --only, --quick).

require_relative "support/bench"
require_relative "seeds/command"

exit(Bench::Seeds::Command.run(ARGV) { |arguments| Bench::Command.run("seeds", arguments) })
