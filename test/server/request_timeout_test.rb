# frozen_string_literal: true

require "test_helper"
require_relative "server_helpers"

# A request that takes too long is ended, and no other.
class RequestTimeoutTest < Minitest::Test
  include ServerHelpers

  def test_a_request_that_waits_too_long_gets_503_and_is_logged
    cleaned_up = nil
    app = lambda do |env|
      sleep if env["PATH_INFO"] == "/slow"
      [200, { "content-type" => "text/plain" }, ["in time"]]
    ensure
      sleep 0.001
      cleaned_up = env["PATH_INFO"]
    end
    answers = nil
    serving(app, request_timeout: 0.3) { answers = [get("/slow"), get("/quick")] }

    assert_equal %w[503 200], answers.map(&:code)
    assert_equal ["The request took longer than 0.3 s.\n", "in time"], answers.map(&:body)
    assert_equal "/quick", cleaned_up
    assert_match(%r{GET /slow exceeded request_timeout \(0.3 s\), at #{__FILE__}:\d+:in}, output.string)
  end

  def test_other_requests_are_not_affected_by_a_timeout
    begun = Thread::Queue.new
    app = lambda do |env|
      env["PATH_INFO"] == "/slow" ? begun << true && sleep : begun.pop
      [200, { "content-type" => "text/plain" }, ["let in"]]
    end
    serving(app, request_timeout: 1) do
      other, slow = %w[/other /slow].map { |path| connect.tap { |one| one.write("GET #{path} HTTP/1.0\r\n\r\n") } }

      assert_operator read_all(other), :end_with?, "let in"
      assert_operator read_all(slow), :start_with?, "HTTP/1.1 503"
      [other, slow].each(&:close)
    end
  end

  def test_a_limit_of_the_applications_own_is_its_own_failure
    app = ->(_) { Heddle.timeout(0.01) { sleep } }
    serving(app, request_timeout: 30) { assert_equal "500", get("/").code }

    refute_includes output.string, "given up"
    assert_includes errors.string, "TimeoutError"
  end

  # What the application has answered may be made of what the cancelled tasks have not found.
  def test_a_request_whose_tasks_take_too_long_is_answered_with_503_and_its_body_closed
    closed = false
    body = Struct.new(:each).new(nil)
    body.define_singleton_method(:close) { closed = true }
    app = lambda do |_|
      Heddle.async { sleep }
      [200, {}, body]
    end
    serving(app, request_timeout: 0.05) { assert_equal "503", get("/").code }

    assert closed
    assert_includes output.string, "GET / exceeded request_timeout (0.05 s)\n"
  end

  def test_an_answer_that_has_begun_may_take_its_time
    body = ->(stream) { sleep 0.4 and stream.write("late") and stream.close }
    serving(->(_) { [200, {}, body] }, request_timeout: 0.3) { assert_equal "late", get("/").body }
  end

  def test_request_timeout_is_rejected_in_modes_that_cannot_cancel
    error = assert_raises(Heddle::Server::ConfigurationError) do
      Heddle::Server::Configuration.new(mode: :thread, request_timeout: 1)
    end

    assert_includes error.message, "mode :fiber"
  end
end
