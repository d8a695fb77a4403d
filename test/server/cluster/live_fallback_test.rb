# frozen_string_literal: true

require_relative "cluster_case"
require "json"
require "support/event_stream_client"

# A live page of a client without WebSockets: its POSTs come to any worker, its stream stays at one.
class ClusterLiveFallbackTest < Minitest::Test
  include ClusterCase

  APP = <<~RUBY
    require "heddle"

    class Counter < Heddle::Live::Page
      template text: "<%= @count %>"
      event :add, by: Integer
      def mount(_params) = @count = 0
      def add(by:) = @count += by
    end

    live = Heddle::Live.new(Counter, secret: "s" * 32)
    run do |env|
      status, headers, body = live.call(env)
      [status, { **headers, "x-worker" => $$.to_s }, body]
    end
  RUBY

  def setup
    super
    write("config.ru", APP)
  end

  # @return [String] the worker that has answered
  def post(message)
    answer = Net::HTTP.post(served.at("/live"), JSON.generate(message), "x-stream-key" => @key)

    assert_equal "204", answer.code
    answer["x-worker"]
  end

  def patch = JSON.parse(@stream.event.fetch("data"))

  def test_a_message_sent_to_another_worker_reaches_the_page
    serve
    socket = TCPSocket.new(served.uri.host, served.uri.port)
    @stream = EventStreamClient.new(socket, "/live", "Accept: text/event-stream\r\n")
    own = @stream.head[/^x-worker: (\d+)/, 1]
    @key = @stream.event.fetch("data")
    post(token: served.get("/").body[/data-live="([^"]+)"/, 1])

    assert_equal [[0, 0]], patch["pieces"]
    count = 0
    wait_until("all messages come to one worker") do
      post(1)
      worker = post(event: "add", values: { by: "1" })

      assert_equal [{ "0" => count += 1 }], patch
      worker != own
    end
  ensure
    @stream&.close
  end
end
