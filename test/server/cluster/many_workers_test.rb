# frozen_string_literal: true

require_relative "cluster_case"

# The number of workers has no upper bound: everything of fixed size is sized at the start.
class ManyWorkersTest < Minitest::Test
  include ClusterCase

  WORKERS = 64

  def indexes = client.status[:workers].filter_map { |worker| worker[:index] if worker[:pid] }

  def test_64_workers_serve_reload_and_stop
    serve("--control", "unix:control.sock", workers: WORKERS)
    wait_until("not all workers serve") { indexes.sort == [*0...WORKERS] }

    assert_equal "code 1", served.get("/").body
    write("config.ru", APP.sub("code 1", "code 2"))
    signal("HUP")
    wait_for("reloaded: #{WORKERS} workers serve the new code")

    assert_equal "code 2", served.get("/").body
    assert_predicate served.stop, :success?, served.output
  end

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

  def test_inherited_scoreboard_without_room_for_two_slots_a_process_is_replaced
    assert_equal 6, scoreboard_for(3, 6).slots
    assert_equal 256, scoreboard_for(4, 6).slots
  end
end
