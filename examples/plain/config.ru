# frozen_string_literal: true

# A Rack application without a framework. Nothing in it knows of Heddle or of fibers.
require_relative "plain"

run Plain.new
