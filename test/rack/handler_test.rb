# frozen_string_literal: true

# test: each mode
# test: smoke

require "test_helper"
require_relative "rack_helpers"

class HandlerTest < Minitest::Test
  include RackHelpers

  def test_an_application_that_raises_is_answered_with_an_error_and_logged
    [RuntimeError.new("no"), NotImplementedError.new("no"), SystemStackError.new("deep"),
     LoadError.new("no"), Class.new(Exception).new("no")].each do |error|
      output = serve(->(_env) { raise error }, GET + GET)
      status, headers, content = parts(output)

      assert_equal ["HTTP/1.1 500 Internal Server Error", "close"], [status, headers["connection"]]
      assert_match(/the application failed/, content)
      refute_match(/deep|RuntimeError/, content)
      assert_equal [error], log.failures
      refute_predicate self, :kept?
    end
  end

  def test_head_gets_an_error_without_content
    output = serve(->(_env) { raise "no" }, HEAD)

    assert_operator output, :end_with?, "\r\n\r\n"
  end

  def test_an_invalid_response_is_an_error
    [nil, [], [200, {}], "x", [200, nil, []], [200, {}, nil], [200, {}, 5], [200, {}, [nil]], [200, {}, [1]],
     ["x", {}, []],
     [200, { "a" => "b\nc" }, []], [200, { "a b" => "c" }, []], [99, {}, []], [200, { "content-length" => "x" }, []],
     [101, {}, 5]].each do |returned|
      output = serve(->(_env) { returned }, lint: false)

      assert_operator output, :start_with?, "HTTP/1.1 500 ", returned.inspect
      assert_equal [Heddle::HTTP::InvalidResponseError], log.failures.map(&:class), returned.inspect
    end
  end

  def test_an_invalid_header_is_not_sent
    output = serve(answer(200, { "x" => "a\r\nset-cookie: evil=1" }, ["b"]), lint: false)

    refute_includes output, "evil"
    assert_operator output, :start_with?, "HTTP/1.1 500 "
  end

  def test_bodies_are_closed_whatever_happens
    body = Class.new do
      attr_reader :closed

      def each = raise("no")
      def close = @closed = true
    end
    [[200, {}], [200, { "x" => "\n" }], [204, {}]].each do |status, headers|
      serve(answer(status, headers, one = body.new), lint: false)

      assert one.closed
    end
    serve(answer(200, {}, one = body.new), HEAD, lint: false)

    assert one.closed
  end

  # RSpec::Mocks::MockExpectationError, Minitest::Assertion.
  def test_an_exception_that_is_not_a_standard_error_is_logged_where_a_body_is_closed_or_a_callback_is_called
    failure = Class.new(Exception)
    body = Class.new(Array) { define_method(:close) { raise failure, "closing" } }.new(["x"])
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { raise failure, "finished" }
      [200, {}, body]
    end
    output = serve(app, lint: false)

    assert_operator output, :end_with?, "\r\n\r\nx"
    assert_equal %w[closing finished], log.failures.map(&:message)
  end

  def test_a_close_that_raises_is_logged_and_the_response_stands
    body = Class.new(Array) { def close = raise("late") }.new(["x"])
    output = serve(answer(200, {}, body), lint: false)

    assert_equal "x", parts(output)[2]
    assert_equal ["late"], log.failures.map(&:message)
  end

  def test_response_finished_is_called_in_reverse_order_after_the_response
    calls = []
    app = lambda do |env|
      2.times do |number|
        env["rack.response_finished"] << lambda { |*args|
          await_output("body")
          calls << [number, *args]
        }
      end
      [200, { "x" => "y" }, ["body"]]
    end
    serve(app)

    assert_equal [1, 0], calls.map(&:first)
    _, env, status, headers, error = calls.first

    assert_equal ["GET", 200, "y", nil], [env["REQUEST_METHOD"], status, headers["x"], error]
  end

  def test_response_finished_gets_errors_and_its_own_errors_are_contained
    errors = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(_, status, headers, error) { errors << [status, headers, error.message] }
      env["rack.response_finished"] << ->(*) { raise "callback" }
      raise "app"
    end
    serve(app)

    assert_equal [[500, {}, "app"]], errors
    assert_equal %w[app callback], log.failures.map(&:message)
  end

  def test_after_reply_may_be_any_object_with_a_call_without_arguments
    calls = []
    callback = Object.new
    callback.define_singleton_method(:call) { calls << :after_reply }
    app = lambda do |env|
      env["rack.after_reply"] << callback
      [200, {}, ["body"]]
    end
    serve(app)

    assert_equal [:after_reply], calls
    assert_empty log.failures
  end

  def test_after_reply_is_called_in_its_order_after_the_response_and_its_errors_are_contained
    calls = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(*) { calls << :finished }
      env["rack.after_reply"] << lambda {
        await_output("body")
        calls << :first
      }
      env["rack.after_reply"] << -> { raise "callback" }
      env["rack.after_reply"] << -> { calls << :last }
      [200, {}, ["body"]]
    end
    serve(app)

    assert_equal %i[finished first last], calls
    assert_equal %w[callback], log.failures.map(&:message)
  end

  def test_response_finished_gets_an_error_when_the_client_left
    errors = []
    app = lambda do |env|
      env["rack.response_finished"] << ->(_, _, _, error) { errors << error }
      conversation.vanish
      [200, {}, ["x"]]
    end
    converse_with(app) { |conversation| conversation.say(GET) && conversation.await { !conversation.open? } }

    assert_equal [Heddle::ClientGoneError], errors.map(&:class)
    assert_equal [1, 0], [log.gone.size, log.failures.size]
  end

  def test_cancelling_passes_through_and_closes
    output = serve(->(_env) { raise Heddle::Cancelled }, lint: false)

    assert_operator output, :start_with?, "HTTP/1.1 503 Service Unavailable\r\n"
    assert_includes output, "connection: close\r\n"
    assert_equal [[Heddle::Cancelled], false], [conversation.raised.map(&:class), kept?]
  end

  def test_early_hints
    app = lambda do |env|
      env["rack.early_hints"].call({ "link" => "</a.css>; rel=preload" })
      [200, {}, ["x"]]
    end
    output = serve(app)

    assert_operator output, :start_with?,
                    "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\nHTTP/1.1 200 OK\r\n"
  end

  def test_errors_are_the_servers
    serve(->(env) { env["rack.errors"].puts("hello") || [204, {}, []] })

    assert_equal "hello\n", errors.string
  end

  def test_the_connection_serves_the_next_request_after_an_unread_body
    output = serve(answer(200, {}, ["x"]), "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n12345#{GET}")

    assert_equal 2, output.scan("HTTP/1.1 200").size
  end
end
