# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle"

# Connections that were collected while a slot still names the fiber that had them: their fiber was killed.
class CheckoutsTest < Minitest::Test
  def setup = @slot = Heddle::Pool::Slot.new(nil, nil).occupied_by(Fiber.current)

  def test_no_fiber_of_active_record_holds_a_collected_connection
    require "active_record"
    require "heddle/databases/active_record/checkouts"
    checkouts = Heddle::Databases::ActiveRecord::Checkouts.new(Object.new)

    refute checkouts.holds?(@slot)
    assert_equal Heddle::Pool::HeldWhileWaiting::ADVICE, checkouts.advice(@slot)
  end

  def test_no_fiber_of_sequel_holds_a_collected_connection
    require "sequel"
    require "heddle/databases/sequel/checkouts"

    refute Heddle::Databases::Sequel::Checkouts.new(Sequel.mock.pool).holds?(@slot)
  end
end
