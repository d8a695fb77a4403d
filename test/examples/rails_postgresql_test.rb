# frozen_string_literal: true

# test: long

require "test_helper"
require "json"
require "securerandom"
require "socket"
require_relative "served_example"
require "support/private_postgresql"
require_relative "support/board"

# examples/rails_postgresql: Active Record on a real PostgreSQL, with the server's and Rails' default settings.
class RailsPostgresqlTest < Minitest::Test
  include Board

  def setup
    need_board
    @served = board("production")
  end

  def test_the_isolation_level_defaults_to_fiber
    assert_equal "fiber", @served.get("/levels").body, @served.output
  end

  def test_at_boot_it_says_how_many_connections_there_may_be
    line = /pool 5, workers 1, reserves 1 → at most 10 connections, 20 during a reload; .* is 100$/

    assert_match line, @served.await_output(line)
  end

  def test_two_workers_count_their_connections_once_and_answer
    environment = environment("production").merge("HEDDLE_WORKERS" => "2")
    served = ServedExample.new("rails_postgresql", bundled: true, environment:)
    codes = codes_of(100, "/slow?seconds=0.05", served)
    line = /pool 5, workers 2, reserves 1 → at most 15 connections, 30 during a reload; .* is 100$/

    assert_match line, served.await_output(line)

    assert_equal ["200"], codes.uniq, served.output
    assert_equal 1, served.output.scan("workers 2, reserves 1 →").size
  ensure
    served&.stop
  end

  def test_queries_run_at_the_same_time_as_far_as_there_are_connections
    @served.get("/slow?seconds=0") # opens one
    codes = []
    seconds = @served.all_at_once(5, "/slow?seconds=2") { |answer| codes << answer.code }

    assert_equal ["200"], codes.uniq
    assert_operator seconds, :<, 9, "one after the other they would take 10"
  end

  def test_five_hundred_clients_of_five_connections_wait_or_get_503_and_none_runs_out_of_patience
    # 8 seconds of work for five connections; in Active Record each waits for at most 5.
    codes = codes_of(500, "/held?seconds=0.08")

    assert_empty codes.uniq - %w[200 503]
    assert_operator codes.count("200"), :>, 250, codes.tally.to_s
    refute_includes @served.output, "ConnectionTimeoutError"
    line = /busy: \d+ requests? waits?, because/

    assert_match line, @served.await_output(line)
  end

  def test_a_page_is_streamed_while_it_is_made
    curl = need_program("curl")
    times, lines = @served.lines_by_curl(curl, "/page?pause=2").transpose
    content = lines.index { |line| line.include?("First") }

    assert_match(/Second: \d+ notes/, lines.join)
    assert_operator times[content] - times.first, :>, 0.5, "the layout did not come before: #{lines}"
  end

  private

  # The statuses of so many requests, all sent before the first answer is read.
  def codes_of(count, path, served = @served)
    sockets = Array.new(count) do
      TCPSocket.new(served.uri.host, served.uri.port).tap do |socket|
        socket.write("GET #{path} HTTP/1.1\r\nhost: board\r\nconnection: close\r\n\r\n")
      end
    end
    sockets.map { |socket| socket.read[%r{\AHTTP/1.1 (\d+)}, 1] }
  ensure
    sockets&.each(&:close)
  end
end
