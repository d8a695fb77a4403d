# frozen_string_literal: true

require "test_helper"
require_relative "requests"
require_relative "server"

# What the server has to do with bytes on a socket, case by case. Each case is a test that carries its name; one that is
# small enough is delivered twice, at once and byte by byte.
module Conformance
  # Larger cases are only delivered at once.
  BYTEWISE = 400
  PROBE = "GET /probe HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n"

  def self.included(base)
    base.include(Requests)
    base.extend(Cases, Requests)
  end

  # Words for the body of a test class.
  module Cases
    # Options of the file's server; `lint: false` takes Rack::Lint away.
    def served_with(**options) = @options = options

    # An application for one path. Any other path is answered with what the request was.
    def at(path, &app) = routes[path] = app

    # The server of this file.
    def server
      @server ||= Server.new(application, **under_test, **(@options || {}))
                        .tap { |server| Minitest.after_run { server.stop } }
    end

    # The bytes are answered with this error, in a form that a person can read, and the connection ends.
    # @param called [Boolean] whether the application may be called
    # @param before [Integer] answers with 200 that come first
    # @param options [Hash] of {#conform}
    def refuses(name, status, bytes, called: false, before: 0, **options)
      conform("refuses #{name}", bytes, **options) do |client|
        before.times { assert_equal 200, client.answer.status }

        assert_rejection(status, client.answer)
        assert_nil client.answer, "nothing follows the rejection"
        assert_equal before, calls, "calls of the application" unless called
      end
    end

    # The bytes are answered with 200 by the application, which sees this in them.
    # @param env [Hash] keys of the env and their values, nil for those that are not there
    # @param body [String, nil]
    # @param closes [Boolean] whether the connection ends after the answer; else it serves a further request
    # @param options [Hash] of {#conform}
    def accepts(name, bytes, env: {}, body: nil, closes: false, **options)
      conform("accepts #{name}", bytes, **options) do |client|
        answer = client.answer

        assert_seen(answer, env, body)
        closes ? assert_ended(client, answer) : assert_goes_on(client, answer)
      end
    end

    # The bytes are sent; the block says what has to come.
    # @param errors [Regexp, nil] what the server says went wrong; it says nothing otherwise
    # @param pending [String, nil] why the case fails today: it is skipped by name until it passes
    # @param bytewise [Boolean] whether the bytes are delivered one by one, too
    # @yieldparam client [Client]
    def conform(name, bytes = "", errors: nil, pending: nil, bytewise: bytes.bytesize.between?(2, BYTEWISE), &check)
      define_case(name) do
        unless_pending(pending) do
          deliver(bytes, :send_at_once, errors, check)
          deliver(bytes, :send_byte_by_byte, errors, check) if bytewise
        end
      end
    end

    private

    def define_case(name, &)
      method = :"test_#{name.gsub(/\W+/, "_").gsub(/\A_|_\z/, "")}"
      raise ArgumentError, "two cases are called #{name}" if method_defined?(method)

      define_method(method, &)
    end

    def under_test = { selector: ENV["HEDDLE_SELECTOR"]&.to_sym, **Heddle::TestHelpers.mode_under_test }

    def routes = @routes ||= {}

    def application
      routes = self.routes
      lambda do |env|
        app = routes[env["PATH_INFO"]]
        next app.call(env) if app

        seen = Marshal.dump([env.select { |_, value| value.is_a?(String) }, env["rack.input"]&.read.to_s])
        [200, { "content-type" => "application/octet-stream" }, [seen]]
      end
    end
  end

  private

  def deliver(bytes, way, errors, check)
    server = self.class.server
    said = server.errors.string.bytesize
    @calls_before = server.calls
    client = server.connect
    client.public_send(way, bytes.b)
    instance_exec(client, &check)
    errors ? assert_said(errors, server, said) : assert_empty(server.errors.string.byteslice(said..))
  rescue Malformed, SystemCallError => e
    flunk "#{way}: #{e.class}: #{e.message}"
  ensure
    client&.close
  end

  # What goes wrong after the answer is said when its client has it already.
  def assert_said(errors, server, start)
    limit = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Server::PATIENCE
    said = nil
    loop do
      said = server.errors.string.byteslice(start..).scrub
      break if errors.match?(said) || Process.clock_gettime(Process::CLOCK_MONOTONIC) > limit

      sleep 0.001
    end

    assert_match(errors, said)
  end

  # How often the application was called in this delivery.
  def calls = self.class.server.calls - @calls_before

  def unless_pending(reason)
    return yield unless reason

    begin
      yield
    rescue Minitest::Assertion => e
      skip "pending, #{reason}: #{e.message.lines.first.chomp}"
    end
    flunk "passes now: take `pending: #{reason.inspect}` away"
  end

  # An error as every one has to be: final, last, and in words.
  def assert_rejection(status, answer, content: true)
    assert answer, "the connection ended without an answer"
    assert_equal status, answer.status, answer.content
    assert_predicate answer, :closes?
    assert answer.complete
    assert_equal "text/plain; charset=utf-8", answer["content-type"]
    assert_match(/\A#{status} [A-Z][\w ]+: .+\.\n\z/, answer.content) if content
  end

  def assert_seen(answer, expected, body)
    env, read = seen(answer)
    expected.each do |key, value|
      value.nil? ? refute_includes(env, key) : assert_equal(value.b, env[key]&.b, key)
    end
    assert_equal body.b, read if body
  end

  # @return [Array(Hash, String)] the strings of the env, and the body, as the application saw them
  def seen(answer)
    assert_equal 200, answer&.status, answer&.content
    Marshal.load(answer.content) # rubocop:disable Security/MarshalLoad -- this file has written it
  end

  def assert_goes_on(client, answer)
    refute_predicate answer, :closes?
    client.send_at_once(PROBE)
    answer = client.answer

    assert_equal 200, answer&.status, "the next request"
    assert_seen(answer, { "PATH_INFO" => "/probe" }, "")
    assert_ended(client, answer)
  end

  def assert_ended(client, answer)
    assert_predicate answer, :closes?
    assert_nil client.answer, "the connection goes on"
  end
end
