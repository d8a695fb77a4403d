# frozen_string_literal: true

require_relative "support/dns_case"
require_relative "support/zone"

# Queries that a server forwards to another one.
class DNSForwardTest < Minitest::Test
  include Heddle::TestHelpers::DNSCase

  # A server, and one before it that forwards to it.
  # @yieldparam [Running] front
  # @yieldparam [Array] asked messages that reached the one behind
  def forwarding(program, allow: nil, **options)
    asked = []
    behind = lambda do |query|
      asked << query
      program.call(query)
    end
    serving(behind) do |back|
      client = DNS::Client.new("127.0.0.1:#{back.port}")
      serving(->(query) { query.forward(client, allow:) }, **options) { |front| yield front, asked }
    end
  end

  def test_flags_of_both_sides
    forwarding(->(query) { query.answer("192.0.2.1") }) do |front, asked|
      query = DNS::Message.query("A.test", :A, edns: DNS::EDNS.of(dnssec: true))
      query.checking_disabled = true
      answer = front.ask(query)

      assert_equal [true, false, true, true, :NOERROR],
                   [answer.recursion_available?, answer.authoritative?, answer.recursion_desired?,
                    answer.checking_disabled?, answer.rcode]
      assert_equal "A.test", answer.answers.first.name
      upstream = asked.first.message

      assert_equal [true, true, true], [upstream.recursion_desired?, upstream.checking_disabled?, upstream.edns.dnssec]
    end
  end

  def test_one_question_for_many_clients_and_again_from_the_cache
    gate = Thread::Queue.new
    forwarding(->(query) { query.answer(gate.pop) }) do |front, asked|
      clients = Array.new(10) { Thread.new { front.ask("a.test", :A).answers.first.data.address } }
      wait_until("all queries") { front.server.under_way == 10 }
      gate.push("192.0.2.1")

      assert_equal ["192.0.2.1"], clients.map(&:value).uniq
      assert_equal "192.0.2.1", front.ask("A.TEST", :A).answers.first.data.address
      assert_equal 1, asked.size
    end
  end

  def test_absence_is_passed_on_with_its_soa
    zone = Heddle::TestHelpers::Zone.new("up.test")
    forwarding(->(query) { zone.answer(query) }) do |front, asked|
      2.times do
        answer = front.ask("none.up.test", :A)

        assert_equal [:NXDOMAIN, %i[SOA]], [answer.rcode, answer.authorities.map(&:type)]
      end
      assert_equal 1, asked.size
    end
  end

  def test_a_failure_behind_is_servfail
    forwarding(lambda(&:refuse)) do |front, _|
      answer = front.ask("a.test", :A)

      assert_equal [:SERVFAIL, true], [answer.rcode, answer.recursion_available?]
    end
  end

  def test_a_query_without_recursion_desired_is_refused
    forwarding(->(query) { query.answer("192.0.2.1") }) do |front, asked|
      assert_equal :REFUSED, front.ask("a.test", :A, recursion: false).rcode
      assert_empty asked
    end
  end

  def test_only_allowed_networks_are_forwarded_for
    answer = ->(query) { query.answer("192.0.2.1") }
    forwarding(answer) { |front, _| assert_equal :NOERROR, front.ask("a.test", :A).rcode }
    forwarding(answer, allow: ["192.0.2.0/24"]) { |front, _| assert_equal :REFUSED, front.ask("a.test", :A).rcode }
    serving(->(query) { query.forward(nil) }, allow: %w[none]) do |front|
      assert_equal :REFUSED, front.ask("a.test", :A).rcode
    end
  end

  def test_public_clients_are_not_forwarded_for_by_default
    server = DNS::Server.new("127.0.0.1:0") { nil }
    source = Struct.new(:address_bytes)
    forwarded = %w[127.0.0.1 10.1.2.3 ::1 fd00::1 8.8.8.8 2001:4860:4860::8888].select do |address|
      query = DNS::Query.new(DNS::Message.query("a.test", :A), source.new(IPAddr.new(address).hton), server)
      server.forward_for?(query)
    end

    assert_equal %w[127.0.0.1 10.1.2.3 ::1 fd00::1], forwarded
  end

  def test_any_is_not_passed_on
    forwarding(->(query) { query.answer("192.0.2.1") }) do |front, asked|
      assert_equal [DNS::Data::HINFO.new("RFC8482", "")], front.ask("a.test", :ANY).answers.map(&:data)
      assert_empty asked
    end
  end

  def test_names_that_no_server_may_be_asked_for_do_not_exist
    forwarding(->(query) { query.answer("192.0.2.1") }) do |front, asked|
      %w[localhost a.localhost a.invalid a.onion].each do |name|
        assert_equal :NXDOMAIN, front.ask(name, :A).rcode, name
      end
      assert_empty asked
    end
  end

  # A server that forwards to itself has one query under way, not one more for each it gets.
  def test_a_server_that_forwards_to_itself_does_not_loop
    client = nil
    serving(->(query) { query.forward(client) }, deadline: 0.2) do |dns|
      client = DNS::Client.new("127.0.0.1:#{dns.port}", timeout: 0.1, attempts: 1)

      assert_equal :SERVFAIL, dns.ask("a.test", :A).rcode
      assert_operator dns.server.statistics[:queries], :<=, 3
    end
  end
end
