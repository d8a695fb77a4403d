# frozen_string_literal: true

# The application that every Ruby server of bin/bench http serves. HEDDLE_BENCH_LINT=1 puts Rack::Lint around it.

# Agoo evaluates this text without telling its path, and has loaded the application before.
require_relative "application" unless defined?(Bench::Application)

use Rack::Lint if ENV["HEDDLE_BENCH_LINT"] == "1"
run Bench::Application.new
