# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# The scoreboard is sized at the start.
class SharedResourcesTest < Minitest::Test
  Inheritance = Struct.new(:scoreboard)
  private_constant :Inheritance

  def scoreboard_for(processes, inherited = nil)
    inheritance = Inheritance.new(inherited && Heddle::Net::Scoreboard.new(inherited))
    Heddle::Server::Cluster::SharedResources.allocate.send(:open_scoreboard, inheritance, processes)
  end

  def test_scoreboard_has_four_slots_for_each_process
    assert_equal [256, 256, 400, 40_000], [2, 64, 100, 10_000].map { |processes| scoreboard_for(processes).slots }
    assert_equal Heddle::Net::Scoreboard::MAX_SLOTS, scoreboard_for(20_000).slots
  end

  def test_largest_number_of_workers_and_reserve_workers_has_four_slots_for_each
    most = %i[workers reserve_workers].sum { |name| Heddle::Options::BY_NAME.fetch(name).range.end }

    assert_operator most * 4, :<=, Heddle::Net::Scoreboard::MAX_SLOTS
  end

  def test_inherited_scoreboard_without_room_for_two_slots_a_process_is_replaced
    assert_equal 6, scoreboard_for(3, 6).slots
    assert_equal 256, scoreboard_for(4, 6).slots
  end
end
