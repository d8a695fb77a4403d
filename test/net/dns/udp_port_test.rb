# frozen_string_literal: true

# test: each selector

require "heddle/net/dns/server"
require_relative "support/dns_case"

# The UDP socket of a server, with another server behind it.
class DNSUDPPortTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  ADDRESS = "\x7F\0\0\1".b
  # Nothing can be sent to this port.
  NOWHERE = Heddle::Net::DatagramSocket::Peer.new("127.0.0.1", 0)
  RESPONSE = DNS::Message.new(1)

  # What a port needs of its server: hands each datagram to a block, and counts.
  class Recorder
    attr_reader :statistics

    def initialize(&receive)
      @statistics = Hash.new(0)
      @receive = receive
    end

    def receive(bytes, source) = @receive.call(bytes, source)

    def judge_rate(_address) = nil

    def count(what, number = 1) = @statistics[what] += number
  end

  def open_port(&)
    @recorder = Recorder.new(&)
    @port = DNS::UDPPort.new(Addrinfo.udp("127.0.0.1", 0), @recorder)
  end

  def teardown
    @port&.close
  end

  # Runs the port in a loop, after datagrams have come that it receives as a batch.
  def run_port(*datagrams)
    sender = UDPSocket.new
    sender.connect("127.0.0.1", @port.port)
    datagrams.each { |bytes| sender.send(bytes, 0) }
    Heddle.run(selector: selector_under_test) do
      running = Heddle.async { @port.run }
      yield if block_given?
      @port.close
      running.wait
    end
  ensure
    sender&.close
  end

  def test_a_response_that_cannot_be_sent_is_counted
    open_port
    @port.respond(RESPONSE, NOWHERE, ADDRESS)

    assert_equal({ unsent: 1 }, @recorder.statistics)
    @port.close
    @port.respond(RESPONSE, NOWHERE, ADDRESS)

    assert_equal({ unsent: 2 }, @recorder.statistics)
  end

  def test_responses_of_a_batch_that_cannot_be_sent_are_counted_while_the_port_runs
    open_port { @port.respond(RESPONSE, NOWHERE, ADDRESS) }
    run_port("one", "two") do
      wait_until("both") { @recorder.statistics[:unsent] == 2 || Fiber.scheduler.yield }
    end

    assert_equal({ unsent: 2 }, @recorder.statistics)
  end

  def test_responses_that_a_close_cannot_send_are_counted
    open_port do |bytes,|
      @port.respond(RESPONSE, NOWHERE, ADDRESS)
      @port.close if bytes == "two"
    end
    run_port("one", "two") { wait_until("the close") { @recorder.statistics.any? || Fiber.scheduler.yield } }

    assert_equal({ unsent: 2 }, @recorder.statistics)
  end

  def test_another_error_than_the_close_is_raised
    open_port { raise IOError, "of the server" }

    assert_equal("of the server", assert_raises(IOError) { run_port("one") { Fiber.scheduler.yield } }.message)
  end
end
