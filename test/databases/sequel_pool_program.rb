# frozen_string_literal: true

# What is known of Sequel's pool while one of its connections is in use. Prints it as JSON.

require_relative "support/access"
require "json"

Heddle.run { ACCESS.transaction { puts JSON.generate(Heddle::Databases::Pools.all) } }
