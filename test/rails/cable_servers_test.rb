# frozen_string_literal: true

# test: nightly

require "test_helper"
require_relative "support/cable_tests"

# What needs a server for each test, with the older Rails; cable_test.rb has the newer one.
class CableServersOnRails72Test < Minitest::Test
  include CableServerTests

  CableTests.instance_methods.grep(/\Atest_/).each { |name| undef_method(name) }

  def version = "7.2"
end
