# frozen_string_literal: true

# The application that every server of bin/bench stalls serves.

require_relative "application"

run Bench::Stalls::Application.new
