# frozen_string_literal: true

# test: once

require "test_helper"
require "heddle"
require "heddle/net/connector"
require "heddle/net/datagram_socket"
require "heddle/http/client"
require "heddle/event_stream"
require "heddle/live"
require "heddle/web_socket"

# What a program passes is checked by one rule, and the messages say what is allowed.
class ArgumentsTest < Minitest::Test
  GOOD = [1, 0.5, Rational(1, 3)].freeze
  BAD = [0, -1, 0.0, Float::INFINITY, Float::NAN, "5", :soon].freeze

  URL = "http://localhost:1"
  # Calls with a wrong argument, and what the errors say. Without the checks, they raise a NoMethodError, wait for ever,
  # or crash OpenSSL.
  REFUSED = {
    -> { Heddle.map(5) {} } => "the list is 5, but must be an object with `each`",
    -> { Heddle.map("ab") {} } => 'the list is "ab", but must be an object with `each`',
    -> { Heddle.map(1..) {} } => "the list is 1.., but must be finite unless limit: is given",
    -> { Heddle.race(5) {} } => "the list is 5, but must be an Enumerable",
    -> { Heddle.race([5]) } => "a contender without a block is 5, but must be an object with `call`",
    -> { Heddle.race([nil]) } => "a contender without a block is nil, but must be an object with `call`",
    -> { Heddle.race([5], ignore: :all) {} } => "ignore: is :all, but must be a list of classes of errors",
    -> { Heddle.enable(5) } => /\Aunknown protection :"5" \(known: /,
    -> { Heddle.disable(5) } => /\Aunknown protection :"5" \(known: /,
    -> { Heddle.task_tree(lines: "5") } => 'lines: is "5", but must be an Integer of at least 0',
    -> { Heddle::Channel.select(5) } => "the list of channels is [5], but must be Heddle::Channel objects",
    -> { Heddle::Promise.new.reject(5) } => "the error is 5, but must be an exception, its class or a String",
    -> { Heddle::HTTP.get(URL, headers: "A: b") } => 'headers: is "A: b", but must be a Hash',
    -> { Heddle::HTTP::Client.new(URL, headers: 5) } => "headers: is 5, but must be a Hash",
    -> { Heddle::HTTP.get(URL, query: "a=b") } => 'query: is "a=b", but must be a Hash',
    -> { Heddle::HTTP::Client.new.post(URL, form: "a=b") } => 'form: is "a=b", but must be a Hash',
    -> { Heddle::HTTP::Client.new.post(URL, multipart: 5) } => "multipart: is 5, but must be a Hash",
    -> { Heddle::HTTP::Client.new.post(URL, body: { a: 1 }) } => /\Abody: is a Hash, but must be a String, an IO or /,
    -> { Heddle::HTTP::Client.new.request(nil, URL) } => "method nil is not a token (RFC 9110, 5.6.2)",
    -> { Heddle::HTTP::Client.new(URL, tls: true) } => "tls: is true, but must be a Hash",
    -> { Heddle::Net::TLS::ClientContext.new(protocols: [5]) } => "a protocol is 5, but must be a String",
    -> { Heddle::Net.connect(nil) } => /\Aendpoint nil must have the form host:port, /,
    -> { Heddle::Net.connect("localhost:1", allow: 5) } => "allow: is 5, but must be an object with `call`, or nil",
    -> { Heddle::Net::DatagramSocket.bind(nil, 0) } => /\A"" is not an IP address: /,
    -> { Heddle::Net::Resolver.new.addresses(nil) } => "the host is nil, but must be a String",
    -> { Heddle::Net::Resolver.new.records(5, :A) } => "the name is 5, but must be a String",
    -> { Heddle::Net::Resolver.new(cache_size: "5") } => 'cache_size: is "5", but must be an Integer of at least 0',
    -> { Heddle::Net::Resolver.new(clock: 5) } => "clock: is 5, but must be an object with `call`, or nil",
    -> { Heddle::Net::DNS.records(5, :A) } => "the name is 5, but must be a String",
    -> { Heddle::Net::DNS.serve(5) {} } => /\A5 is not an address to listen on: /,
    -> { Heddle::Net::Networks.new(5) } => /\A5 is not a network: /,
    -> { Heddle::Net::DNS::Record.of("a", :TXT, 1, 5) } => /\A5 is not data for a TXT record/,
    -> { Heddle::NativeLibraries.reentrant = 5 } => /but is 5\z/,
    -> { Heddle::EventStream.new("a", retry_after: -1) } => /\Aretry_after: is -1, but must be 0 to 86400 seconds/,
    -> { Heddle::EventStream.response("a", headers: "A: b") } => 'headers: is "A: b", but must be a Hash',
    -> { Heddle::Live.new(nil) } => "the page is nil, but must be a subclass of Heddle::Live::Page",
    -> { Class.new(Heddle::Live::Page) { template text: 5 } } => "text: is 5, but must be a String",
    -> { Heddle::Live.new(Heddle::Live::Page, secret: 5) } => "secret: is 5, but must be a String",
    -> { Heddle::WebSocket.upgrade({}, nil) } => /\Athe handler is nil, but must be an object with callbacks/,
    -> { Heddle::WebSocket.connect("ws://a", message_limit: "5") } =>
      'message_limit: is "5", but must be an Integer of at least 1',
    -> { Heddle::WebSocket.connect("ws://a", ping: 0) } => /\Aping: is 0, but must be a positive number of seconds/
  }.freeze

  REFUSED.each_with_index do |(call, message), number|
    define_method(:"test_wrong_argument_#{number}_is_named") do
      error = assert_raises(ArgumentError) { Heddle.run { instance_exec(&call) } }

      assert_operator message, :===, error.message, error.message
    end
  end

  def test_finite_numbers_above_zero_are_returned
    GOOD.each do |good|
      assert_same good, Heddle::Arguments.interval(good)
      assert_same good, Heddle::Arguments.limit("timeout:", good)
    end
    assert_nil Heddle::Arguments.limit("timeout:", nil)
  end

  def test_invalid_intervals_are_rejected
    [nil, *BAD].each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.interval(bad) }

      assert_equal "the interval is #{bad.inspect}, but must be a positive number of seconds", error.message
    end
  end

  def test_invalid_time_limits_are_rejected
    BAD.each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.limit("timeout: read", bad) }

      assert_equal "timeout: read is #{bad.inspect}, but must be a positive number of seconds, or nil", error.message
    end
  end

  def test_time_limits_of_waits_may_be_over_or_without_end
    [nil, 0, -1, 0.5, Rational(1, 3), Float::INFINITY].each do |good|
      good.nil? ? assert_nil(Heddle::Arguments.wait("x", good)) : assert_same(good, Heddle::Arguments.wait("x", good))
    end
    [Float::NAN, "5", :soon, [1]].each do |bad|
      error = assert_raises(ArgumentError) { Heddle::Arguments.wait("timeout:", bad) }

      assert_equal "timeout: is #{bad.inspect}, but must be a number of seconds, or nil", error.message
    end
  end

  def test_the_message_names_the_time_limit
    { timeout: "timeout: is 0, ", tls_timeout: "tls_timeout: is 0, " }.each do |name, beginning|
      error = assert_raises(ArgumentError) { Heddle::Net::Connector.new("localhost:1", name => 0) }

      assert_operator error.message, :start_with?, beginning
    end
    error = assert_raises(ArgumentError) { Heddle::HTTP::Client.new(timeout: { connect: "5" }) }

    assert_operator error.message, :start_with?, "timeout: connect is \"5\", "
  end
end
