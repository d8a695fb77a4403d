# frozen_string_literal: true

# The application that every way to run of bin/bench modes serves.

require_relative "application"

run Bench::Modes::Application.new
