# frozen_string_literal: true

require "test_helper"
require "heddle"
require "minitest/mock"

# What Heddle adds to Active Record's adapters, with a stub of one.
class ActiveRecordTest < Minitest::Test
  class Adapter
    attr_reader :raw_connection, :disconnected

    prepend Heddle::Databases::ActiveRecord::MysqlAdapter

    def initialize = @raw_connection = Object.new

    def disconnect! = @disconnected = true
  end

  # In a killed fiber the driver's abandon does not return.
  def test_an_adapter_for_mysql_has_parted_from_its_connection_before_the_driver_ends_it
    adapter = Adapter.new
    raw = adapter.raw_connection
    driver = Object.new
    driver.define_singleton_method(:abandon) { |connection| throw :killed, connection }
    Heddle::Databases.stub(:driver, driver) do
      assert_same(raw, catch(:killed) { adapter.heddle_abandon })
    end

    assert adapter.disconnected
    assert_nil adapter.raw_connection
  end
end
