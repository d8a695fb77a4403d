# frozen_string_literal: true

require "test_helper"
require "heddle/server"

# Requests that run for too long are named, even if there are many.
class ServerRunningRequestsTest < Minitest::Test
  def list(number)
    running = Array.new(number) { |one| [nil, ["GET", "/#{one}", one.to_f, "127.0.0.1", nil], nil] }
    Heddle::Server::RunningRequests.describe(running)
  end

  def test_the_longest_are_named_and_the_others_counted
    assert_equal "GET /6 for 6.0 s, GET /5 for 5.0 s, GET /4 for 4.0 s, GET /3 for 3.0 s, GET /2 for 2.0 s, 2 more",
                 list(7)
  end

  def test_few_are_named_all
    assert_equal "GET /1 for 1.0 s, GET /0 for 0.0 s", list(2)
  end

  def test_an_empty_list_gives_nil
    assert_nil list(0)
  end
end
