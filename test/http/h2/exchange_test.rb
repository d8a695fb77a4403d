# frozen_string_literal: true

# test: sanitize
# test: smoke

require_relative "support/conversations"

# Who may do what with an exchange over HTTP/2.
class H2ExchangeTest < Minitest::Test
  include H2Conversations

  def test_content_without_a_head_is_refused_and_does_not_wait
    error = nil
    serve(frames("HEADERS es+eh 1 get"), open: true) do |exchange|
      error = assert_raises(IOError) { exchange.write("early") }
      reply(exchange, "then")
    end

    assert_equal "content can be written only after a response's head and before its end", error.message
    assert_includes conversation.output, "then"
  end

  def test_content_behind_a_head_without_any_is_refused_and_does_not_wait
    serve(frames("HEADERS es+eh 1 get"), open: true) do |exchange|
      exchange.write_head(204, "", true)

      assert_raises(IOError) { exchange.write("late") }
    end
  end

  def test_a_second_head_is_refused_in_words_of_its_own
    serve(frames("HEADERS es+eh 1 get"), open: true) do |exchange|
      exchange.write_head(200, "", false)
      error = assert_raises(Heddle::HTTP::InvalidResponseError) { exchange.write_head(200, "", false) }

      assert_match(/\Athe response has a head already/, error.message)
    end
  end

  def test_a_refused_head_request_is_answered_without_content
    sent = frames_for("HEADERS es+eh 1 head a=b c=d", "HEADERS es+eh 3 get a=b c=d", header_count: 1)

    assert_equal [1, 3], streams_of(sent, "HEADERS")
    assert_equal [3], streams_of(sent, "DATA")
    assert_equal [1, 3], sent.select(&:end_stream?).map(&:stream).sort
  end

  def test_all_waiting_requests_of_a_connection_may_be_refused_at_once
    assert_equal 99, refuse_waiting(100).rejected
  end

  def test_the_sockets_may_be_closed_when_waiting_requests_are_refused
    [2, 4].each do |count|
      sockets = nil
      engine = refuse_waiting(count, on_rejection: ->(*) { sockets.close }) { |made| sockets = made }

      assert_equal 1, engine.rejected
      assert_predicate sockets, :closed?
    end
  end

  def test_a_rejection_of_a_waiting_request_says_that_there_is_no_room
    rejections = []
    refuse_waiting(3, on_rejection: ->(_, status, _, by_admission) { rejections << [status, by_admission] })

    assert_equal [[503, true], [503, true]], rejections
  end

  def test_unread_streamed_bodies_do_not_stop_other_bodies_of_the_connection
    paths = Array.new(17) { |i| "/#{(2 * i) + 1}" }
    last_begun = Thread::Queue.new # for longer than the client is patient
    answer = lambda do |exchange|
      exchange.target == paths.last ? last_begun.close : last_begun.pop(timeout: 120)
      reply(exchange, read_all(exchange.body).bytesize.to_s)
    end
    uploads = paths.flat_map do |path|
      id = path.delete("/")
      ["HEADERS eh #{id} :method=POST :scheme=http :authority=a :path=#{path}",
       *Array.new(4) { |i| %(DATA #{i == 3 ? "es" : "-"} #{id} "#{"x" * 16_384}") }]
    end
    sent = frames_of(serve(frames(*uploads), open: true, stream_bodies: true, body_buffer: 1, &answer))

    assert_empty sent.filter_map(&:error)
    assert_equal ["65536"] * 17, sent.select { |frame| frame.type == "DATA" && frame.payload != "" }.map(&:payload)
  end

  def test_reading_a_body_raises_client_gone_error_after_the_connection_has_failed
    begun = error = nil
    answer = lambda do |exchange|
      begun = true
      Fiber.scheduler.yield until exchange.closed?
      error = assert_raises(IOError) { exchange.body.read }
    end
    converse(answer, kind: :tcp, stream_bodies: true) do |conversation|
      conversation.say(frames("HEADERS eh 1 post"))
      conversation.await { begun }
      conversation.vanish
      conversation.await { error }
    end

    assert_instance_of Heddle::ClientGoneError, error
  end

  # The client has reset streams, so that the resets of abandoned requests exceed the limit while one is incomplete.
  def test_abandoned_requests_may_exceed_the_limit_of_resets
    reset = Array.new(50) { |i| ["HEADERS eh #{(2 * i) + 3} post", "RST_STREAM - #{(2 * i) + 3} #8"] }
    abandoned = Array.new(80) { |i| "HEADERS es+eh #{(2 * i) + 103} get" }
    sent = converse(->(_) {}) do |conversation|
      conversation.say(frames("HEADERS eh 1 post", *reset.flatten, *abandoned))
      conversation.await_end
      frames_of(conversation.output)
    end

    assert_equal ["GOAWAY"], sent.select { |frame| frame.error == "ENHANCE_YOUR_CALM" }.map(&:type)
  end

  # One request runs, and another one fills the queue. When the first request of a connection in between is taken, there
  # is no room for its next ones.
  # @param count [Integer] of the requests of that connection
  # @yieldparam sockets [Heddle::Net::Sockets]
  # @return [Heddle::HTTP::Engine]
  def refuse_waiting(count, **)
    engine = Heddle::HTTP::Engine.new(**)
    scheduled do |scheduler|
      gate = Thread::Queue.new
      sockets = Heddle::Net::Sockets.new(scheduler, service: engine) { gate.pop }
      yield sockets if block_given?
      sockets.limit = 1
      sockets.queue(2, nil)
      requests = Array.new(count) { |i| "HEADERS es+eh #{(2 * i) + 1} get" }
      clients = [[GET, 1], [frames(*requests), count], [GET, 1]].map { |one| connect(sockets, engine, *one) }
      sockets.queue(1, nil)
      gate.close
      clients.each(&:read)
    ensure
      sockets.close
      clients&.each(&:close)
    end
    engine
  end

  def connect(sockets, engine, bytes, count)
    mine, client = UNIXSocket.pair
    sockets.adopt(mine)
    mine.close
    expected = engine.requests + count
    client.write(bytes)
    client.close_write
    Fiber.scheduler.yield until engine.requests == expected
    client
  end

  def streams_of(frames, type) = frames.select { |frame| frame.type == type }.map(&:stream)
end
