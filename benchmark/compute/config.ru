# frozen_string_literal: true

# The application that every server of bin/bench compute serves.

require_relative "application"
require_relative "database"

run Bench::Compute::Application.new(Bench::Compute::Database)
