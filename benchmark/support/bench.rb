# frozen_string_literal: true

require "etc"
require "json"

# The harness that the benchmarks share: contestants in processes of their own, interleaved; medians, one table, one
# chart.
module Bench
  ROOT = File.expand_path("../..", __dir__)
end

require_relative "suite"
require_relative "row"
require_relative "contestant"
require_relative "before"
require_relative "last_words"
require_relative "child"
require_relative "process_usage"
require_relative "process_tree"
require_relative "statistics"
require_relative "interleaving"
require_relative "sample_set"
require_relative "environment"
require_relative "figure"
require_relative "table"
require_relative "chart"
require_relative "wrk"
require_relative "delay_server"
require_relative "map_count"
require_relative "options"
require_relative "goal"
require_relative "runner"
require_relative "row_result"
require_relative "report"
require_relative "publication"
require_relative "stored_result"
require_relative "command"
