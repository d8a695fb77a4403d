# frozen_string_literal: true

require "test_helper"
require "open3"
require "rbconfig"

# benchmark/alarms.rb, with few alarms.
class AlarmsTest < Minitest::Test
  def test_alarms_benchmark_prints_a_value_for_each_count_and_distance
    out, status = Open3.capture2e(RbConfig.ruby, File.join(ROOT, "benchmark/alarms.rb"), "100", "200")

    assert_predicate status, :success?, out
    assert_equal ["100 alarms at random", "100 alarms at one", "200 alarms at random", "200 alarms at one"],
                 out.scan(/\d+ alarms at \w+/)
    assert_equal 4, out.scan(/: \d+\.\d+ µs to add, \d+\.\d+ µs to cancel/).size
  end
end
