# frozen_string_literal: true

# test: sanitize

require "heddle/rack"
require_relative "../support/http_case"

# Who may do what with an exchange, and until when.
class H1ExchangeLifeTest < Minitest::Test
  include Heddle::TestHelpers::HTTPCase

  # What an exchange says once its answer is complete, and still once it is over.
  ALWAYS = { remote_address: "unix", status: 200, sent: 1, complete?: true, closed?: true, hijacked?: false }.freeze
  # … and what it says of its request until the block has ended.
  WHILE_SERVED = { method: "GET", target: "/", minor: 1, body?: false, keep_alive?: true, head?: false,
                   take_body: nil }.freeze
  OF_THE_CONNECTION = { write: ["x"], write_chunk: ["x"], drain: [], finish: [true, 200] }.freeze

  def test_an_answered_exchange_has_no_connection_any_more
    given = nil
    serve(GET, open: true) do |exchange|
      reply(given = exchange, "a")

      assert_equal ALWAYS.merge(WHILE_SERVED), ALWAYS.merge(WHILE_SERVED).to_h { |name, _| [name, exchange.send(name)] }
      assert_operator exchange.age, :>=, 0
      assert_ended(exchange)
      refute exchange.reject(500, "late")
    end

    assert_equal ALWAYS, ALWAYS.to_h { |name, _| [name, given.send(name)] }
    WHILE_SERVED.each_key do |name|
      assert_equal "this request has ended", assert_raises(IOError, name.to_s) { given.send(name) }.message
    end
    assert_raises(IOError) { given.reject(500, "late") }
    assert_ended(given)
    assert_equal [[200], true], [statuses(conversation.output), kept?]
  end

  def assert_ended(exchange)
    OF_THE_CONNECTION.each do |name, arguments|
      error = assert_raises(Heddle::ClientGoneError, name) { exchange.send(name, *arguments) }

      assert_match(/the connection was closed before the client had the response/, error.message)
    end
    [[:fill, 1], [:decode], [:received?], [:expects?], [:buffered?], [:detach], [:readpartial, 1]].each do |call|
      assert_raises(IOError, call.inspect) { exchange.send(*call) }
    end
    assert_nil exchange.close
  end

  def test_an_exchange_that_is_left_unanswered_is_closed_with_what_was_written
    output = serve(GET, open: true) { |exchange| exchange.write("some") }

    assert_equal ["some", false], [output, kept?]
  end

  def test_a_closed_exchange_sends_what_was_written_and_no_more
    output = serve(GET + GET, open: true) do |exchange|
      exchange.write(%w[so me])
      2.times { exchange.close }
    end

    assert_equal ["some", false, 1], [output, kept?, conversation.engine.requests]
  end

  def test_written_output_leaves_at_the_beginning_of_the_next_turn
    serve(GET, kind: :packets) do |exchange|
      3.times { |n| exchange.write(n.to_s) }
      Fiber.scheduler.yield
      Fiber.scheduler.yield

      assert_equal "012", conversation.client.read_nonblock(10)
      exchange.close
    end
  end

  def test_empty_strings_and_lists_can_be_written
    output = serve(GET) do |exchange|
      exchange.write("")
      exchange.write([])
      exchange.write(["", "a", ""])
      exchange.drain
      exchange.close
    end

    assert_equal "a", output
  end

  def test_a_list_with_a_non_string_is_rejected_as_a_whole
    output = serve(GET) do |exchange|
      [["a", nil], nil, 1, [:a]].each { |data| assert_raises(TypeError) { exchange.write(data) } }
      assert_raises(TypeError) { exchange.write_chunk(nil) }
      exchange.close
    end

    assert_equal "", output
  end

  # A Connection's way of being given back knows nothing of answers.
  def test_an_exchange_is_released_by_its_response_only
    serve(GET) { |exchange| assert_raises(NoMethodError) { exchange.idle! } }
  end

  def test_tasks_of_the_request_may_read_and_write
    output = serve(post(100_000), "x" * 100_000, open: true, stream_bodies: true) do |exchange|
      read = nil
      [Fiber.schedule { read = read_all(exchange.body).bytesize },
       Fiber.schedule { reply(exchange, "a") if conversation.await { read } || true }]
        .each { |fiber| conversation.await { !fiber.alive? } }

      assert_equal 100_000, read
    end

    assert_equal [%w[a], true], [bodies(output), kept?]
  end

  def test_two_fibers_cannot_wait_for_the_same_direction
    go = false
    answer = lambda do |exchange|
      Fiber.schedule do
        exchange.write("x" * 1_000_000)
        go = true
      end
      error = assert_raises(IOError) { exchange.write("y") }

      assert_match(/another fiber is writing/, error.message)
      conversation.read
      conversation.await { go }
      exchange.write("z")
      exchange.close
    end
    converse(answer, reads: false) do |conversation|
      conversation.say(GET)
      conversation.await_end
    end

    assert_equal ["x" * 1_000_000, "z"], [conversation.output.chop, conversation.output[-1]]
    serve(post(100_000), open: true, stream_bodies: true) do |exchange|
      reader = Fiber.schedule { assert_raises(IOError) { exchange.fill(nil) } }
      assert_match(/another fiber is reading/, assert_raises(IOError) { exchange.fill(nil) }.message)
      exchange.close
      conversation.await { !reader.alive? }
    end
  end

  def test_a_waiting_fiber_is_woken_when_another_ends_the_exchange
    %i[close finish].each do |ending|
      error = nil
      serve(post(100_000), open: true, stream_bodies: true) do |exchange|
        body = exchange.body
        reader = Fiber.schedule { error = assert_raises(IOError) { body.read } }
        ending == :close ? exchange.close : exchange.finish(false, 200)
        conversation.await { !reader.alive? }
      end

      assert_match(/the connection was closed while a fiber waited/, error.message)
    end
  end

  def test_a_body_that_outlives_its_request_reads_nothing_of_the_next
    body = nil
    serve(post(3, "abc"), GET, open: true) do |exchange|
      body ||= exchange.body
      reply(exchange, "")
    end

    assert_raises(IOError) { read_all(body) }
  end

  def test_calls_from_other_threads_raise
    serve(GET) do |exchange|
      errors = Thread.new do
        [[:write, "x"], [:write_chunk, "x"], [:drain], [:finish, true, 200], [:reject, 500, "no"], [:close], [:fill, 1],
         [:decode]].map do |call|
          exchange.send(*call)
          nil
        rescue ThreadError => e
          e.message
        end
      end.value

      assert_equal [true], errors.map { |message| message&.include?("another thread") }.uniq, errors.inspect
      refute exchange.chunk("x")
      assert_equal "GET", exchange.method
      reply(exchange, "a")
    end
  end

  def test_a_failed_deferred_write_wakes_the_reader
    error = nil
    answer = lambda do |exchange|
      exchange.write("x")
      conversation.vanish
      error = assert_raises(Heddle::ClientGoneError) { exchange.body.read }
    end
    converse(answer, stream_bodies: true) do |conversation|
      conversation.say(post(100_000))
      conversation.await { !conversation.open? }
    end

    assert_kind_of Heddle::ClientGoneError, error
  end

  # What the application calls while its answer is read may end the connection.
  def test_an_answer_whose_objects_end_the_connection
    given = nil
    status = Object.new
    status.define_singleton_method(:to_i) { given.close || 200 }
    value = Object.new
    value.define_singleton_method(:to_s) { given.close || "x" }
    [[status, {}, ["a"]], [200, { "x" => value }, ["a"]]].each do |answer|
      output = serve(GET) do |exchange|
        given = exchange
        begin
          refute Heddle::Rack.respond(exchange, answer, false)
        rescue Heddle::ClientGoneError => e
          assert_match(/closed/, e.message)
        end
      end

      assert_equal "", output
    end
  end

  def test_the_rejection_callback_may_close_the_sockets
    scheduled do |scheduler|
      sockets = status = by_admission = nil
      told = lambda do |_, *rest|
        status, _, by_admission = rest
        sockets.close
      end
      engine = Heddle::HTTP::Engine.new(on_rejection: told)
      sockets = Heddle::Net::Sockets.new(scheduler, service: engine) { flunk }
      mine, client = UNIXSocket.pair
      sockets.adopt(mine)
      mine.close
      client.write("no request\r\n\r\n")

      assert_nil client.read(1)
      assert_predicate sockets, :closed?
      assert_equal [1, 400, false], [engine.rejected, status, by_admission]
    ensure
      client.close
    end
  end

  def test_an_exception_in_the_rejection_callback_does_not_prevent_the_response
    scheduled do |scheduler|
      engine = Heddle::HTTP::Engine.new(on_rejection: ->(*) { raise "no log" })
      sockets = Heddle::Net::Sockets.new(scheduler, service: engine) { flunk }
      mine, client = UNIXSocket.pair
      sockets.adopt(mine)
      mine.close
      client.write("no request\r\n\r\n")

      assert_operator client.read, :start_with?, "HTTP/1.1 400 "
    ensure
      sockets.close
      client.close
    end
  end

  def test_requests_that_are_being_read_outlive_a_shutdown_of_idle_connections
    converse(->(exchange) { reply(exchange, "a") }) do |conversation|
      conversation.say(GET[0, 10])
      conversation.engine.drain
      conversation.sockets.shutdown_idle

      assert_predicate conversation, :open?
      conversation.say(GET[10..])
      conversation.await_end
      conversation.await { !conversation.open? }
    end

    assert_equal [200], statuses(conversation.output)
    converse(->(_) { flunk }) do |conversation|
      conversation.settle
      conversation.sockets.shutdown_idle

      refute_predicate conversation, :open?
    end
  end
end

# The same where there is no epoll.
class H1ExchangeLifeWithSelectorSetTest < H1ExchangeLifeTest
  def set = :selector
end
