# frozen_string_literal: true

require_relative "assistants"
require_relative "stand_in"

map("/stand_in") { run StandIn.new }
run Assistants.new
