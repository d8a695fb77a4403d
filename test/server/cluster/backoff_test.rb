# frozen_string_literal: true

require "test_helper"
require "heddle/server"

class ClusterBackoffTest < Minitest::Test
  def test_the_first_start_is_at_once_and_each_further_one_later
    backoff = Heddle::Server::Cluster::Backoff.new

    assert_equal [0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30, 30], Array.new(9) { backoff.record_failure(100.0, 1) }
    assert_in_delta 130.0, backoff.retry_at
  end

  def test_what_had_served_is_started_again_after_a_second_at_most
    backoff = Heddle::Server::Cluster::Backoff.new

    assert_equal [0, 0.5, 1, 1, 1], Array.new(5) { backoff.record_failure(100.0, 1, served: true) }
    assert_in_delta 8.0, backoff.record_failure(100.0, 1)
  end

  def test_a_long_run_resets_the_backoff
    backoff = Heddle::Server::Cluster::Backoff.new
    3.times { backoff.record_failure(100.0, 1) }

    assert_equal 0, backoff.record_failure(200.0, 30)
    assert_in_delta 0.5, backoff.record_failure(201.0, 1)
  end
end
