# frozen_string_literal: true

require "test_helper"
require_relative "../../benchmark/support/bench"
require_relative "support/suite_promises"

class DNSBenchmarkSuiteTest < Minitest::Test
  include SuitePromises
  include GoalPromises

  def setup
    @suite = Bench::Suite.load("dns")
  end

  def heddle = @suite.contestant("heddle")

  def test_the_server_answers_with_one_address
    Bench::DNS::Server.run(heddle, ruby_flags: []) do |server|
      socket = UDPSocket.new
      socket.connect("127.0.0.1", server.port)
      socket.send(Bench::DNS::Server::QUERY, 0)

      assert_equal [192, 0, 2, 1], socket.recv(512).bytes.last(4)
      assert_operator server.cpu_seconds, :>, 0
    ensure
      socket&.close
    end
  end

  def test_a_server_that_ends_says_why
    contestant = Bench::DNS::RubyProgram.new("none", label: "none", role: :peer)

    failed = assert_raises(Bench::Child::Failed) { Bench::DNS::Server.run(contestant, ruby_flags: []) { flunk } }
    assert_match(/the server ended: .*none\.rb/, failed.message)
  end

  def test_a_program_that_is_not_there_takes_no_part
    contestant = Bench::DNS::Dnsmasq.new("no-such-program")

    assert_equal({ failure: "no-such-program is not installed" }, @suite.probe(contestant, ruby_flags: []))
  end
end
