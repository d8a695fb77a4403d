# frozen_string_literal: true

require_relative "stand_in"

run StandIn.new
