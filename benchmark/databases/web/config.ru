# frozen_string_literal: true

require_relative "application"

run Bench::Databases::Application.from_environment
