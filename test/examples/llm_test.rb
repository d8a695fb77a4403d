# frozen_string_literal: true

# test: long

require "test_helper"
require "json"
require_relative "served_example"

# examples/llm, over real sockets: the gems speak to the example's stand-in for the services.
class LlmExampleTest < Minitest::Test
  GEMS = %w[openai anthropic ruby_llm].freeze
  # Seconds in which a busy machine does anything.
  PATIENCE = 60

  def setup
    skip "needs the gems of examples/llm: bin/setup" unless ServedExample.gems?("llm")
  end

  def test_each_gem_streams_the_words_as_they_come
    serve("0.05")
    GEMS.each do |gem|
      pieces = []
      Net::HTTP.start(@served.uri.host, @served.uri.port) do |http|
        http.request_get("/#{gem}?one+two+three") { |answer| answer.read_body { |piece| pieces << piece } }
      end

      assert_equal "one two three ", pieces.join, gem
      assert_operator pieces.size, :>, 1, "#{gem}: the words came together"
    end
  end

  STREAMS = Heddle::TestHelpers.nightly? ? 200 : 60

  def test_many_streams_run_at_once_through_one_worker
    serve("0.01", "TOGETHER" => STREAMS.to_s)
    answers = Array.new(STREAMS) do |number|
      # The first word comes when the last of them has begun.
      Thread.new { @served.get("/#{GEMS[number % 3]}?stream+#{number}", patience: 4 * PATIENCE).body }
    end.map(&:value)

    assert_equal Array.new(STREAMS) { |number| "stream #{number} " }, answers
    assert_equal STREAMS, counts.fetch("most")
  end

  def test_a_client_that_leaves_cancels_the_request_to_the_service
    serve("0.05")
    cancelled = counts.fetch("cancelled")
    GEMS.each.with_index(cancelled) do |gem, index|
      socket = TCPSocket.new(@served.uri.host, @served.uri.port)
      socket.write("GET /#{gem}?#{"word+" * 1_000} HTTP/1.1\r\nhost: example\r\n\r\n")
      socket.readpartial(100_000) until counts.fetch("open") == 1
      socket.close

      assert_equal [0, index + 1], until_counts { |found| found["open"].zero? }.values_at("open", "cancelled"), gem
    end
  end

  def test_a_client_that_leaves_before_the_first_word_cancels_the_request_to_the_service
    serve("0.05", "TOGETHER" => "100")
    GEMS.each_with_index do |gem, index|
      socket = TCPSocket.new(@served.uri.host, @served.uri.port)
      socket.write("GET /#{gem}?word HTTP/1.1\r\nhost: example\r\n\r\n")
      until_counts { |found| found["open"] == 1 }
      socket.close

      assert_equal [0, index + 1], until_counts { |found| found["open"].zero? }.values_at("open", "cancelled"), gem
    end
  end

  private

  def serve(pause, environment = {})
    environment = { "PAUSE" => pause, "WEB_CONCURRENCY" => "1", **environment }
    # If one of the many were refused, the others would wait for it.
    @served = ServedExample.shared("llm", bundled: true, environment:, flags: %W[--queue-timeout #{PATIENCE}])
  end

  def counts = JSON.parse(@served.get("/stand_in/counts").body)

  def until_counts
    deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + PATIENCE
    found = counts
    until yield(found) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > deadline
      sleep 0.02
      found = counts
    end
    found
  end
end
